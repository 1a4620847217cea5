/* each.c: from a call to runs over its operands, and from any strides to dense blocks. */
#include "cpu/level/each.h"

#include "cpu/level/halves.h"
#include "ops/number.h"

enum { BLOCK = PC__BLOCK };

/* Four loads before their stores, which may be to the same elements only: the compiler cannot know that. Of steps that it
 * knows it makes vectors. */
#define MOVE(T)                                                                                                        \
    static inline __attribute__((always_inline)) void gather_##T(T *restrict to, const T *restrict from, int64_t n,    \
                                                                 const int step)                                       \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            to[i] = from[step * i];                                                                                    \
    }                                                                                                                  \
    static void move_##T(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n)                \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        if (to_stride == sizeof(T) && from_stride >= 0 && from_stride <= 3 * (int64_t)sizeof(T)) {                     \
            T *out = (T *)(void *)to;                                                                                  \
            const T *in = (const T *)(const void *)from;                                                               \
            if (from_stride == 0)                                                                                      \
                gather_##T(out, in, n, 0);                                                                             \
            else if (from_stride == 2 * sizeof(T))                                                                     \
                gather_##T(out, in, n, 2);                                                                             \
            else                                                                                                       \
                gather_##T(out, in, n, 3);                                                                             \
            return;                                                                                                    \
        }                                                                                                              \
        for (; i + 4 <= n; i += 4, to += 4 * to_stride, from += 4 * from_stride) {                                     \
            const T a = *(const T *)(const void *)from, b = *(const T *)(const void *)(from + from_stride),            \
                    c = *(const T *)(const void *)(from + 2 * from_stride),                                            \
                    d = *(const T *)(const void *)(from + 3 * from_stride);                                            \
            *(T *)(void *)to = a, *(T *)(void *)(to + to_stride) = b;                                                  \
            *(T *)(void *)(to + 2 * to_stride) = c, *(T *)(void *)(to + 3 * to_stride) = d;                            \
        }                                                                                                              \
        for (; i < n; i++, to += to_stride, from += from_stride)                                                       \
            *(T *)(void *)to = *(const T *)(const void *)from;                                                         \
    }
MOVE(uint8_t)
MOVE(uint16_t)
MOVE(uint32_t)
MOVE(uint64_t)

void pc__move(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n, size_t bytes)
{
    if (to_stride == (int64_t)bytes && from_stride == (int64_t)bytes) {
        memmove(to, from, (size_t)n * bytes);
        return;
    }
    switch (bytes) {
    case 1:
        move_uint8_t(to, to_stride, from, from_stride, n);
        break;
    case 2:
        move_uint16_t(to, to_stride, from, from_stride, n);
        break;
    case 4:
        move_uint32_t(to, to_stride, from, from_stride, n);
        break;
    default:
        move_uint64_t(to, to_stride, from, from_stride, n);
    }
}

const char *pc__gathered(const char *data, int64_t stride, int64_t i, int64_t n, size_t bytes, char *room)
{
    const char *from = data + i * stride;
    if (stride == (int64_t)bytes)
        return from;
    if (stride != 0 || i == 0)
        pc__move(room, (int64_t)bytes, from, stride, n, bytes);
    return room;
}

/* Of a loop that takes whole vectors alone, n elements that end within one: this is computed first, since results may lie where
 * operands do, and stored over the end of the others. */
static __attribute__((noinline)) void run_with_end(const pc__dense *d, char *to, const char *x, const char *y,
                                                   int64_t n)
{
    enum { N = PC__HALVES, SIZE = sizeof(pc_f16) };
    _Alignas(64) char room[3][N * SIZE];
    const int64_t out = (int64_t)d->out_bytes, before = PC__MAX(n - N, 0);
    if (n > N) {
        d->loop(room[0], x + before * SIZE, y + before * SIZE, N, d->number);
        d->loop(to, x, y, n / N * N, d->number);
    } else {
        memset(room, 0, sizeof room);
        memcpy(room[1], x, (size_t)(n * SIZE));
        memcpy(room[2], y, (size_t)(n * SIZE));
        d->loop(room[0], room[1], room[2], N, d->number);
    }
    memcpy(to + before * out, room[0], (size_t)(PC__MIN(n, N) * out));
}

/* The loop of `dense` over n elements side by side. */
static inline void run_side_by_side(const pc__dense *d, char *to, const char *x, const char *y, int64_t n)
{
    if (d->whole && n % PC__HALVES)
        run_with_end(d, to, x, y, n);
    else
        d->loop(to, x, y, n, d->number);
}

/* At any strides, in bytes; without a second input s[2] is 0 and data[2] anything that may be read. */
static void run_blocks(const pc__dense *d, char *const *data, const int64_t *s, int64_t n)
{
    _Alignas(64) char room[3][BLOCK * 8];
    const int64_t out_bytes = (int64_t)d->out_bytes;
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t m = PC__MIN(n - i, BLOCK);
        const bool straight = s[0] == out_bytes;
        char *out = data[0] + i * s[0];
        const char *x = pc__gathered(data[1], s[1], i, m, d->in_bytes, room[1]);
        const char *y = pc__gathered(data[2], s[2], i, m, d->in_bytes, room[2]);
        run_side_by_side(d, straight ? out : room[0], x, y, m);
        if (!straight)
            pc__move(out, s[0], room[0], out_bytes, m, d->out_bytes);
    }
}

void pc__run_dense(char *const *data, const int64_t *s, int64_t n, const void *dense)
{
    const pc__dense *d = dense;
    const bool two = d->inputs == 2;
    const int64_t out_bytes = (int64_t)d->out_bytes, in_bytes = (int64_t)d->in_bytes;
    if (s[0] == out_bytes && s[1] == in_bytes && (!two || s[2] == in_bytes))
        run_side_by_side(d, data[0], data[1], data[two ? 2 : 1], n);
    else
        run_blocks(d, (char *const[]){data[0], data[1], data[two ? 2 : 1]},
                   (const int64_t[]){s[0], s[1], two ? s[2] : 0}, n);
}

/* --- 16-bit numbers: blocks of float32, rounded once --- */

typedef struct halves {
    pc__run_fn run; /* float32's */
    const void *context;
    int inputs;
    bool is_f16, writes; /* writes: 16-bit numbers too, and not bools */
    int number_at;       /* the operand that is a number in float32; 0: none */
    float number;
} halves;

static void load_halves(float *restrict to, const char *restrict from, int64_t stride, int64_t n, bool is_f16)
{
    pc_f16 room[BLOCK];
    if (stride != sizeof *room)
        pc__move((char *)room, sizeof *room, from, stride, n, sizeof *room);
    pc__load_halves(to, stride == sizeof *room ? (const void *)from : room, n, is_f16);
}

static void store_halves(char *restrict to, int64_t stride, const float *restrict from, int64_t n, bool is_f16)
{
    pc_f16 room[BLOCK];
    pc__store_halves(stride == sizeof *room ? (void *)to : room, from, n, is_f16);
    if (stride != sizeof *room)
        pc__move(to, stride, (const char *)room, sizeof *room, n, sizeof *room);
}

static void take(const halves *h, int k, float *to, const char *from, int64_t stride, int64_t n)
{
    if (k != h->number_at)
        load_halves(to, from, stride, n, h->is_f16);
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = h->number;
}

static void run_halves(char *const *data, const int64_t *s, int64_t n, const void *context)
{
    const halves *h = context;
    _Alignas(64) float room[PC__OPERANDS][BLOCK];
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t m = PC__MIN(n - i, BLOCK);
        char *operands[PC__OPERANDS] = {h->writes ? (char *)room[0] : data[0] + i * s[0]};
        int64_t strides[PC__OPERANDS] = {h->writes ? (int64_t)sizeof(float) : s[0]};
        for (int k = 1; k <= h->inputs; k++) {
            if (i == 0 || s[k] != 0)
                take(h, k, room[k], data[k] + i * s[k], s[k], m);
            operands[k] = (char *)room[k];
            strides[k] = sizeof(float);
        }
        h->run(operands, strides, m, h->context);
        if (h->writes)
            store_halves(data[0] + i * s[0], s[0], room[0], m, h->is_f16);
    }
}

/* An element of a dtype that is the number. */
static void put_number(void *to, double number, pc_dtype dtype)
{
    const float f32 = (float)number;
    const int64_t whole = pc__is_float(dtype) ? 0 : (int64_t)number;
    switch (dtype) {
    case PC_F64:
        memcpy(to, &number, sizeof number);
        return;
    case PC_F32:
        memcpy(to, &f32, sizeof f32);
        return;
    case PC_F16:
        *(pc_f16 *)to = pc__f16_of(f32);
        return;
    case PC_BF16:
        *(pc_bf16 *)to = pc__bf16_of(f32);
        return;
    case PC_I64:
        *(int64_t *)to = whole;
        return;
    case PC_I32:
        *(int32_t *)to = (int32_t)whole;
        return;
    default:
        *(uint8_t *)to = (uint8_t)whole;
    }
}

static pc__dense dense_of(const pc_call *call, pc__dense_fn loop, pc_dtype in, pc_dtype out)
{
    const int inputs = pc__number_of(call) ? 2 : call->n_in;
    const pc__number *parameter = pc__parameter_of(call);
    return (pc__dense){
        loop, inputs, pc_dtype_size(out), pc_dtype_size(in), pc__is_half(in), parameter ? parameter->value : 0};
}

/* A run and its context; none: run NULL. */
typedef struct way {
    pc__run_fn run;
    const void *context;
} way;

/* `direct` is of the inputs' dtype, `floats` of float32. */
static pc_status each(const pc_call *call, way direct, way floats, int cost)
{
    const pc_dtype dtype = call->in[0]->dtype;
    const pc__number *number = pc__number_of(call);
    const int number_at = !number ? 0 : number->first ? 1 : 2;
    const halves h = {.run = floats.run,
                      .context = floats.context,
                      .inputs = number ? 2 : call->n_in,
                      .is_f16 = dtype == PC_F16,
                      .writes = pc__is_half((pc_dtype)call->out[0]->dtype),
                      .number_at = number_at,
                      .number = number ? (float)number->value : 0};
    const bool in_floats = pc__is_half(dtype) && (!direct.run || (number && !pc__number_fits(number->value, dtype)));
    const way chosen = in_floats && floats.run ? (way){run_halves, &h} : direct;
    if (!chosen.run)
        return pc__fail(PC_ERR_DTYPE, "%s has no kernel for %s on the CPU; pc_cast to another dtype", call->op->name,
                        pc_dtype_name(dtype));
    pc_tensor *operands[PC__OPERANDS] = {call->out[0]};
    for (int i = 0; i < call->n_in; i++)
        operands[i + 1] = call->in[i];
    pc__loop loop;
    pc__loop_make(&loop, call->n_in + 1, operands, chosen.context);
    int64_t element = 0;
    if (number) {
        put_number(&element, number->value, dtype);
        pc__loop_repeat(&loop, number_at, &element, pc_dtype_size(dtype));
    }
    pc__loop_run(&loop, chosen.run, cost);
    return PC_OK;
}

pc_status pc__each(const pc_call *call, const pc__dense_fn loops[PC_DTYPE_COUNT], int cost)
{
    const pc_dtype in = call->in[0]->dtype, out = call->out[0]->dtype;
    const pc__dense direct = dense_of(call, loops[in], in, out);
    const pc__dense floats = dense_of(call, loops[PC_F32], PC_F32, pc__is_half(out) ? PC_F32 : out);
    return each(call, (way){direct.loop ? pc__run_dense : NULL, &direct},
                (way){floats.loop ? pc__run_dense : NULL, &floats}, cost);
}

pc_status pc__each_or_number(const pc_call *call, const pc__dense_fn loops[PC_DTYPE_COUNT],
                             const pc__dense_fn by_number[PC_DTYPE_COUNT], int cost)
{
    enum { CONVERSIONS = 3 /* of 16-bit numbers and back, in additions */ };
    const pc__number *number = pc__number_of(call);
    const pc__dense_fn loop = by_number[call->in[0]->dtype];
    if (!number || number->first || !loop)
        return pc__each(call, loops, cost);
    const pc__dense dense = {loop, 1, sizeof(pc_f16), sizeof(pc_f16), true, number->value};
    pc__loop walk;
    pc__loop_make(&walk, 2, (pc_tensor *[]){call->out[0], call->in[0]}, &dense);
    pc__loop_run(&walk, pc__run_dense, cost + CONVERSIONS);
    return PC_OK;
}

pc_status pc__each_run(const pc_call *call, const pc__run_fn runs[PC_DTYPE_COUNT], int cost)
{
    const void *attributes = call->attributes;
    return each(call, (way){runs[call->in[0]->dtype], attributes}, (way){runs[PC_F32], attributes}, cost);
}
