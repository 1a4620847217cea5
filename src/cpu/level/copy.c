/* copy.c: conversion between dtypes, strided copies, filling. */
#include "cpu/level/each.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/random.h"
#include "tensor/half.h"
#include "tensor/whole.h"

#define CAST(from, to, F, T) PC__DENSE1(cast_##from##_##to, F, T, a)
#define CAST_TO_BOOL(from, F) PC__DENSE1(cast_##from##_b8, F, bool, a != 0)
#define CASTS_FROM(from, F)                                                                                            \
    CAST_TO_BOOL(from, F)                                                                                              \
    CAST(from, u8, F, uint8_t)                                                                                         \
    CAST(from, i32, F, int32_t)                                                                                        \
    CAST(from, i64, F, int64_t)                                                                                        \
    CASTS_TO_FLOAT(from, F, a)                                                                                         \
    CAST_TO_F32(from, F, a)                                                                                            \
    CAST_TO_F16(from, F)
/* 16-bit numbers come and go as floats, whatever is at the other end. */
#define CASTS_TO_FLOAT(from, F, value)                                                                                 \
    PC__DENSE1(cast_##from##_bf16, F, pc_bf16, pc__bf16_of((float)(value)))                                            \
    PC__DENSE1(cast_##from##_f64, F, double, value)
#define CAST_TO_F32(from, F, value) PC__DENSE1(cast_##from##_f32, F, float, value)
#define CAST_TO_F16(from, F) PC__DENSE1(cast_##from##_f16, F, pc_f16, pc__f16_of((float)a))
/* What keeps its dtype is moved. */
#define TO(FROM, OTHER, cast) (FROM) == (OTHER) ? NULL : (cast)
#define ROW(from, FROM)                                                                                                \
    {                                                                                                                  \
        TO(FROM, PC_BOOL, cast_##from##_b8), TO(FROM, PC_U8, cast_##from##_u8), TO(FROM, PC_I32, cast_##from##_i32),   \
            TO(FROM, PC_I64, cast_##from##_i64), TO(FROM, PC_F16, cast_##from##_f16),                                  \
            TO(FROM, PC_BF16, cast_##from##_bf16), TO(FROM, PC_F32, cast_##from##_f32),                                \
            TO(FROM, PC_F64, cast_##from##_f64)                                                                        \
    }

CASTS_FROM(b8, bool)
CASTS_FROM(u8, uint8_t)
CASTS_FROM(i32, int32_t)
CASTS_FROM(i64, int64_t)
#define CASTS_FROM_FLOAT(from, F, value)                                                                               \
    PC__DENSE1(cast_##from##_b8, F, bool, (value) != 0)                                                                \
    PC__DENSE1(cast_##from##_u8, F, uint8_t, PC__U8_OF(value))                                                         \
    PC__DENSE1(cast_##from##_i32, F, int32_t, PC__I32_OF(value))                                                       \
    PC__DENSE1(cast_##from##_i64, F, int64_t, PC__I64_OF(value))                                                       \
    CASTS_TO_FLOAT(from, F, value)
CASTS_FROM_FLOAT(f16, pc_f16, pc__f16_float(a))
CASTS_FROM_FLOAT(bf16, pc_bf16, pc__bf16_float(a))
CASTS_FROM_FLOAT(f32, float, a)
CASTS_FROM_FLOAT(f64, double, a)
CAST_TO_F32(bf16, pc_bf16, pc__bf16_float(a))
CAST_TO_F32(f64, double, a)
CAST_TO_F16(f64, double)

/* float16 by the processor's conversions, where it has them. */
static void cast_f16_f32(void *to, const void *from, const void *second, int64_t n, double number)
{
    (void)second, (void)number;
    pc__load_halves(to, from, n, true);
}

static void cast_f32_f16(void *to, const void *from, const void *second, int64_t n, double number)
{
    (void)second, (void)number;
    pc__store_halves(to, from, n, true);
}

static void cast_bf16_f16(void *to, const void *from, const void *second, int64_t n, double number)
{
    enum { SOME = 256 };
    float room[SOME];
    (void)second, (void)number;
    for (int64_t i = 0; i < n; i += SOME) {
        pc__load_halves(room, (const pc_bf16 *)from + i, PC__MIN(SOME, n - i), false);
        pc__store_halves((pc_f16 *)to + i, room, PC__MIN(SOME, n - i), true);
    }
}
#define cast_f16_f16 NULL
#define cast_f32_f32 NULL

static const pc__dense_fn casts[PC_DTYPE_COUNT][PC_DTYPE_COUNT] = {
    ROW(b8, PC_BOOL), ROW(u8, PC_U8),     ROW(i32, PC_I32), ROW(i64, PC_I64),
    ROW(f16, PC_F16), ROW(bf16, PC_BF16), ROW(f32, PC_F32), ROW(f64, PC_F64)};

/* The bits, of NaNs too; the context is the size of an element. */
static void move_run(char *const *data, const int64_t *s, int64_t n, const void *context)
{
    pc__move(data[0], s[0], data[1], s[1], n, *(const size_t *)context);
}

typedef struct bytes {
    char *to;
    const char *from;
    size_t n;
} bytes;

#define PIECE ((size_t)1 << 18) /* bytes that a core takes at a time */

static void move_piece(void *context, int64_t piece)
{
    const bytes *b = context;
    const size_t from = (size_t)piece * PIECE;
    memcpy(b->to + from, b->from + from, PC__MIN(PIECE, b->n - from));
}

/* One core cannot fill a server's memory. A tensor may be copied onto itself. */
static void move_all(bytes b)
{
    if (b.n <= PIECE)
        memmove(b.to, b.from, b.n);
    else if (b.to != b.from)
        pc__parallel(pc__threads(8 * (int64_t)b.n), (int64_t)((b.n + PIECE - 1) / PIECE), move_piece, &b);
}

static pc_status convert(pc_tensor *to, pc_tensor *from)
{
    if (to->dtype == from->dtype && pc__is_contiguous(to) && pc__is_contiguous(from) && pc__same_shape(to, from)) {
        move_all((bytes){pc__data(to), pc__data(from), (size_t)pc_tensor_count(to) * pc_dtype_size(to->dtype)});
        return PC_OK;
    }
    const size_t size = pc_dtype_size(to->dtype);
    const pc__dense cast = {casts[from->dtype][to->dtype], 1, size, pc_dtype_size(from->dtype), false, 0};
    pc__loop loop;
    pc__loop_make(&loop, 2, (pc_tensor *[]){to, from}, cast.loop ? (const void *)&cast : &size);
    pc__loop_run(&loop, cast.loop ? pc__run_dense : move_run, 1);
    return PC_OK;
}

PC__KERNEL(cast)
{
    (void)stream;
    return convert(call->out[0], call->in[0]);
}

PC__KERNEL(cast_many)
{
    const int n = call->n_in / 2;
    (void)stream;
    for (int i = 0; i < n; i++)
        PC__TRY(convert(call->in[i], call->in[n + i]));
    return PC_OK;
}

PC__KERNEL(copy)
{
    (void)stream;
    return convert(call->out[0], call->in[0]);
}

#define FILL(T)                                                                                                        \
    static void fill_##T(char *const *data, const int64_t *s, int64_t n, const void *context)                          \
    {                                                                                                                  \
        T value;                                                                                                       \
        memcpy(&value, context, sizeof value);                                                                         \
        if (s[0] == (int64_t)sizeof(T)) {                                                                              \
            T *out = (T *)(void *)data[0];                                                                             \
            for (int64_t i = 0; i < n; i++)                                                                            \
                out[i] = value;                                                                                        \
        } else {                                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                                            \
                *(T *)(void *)(data[0] + i * s[0]) = value;                                                            \
        }                                                                                                              \
    }
FILL(uint8_t)
FILL(uint16_t)
FILL(uint32_t)
FILL(uint64_t)

PC__KERNEL(fill)
{
    (void)stream;
    const pc__fill_attributes *a = call->attributes;
    pc_tensor *t = call->out[0];
    union {
        bool b;
        uint8_t u8;
        int32_t i32;
        int64_t i64;
        pc_f16 f16;
        pc_bf16 bf16;
        float f32;
        double f64;
    } value = {.i64 = 0};
    switch ((pc_dtype)t->dtype) {
    case PC_BOOL:
        value.b = a->value != 0;
        break;
    case PC_U8:
        value.u8 = PC__U8_OF(a->value);
        break;
    case PC_I32:
        value.i32 = PC__I32_OF(a->value);
        break;
    case PC_I64:
        value.i64 = PC__I64_OF(a->value);
        break;
    case PC_F16:
        value.f16 = pc__f16_of((float)a->value);
        break;
    case PC_BF16:
        value.bf16 = pc__bf16_of((float)a->value);
        break;
    case PC_F32:
        value.f32 = (float)a->value;
        break;
    default:
        value.f64 = a->value;
    }
    size_t size = pc_dtype_size(t->dtype);
    pc__loop loop;
    pc__loop_make(&loop, 1, &t, &value);
    static const pc__run_fn runs[] = {
        [1] = fill_uint8_t, [2] = fill_uint16_t, [4] = fill_uint32_t, [8] = fill_uint64_t};
    pc__loop_run(&loop, runs[size], 1);
    return PC_OK;
}

/* The factor of integers is a whole number. */
#define SAXPY(name, T, A, factor_of)                                                                                   \
    static void saxpy_##name(char *const *data, const int64_t *s, int64_t n, const void *context)                      \
    {                                                                                                                  \
        A factor = (A)factor_of(((const pc__fill_attributes *)context)->value);                                        \
        if (s[0] == (int64_t)sizeof(T) && s[1] == (int64_t)sizeof(T)) {                                                \
            T *y = (T *)(void *)data[0];                                                                               \
            const T *x = (const T *)(const void *)data[1];                                                             \
            for (int64_t i = 0; i < n; i++)                                                                            \
                y[i] = (T)(y[i] + factor * x[i]);                                                                      \
        } else {                                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                T *y = (T *)(void *)(data[0] + i * s[0]);                                                              \
                *y = (T)(*y + factor * *(const T *)(const void *)(data[1] + i * s[1]));                                \
            }                                                                                                          \
        }                                                                                                              \
    }
SAXPY(u8, uint8_t, uint64_t, PC__I64_OF)
SAXPY(i32, uint32_t, uint64_t, PC__I64_OF)
SAXPY(i64, uint64_t, uint64_t, PC__I64_OF)
SAXPY(f32, float, float, )
SAXPY(f64, double, double, )

PC__KERNEL(saxpy)
{
    (void)stream;
    static const pc__run_fn runs[PC_DTYPE_COUNT] = {
        [PC_U8] = saxpy_u8, [PC_I32] = saxpy_i32, [PC_I64] = saxpy_i64, [PC_F32] = saxpy_f32, [PC_F64] = saxpy_f64};
    return pc__each_run(call, runs, 2);
}

/* Numbers of a thread's claim. */
enum { COUNTED = 1 << 15 };

typedef struct counting {
    const pc__arange_attributes *a;
    pc_tensor *to;
} counting;

#define COUNT(T, AS)                                                                                                   \
    for (int64_t i = first; i < end; i++)                                                                              \
        ((T *)data)[i] = (T)AS(a->start + (double)i * a->step);                                                        \
    break
#define WHOLE (int64_t)

static void count_piece(void *context, int64_t piece)
{
    const counting *c = context;
    const pc__arange_attributes *a = c->a;
    void *data = pc__data(c->to);
    const int64_t first = piece * COUNTED, end = PC__MIN(first + COUNTED, c->to->shape[0]);
    switch ((pc_dtype)c->to->dtype) {
    case PC_U8:
        COUNT(uint8_t, WHOLE);
    case PC_I32:
        COUNT(int32_t, WHOLE);
    case PC_I64:
        COUNT(int64_t, );
    case PC_F32:
        COUNT(float, );
    default:
        COUNT(double, );
    }
}

PC__KERNEL(arange)
{
    (void)stream;
    const int64_t n = call->out[0]->shape[0];
    pc__parallel(pc__threads(4 * n), (n + COUNTED - 1) / COUNTED, count_piece,
                 &(counting){call->attributes, call->out[0]});
    return PC_OK;
}
