/* elementwise.c: arithmetic, functions and comparisons, element by element. */
#include "cpu/level/each.h"
#include "cpu/level/functions.h"

/* Loops of 16-bit numbers are kept for what costs no more than this; for processors of before 2013 there are none. */
#if defined(__x86_64__) && defined(PC__LEVEL_base)
#define CHEAP (-1)
#else
#define CHEAP 4
#endif

#define HALF(name, half, cost) ((cost) <= CHEAP ? name##_##half : NULL)
#define FLOATS_TABLE(name, cost)                                                                                       \
    [PC_F32] = name##_f32, [PC_F64] = name##_f64, [PC_F16] = HALF(name, f16, cost), [PC_BF16] = HALF(name, bf16, cost)
#define INTEGERS_TABLE(name, cost) [PC_U8] = name##_u8, [PC_I32] = name##_i32, [PC_I64] = name##_i64
#define NUMBERS_TABLE(name, cost) FLOATS_TABLE(name, cost), INTEGERS_TABLE(name, cost)
#define ORDERED_TABLE(name, cost) NUMBERS_TABLE(name, cost)
#define ALL_TABLE(name, cost) NUMBERS_TABLE(name, cost), [PC_BOOL] = name##_bool

#define KERNEL(name, dtypes, cost)                                                                                     \
    PC__KERNEL(name)                                                                                                   \
    {                                                                                                                  \
        static const pc__dense_fn loops[PC_DTYPE_COUNT] = {dtypes##_TABLE(name, cost)};                                \
        (void)stream;                                                                                                  \
        return pc__each(call, loops, cost);                                                                            \
    }

#define FLOATS_BY_NUMBER(name, cost)                                                                                   \
    [PC_F16] = HALF(name##_by_number, f16, cost), [PC_BF16] = HALF(name##_by_number, bf16, cost)
#define NUMBERS_BY_NUMBER(name, cost) FLOATS_BY_NUMBER(name, cost)
#define ORDERED_BY_NUMBER(name, cost) FLOATS_BY_NUMBER(name, cost)
#define ALL_BY_NUMBER(name, cost) FLOATS_BY_NUMBER(name, cost)
#define INTEGERS_BY_NUMBER(name, cost) [PC_F16] = NULL

#define KERNEL_OF_TWO(name, dtypes, cost)                                                                              \
    PC__KERNEL(name)                                                                                                   \
    {                                                                                                                  \
        static const pc__dense_fn loops[PC_DTYPE_COUNT] = {dtypes##_TABLE(name, cost)};                                \
        static const pc__dense_fn by_number[PC_DTYPE_COUNT] = {dtypes##_BY_NUMBER(name, cost)};                        \
        (void)stream;                                                                                                  \
        return pc__each_or_number(call, loops, by_number, cost);                                                       \
    }

/* Loops over the dtypes of a row with 1 or 2 inputs. */
#define RUN(inputs, name, T, f) PC__DENSE##inputs(name, T, T, f)
#define WIDE_RUNS(inputs, name, f)                                                                                     \
    RUN(inputs, name##_f32, float, f)                                                                                  \
    RUN(inputs, name##_f64, double, f)
#define WRAPPING_RUNS(inputs, name, f)                                                                                 \
    RUN(inputs, name##_u8, uint8_t, f)                                                                                 \
    RUN(inputs, name##_i32, uint32_t, f)                                                                               \
    RUN(inputs, name##_i64, uint64_t, f)
#define FLOATS_RUNS(inputs, name, f)                                                                                   \
    WIDE_RUNS(inputs, name, f)                                                                                         \
    PC__DENSE_HALVES(name##_f16, f16, inputs, pc__is_kept(PC__POINTWISE_##name), f)                                    \
    PC__DENSE_HALVES(name##_bf16, bf16, inputs, pc__is_kept(PC__POINTWISE_##name), f)
#define NUMBERS_RUNS(inputs, name, f) FLOATS_RUNS(inputs, name, f) WRAPPING_RUNS(inputs, name, f)
#define ORDERED_RUNS(inputs, name, f)                                                                                  \
    FLOATS_RUNS(inputs, name, f)                                                                                       \
    RUN(inputs, name##_u8, uint8_t, f)                                                                                 \
    RUN(inputs, name##_i32, int32_t, f)                                                                                \
    RUN(inputs, name##_i64, int64_t, f)
#define FLOATS_NUMBER_RUNS(name, f)                                                                                    \
    PC__DENSE_BY_NUMBER(name##_by_number_f16, f16, f)                                                                  \
    PC__DENSE_BY_NUMBER(name##_by_number_bf16, bf16, f)
#define NUMBERS_NUMBER_RUNS(name, f) FLOATS_NUMBER_RUNS(name, f)
#define ORDERED_NUMBER_RUNS(name, f) FLOATS_NUMBER_RUNS(name, f)
#define ALL_NUMBER_RUNS(name, f) FLOATS_NUMBER_RUNS(name, f)
#define INTEGERS_NUMBER_RUNS(name, f)
#define INTEGERS_RUNS(inputs, name, f) WRAPPING_RUNS(inputs, name, f)
#define ALL_RUNS(inputs, name, f) NUMBERS_RUNS(inputs, name, f) PC__DENSE##inputs(name##_bool, uint8_t, bool, (f) != 0)

#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative)                                               \
    dtypes##_RUNS(1, name, f) FLOATS_RUNS(2, name##_backward, derivative)
/* A sign is a bit of 16-bit numbers, which need not become float32 for it; NaN becomes quiet, as on that way. */
#define BITS_neg(a, infinity, quiet) ((a ^ 0x8000) | ((a & 0x7fff) > (infinity) ? (quiet) : 0))
#define PC__UNARY(name, dtypes, cost, flags, f)                                                                        \
    WIDE_RUNS(1, name, f)                                                                                              \
    WRAPPING_RUNS(1, name, f)                                                                                          \
    RUN(1, name##_f16, uint16_t, BITS_##name(a, 0x7c00, 0x200))                                                        \
    RUN(1, name##_bf16, uint16_t, BITS_##name(a, 0x7f80, 0x40))
#define PC__FLAT(name, dtypes, cost, f) dtypes##_RUNS(1, name, f)
#define PC__BINARY(name, dtypes, cost, flags, f) dtypes##_RUNS(2, name, f) dtypes##_NUMBER_RUNS(name, f)
#define PC__PARAMETRIC(name, cost, f)                                                                                  \
    PC__DENSE_PARAMETRIC(name##_f32, float, f)                                                                         \
    PC__DENSE_PARAMETRIC(name##_f64, double, f)                                                                        \
    PC__DENSE_HALVES(name##_f16, f16, 2, false, f)                                                                     \
    PC__DENSE_HALVES(name##_bf16, bf16, 2, false, f)
#define sin_f32 any_sin
#define cos_f32 any_cos
#define sin_backward_f32 any_sin_backward
#define cos_backward_f32 any_cos_backward
#include "ops/pointwise.def"
#undef sin_f32
#undef cos_f32
#undef sin_backward_f32
#undef cos_backward_f32

/* Angles are seldom large, and then take half of the time: blocks without such have loops of their own, to the same bits. */
PC__DENSE1(small_sin, float, float, pc__sin_of(pc__small_angle_of(a)))
PC__DENSE1(small_cos, float, float, pc__cos_of(pc__small_angle_of(a)))
PC__DENSE2(small_sin_backward, float, float, a *pc__cos_of(pc__small_angle_of(b)))
PC__DENSE2(small_cos_backward, float, float, -a *pc__sin_of(pc__small_angle_of(b)))

static bool are_small(const float *angle, int64_t n)
{
    const pc__float_bits bound = {.f = PC__SMALL_ANGLE};
    int32_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        const pc__float_bits bits = {.f = angle[i]};
        const int32_t size = (int32_t)(bits.u & 0x7fffffff);
        most = size > most ? size : most;
    }
    return most < (int32_t)bound.u;
}

#define BY_ANGLES(name, angle)                                                                                         \
    static void name##_f32(void *to, const void *first, const void *second, int64_t n, double number)                  \
    {                                                                                                                  \
        const float *x = first, *y = second;                                                                           \
        for (int64_t i = 0; i < n; i += PC__BLOCK) {                                                                   \
            const int64_t m = PC__MIN(n - i, PC__BLOCK);                                                               \
            (are_small((angle) + i, m) ? small_##name : any_##name)((float *)to + i, x + i, y + i, m, number);         \
        }                                                                                                              \
    }
BY_ANGLES(sin, x)
BY_ANGLES(cos, x)
BY_ANGLES(sin_backward, y)
BY_ANGLES(cos_backward, y)

#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative)                                               \
    KERNEL(name, dtypes, cost)                                                                                         \
    KERNEL(name##_backward, FLOATS, cost)
#define PC__UNARY(name, dtypes, cost, flags, f) KERNEL(name, dtypes, cost)
#define PC__BINARY(name, dtypes, cost, flags, f) KERNEL_OF_TWO(name, dtypes, cost)
#define PC__PARAMETRIC(name, cost, f) KERNEL(name, FLOATS, cost)
#include "ops/pointwise.def"

#define FLOATS_F32(name) name##_f32
#define NUMBERS_F32(name) name##_f32
#define ORDERED_F32(name) name##_f32
#define ALL_F32(name) name##_f32
#define INTEGERS_F32(name) NULL

const pc__dense_fn pc__pointwise_f32[PC__POINTWISE_COUNT] = {
#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative)                                               \
    [PC__POINTWISE_##name] = name##_f32, [PC__POINTWISE_##name##_backward] = name##_backward_f32,
#define PC__UNARY(name, dtypes, cost, flags, f) [PC__POINTWISE_##name] = name##_f32,
#define PC__BINARY(name, dtypes, cost, flags, f) [PC__POINTWISE_##name] = dtypes##_F32(name),
#define PC__PARAMETRIC(name, cost, f) [PC__POINTWISE_##name] = name##_f32,
#include "ops/pointwise.def"
};

#define COMPARED_TABLE(name, cost)                                                                                     \
    [PC_BOOL] = name##_bool, [PC_U8] = name##_u8, [PC_I32] = name##_i32, [PC_I64] = name##_i64, [PC_F32] = name##_f32, \
    [PC_F64] = name##_f64
#define COMPARE(name, expression)                                                                                      \
    PC__DENSE2(name##_bool, bool, bool, expression)                                                                    \
    PC__DENSE2(name##_u8, uint8_t, bool, expression)                                                                   \
    PC__DENSE2(name##_i32, int32_t, bool, expression)                                                                  \
    PC__DENSE2(name##_i64, int64_t, bool, expression)                                                                  \
    PC__DENSE2(name##_f32, float, bool, expression)                                                                    \
    PC__DENSE2(name##_f64, double, bool, expression)                                                                   \
    KERNEL(name, COMPARED, 1)

COMPARE(eq, a == b)
COMPARE(ne, a != b)
COMPARE(lt, a < b)
COMPARE(le, a <= b)
COMPARE(gt, a > b)
COMPARE(ge, a >= b)

/* Both are read: a branch for each element would often be foretold wrong. */
#define WHERE(T)                                                                                                       \
    static void where_##T(char *const *data, const int64_t *s, int64_t n, const void *context)                         \
    {                                                                                                                  \
        _Alignas(64) char room[4][PC__BLOCK * sizeof(T)];                                                              \
        (void)context;                                                                                                 \
        for (int64_t begin = 0; begin < n; begin += PC__BLOCK) {                                                       \
            const int64_t m = PC__MIN(n - begin, PC__BLOCK), size = sizeof(T);                                         \
            const char *c = pc__gathered(data[1], s[1], begin, m, 1, room[1]);                                         \
            const T *x = (const T *)(const void *)pc__gathered(data[2], s[2], begin, m, sizeof(T), room[2]);           \
            const T *y = (const T *)(const void *)pc__gathered(data[3], s[3], begin, m, sizeof(T), room[3]);           \
            T *out = (T *)(void *)(s[0] == size ? data[0] + begin * size : room[0]);                                   \
            _Pragma("GCC ivdep") /* the result may be an input, in its place */                                        \
                for (int64_t i = 0; i < m; i++)                                                                        \
            {                                                                                                          \
                const T a = x[i], b = y[i];                                                                            \
                out[i] = c[i] ? a : b;                                                                                 \
            }                                                                                                          \
            if (s[0] != size)                                                                                          \
                pc__move(data[0] + begin * s[0], s[0], room[0], size, m, sizeof(T));                                   \
        }                                                                                                              \
    }
WHERE(uint8_t)
WHERE(uint16_t)
WHERE(uint32_t)
WHERE(uint64_t)

PC__KERNEL(where)
{
    (void)stream;
    pc_tensor *operands[4] = {call->out[0], call->in[0], call->in[1], call->in[2]};
    static const pc__run_fn runs[] = {
        [1] = where_uint8_t, [2] = where_uint16_t, [4] = where_uint32_t, [8] = where_uint64_t};
    pc__loop loop;
    pc__loop_make(&loop, 4, operands, NULL);
    pc__loop_run(&loop, runs[pc_dtype_size(call->out[0]->dtype)], 2);
    return PC_OK;
}
