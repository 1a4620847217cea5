/* elementwise.c: arithmetic, functions and comparisons, element by element. */
#include "cpu/level/each.h"
#include "cpu/level/functions.h"

#define FLOATS_TABLE(name) [PC_F32] = name##_f32, [PC_F64] = name##_f64
#define NUMBERS_TABLE(name) FLOATS_TABLE(name), [PC_U8] = name##_u8, [PC_I32] = name##_i32, [PC_I64] = name##_i64
#define ORDERED_TABLE(name) NUMBERS_TABLE(name)
#define ALL_TABLE(name) NUMBERS_TABLE(name), [PC_BOOL] = name##_bool

#define KERNEL(name, dtypes, cost)                                                                                     \
    PC__KERNEL(name)                                                                                                   \
    {                                                                                                                  \
        static const pc__run_fn runs[PC_DTYPE_COUNT] = {dtypes##_TABLE(name)};                                         \
        (void)stream;                                                                                                  \
        return pc__each(call, runs, cost);                                                                             \
    }

/* Loops over the dtypes of a row, RUN being PC__RUN1 or PC__RUN2. */
#define FLOATS_RUNS(RUN, name, f) RUN(name##_f32, float, float, f) RUN(name##_f64, double, double, f)
#define NUMBERS_RUNS(RUN, name, f)                                                                                     \
    FLOATS_RUNS(RUN, name, f)                                                                                          \
    RUN(name##_u8, uint8_t, uint8_t, f)                                                                                \
    RUN(name##_i32, uint32_t, uint32_t, f)                                                                             \
    RUN(name##_i64, uint64_t, uint64_t, f)
#define ORDERED_RUNS(RUN, name, f)                                                                                     \
    FLOATS_RUNS(RUN, name, f)                                                                                          \
    RUN(name##_u8, uint8_t, uint8_t, f)                                                                                \
    RUN(name##_i32, int32_t, int32_t, f)                                                                               \
    RUN(name##_i64, int64_t, int64_t, f)
#define ALL_RUNS(RUN, name, f) NUMBERS_RUNS(RUN, name, f) RUN(name##_bool, uint8_t, bool, (f) != 0)

#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative)                                               \
    dtypes##_RUNS(PC__RUN1, name, f) KERNEL(name, dtypes, cost) FLOATS_RUNS(PC__RUN2, name##_backward, derivative)     \
        KERNEL(name##_backward, FLOATS, cost)
#define PC__UNARY(name, dtypes, cost, flags, f) dtypes##_RUNS(PC__RUN1, name, f) KERNEL(name, dtypes, cost)
#define PC__BINARY(name, dtypes, cost, flags, f) dtypes##_RUNS(PC__RUN2, name, f) KERNEL(name, dtypes, cost)
#include "ops/pointwise.def"

const pc__dense_fn pc__pointwise_f32[PC__POINTWISE_COUNT] = {
#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative)                                               \
    [PC__POINTWISE_##name] = name##_f32_dense, [PC__POINTWISE_##name##_backward] = name##_backward_f32_dense,
#define PC__UNARY(name, dtypes, cost, flags, f) [PC__POINTWISE_##name] = name##_f32_dense,
#define PC__BINARY(name, dtypes, cost, flags, f) [PC__POINTWISE_##name] = name##_f32_dense,
#include "ops/pointwise.def"
};

#define COMPARE(name, expression)                                                                                      \
    PC__RUN2(name##_bool, bool, bool, expression)                                                                      \
    PC__RUN2(name##_u8, uint8_t, bool, expression)                                                                     \
    PC__RUN2(name##_i32, int32_t, bool, expression)                                                                    \
    PC__RUN2(name##_i64, int64_t, bool, expression)                                                                    \
    PC__RUN2(name##_f32, float, bool, expression)                                                                      \
    PC__RUN2(name##_f64, double, bool, expression)                                                                     \
    KERNEL(name, ALL, 1)

COMPARE(eq, a == b)
COMPARE(ne, a != b)
COMPARE(lt, a < b)
COMPARE(le, a <= b)
COMPARE(gt, a > b)
COMPARE(ge, a >= b)

#define WHERE(T)                                                                                                       \
    static void where_##T(char *const *data, const int64_t *s, int64_t n, const void *context)                         \
    {                                                                                                                  \
        (void)context;                                                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            bool c = *(const bool *)(data[1] + i * s[1]);                                                              \
            *(T *)(void *)(data[0] + i * s[0]) =                                                                       \
                *(const T *)(const void *)(c ? data[2] + i * s[2] : data[3] + i * s[3]);                               \
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
