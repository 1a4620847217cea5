/* elementwise.c: arithmetic, functions and comparisons, element by element. */
#include "cpu/level/each.h"

#include <math.h>

#define KERNEL(name, cost, ...)                                                                                        \
    PC__KERNEL(name)                                                                                                   \
    {                                                                                                                  \
        static const pc__run_fn runs[PC_DTYPE_COUNT] = __VA_ARGS__;                                                    \
        (void)stream;                                                                                                  \
        return pc__each(call, runs, cost);                                                                             \
    }

/* Integers wrap, as in PyTorch: the arithmetic is done unsigned. */
PC__RUN2(add_bool, bool, bool, a || b)
PC__RUN2(add_u8, uint8_t, uint8_t, a + b)
PC__RUN2(add_i32, int32_t, int32_t, (uint32_t)a + (uint32_t)b)
PC__RUN2(add_i64, int64_t, int64_t, (uint64_t)a + (uint64_t)b)
PC__RUN2(add_f32, float, float, a + b)
PC__RUN2(add_f64, double, double, a + b)
PC__RUN2(sub_u8, uint8_t, uint8_t, a - b)
PC__RUN2(sub_i32, int32_t, int32_t, (uint32_t)a - (uint32_t)b)
PC__RUN2(sub_i64, int64_t, int64_t, (uint64_t)a - (uint64_t)b)
PC__RUN2(sub_f32, float, float, a - b)
PC__RUN2(sub_f64, double, double, a - b)
PC__RUN2(mul_bool, bool, bool, a &&b)
PC__RUN2(mul_u8, uint8_t, uint8_t, a *b)
PC__RUN2(mul_i32, int32_t, int32_t, (uint32_t)a *(uint32_t)b)
PC__RUN2(mul_i64, int64_t, int64_t, (uint64_t)a *(uint64_t)b)
PC__RUN2(mul_f32, float, float, a *b)
PC__RUN2(mul_f64, double, double, a *b)
PC__RUN2(div_f32, float, float, a / b)
PC__RUN2(div_f64, double, double, a / b)

KERNEL(add, 1,
       {[PC_BOOL] = add_bool,
        [PC_U8] = add_u8,
        [PC_I32] = add_i32,
        [PC_I64] = add_i64,
        [PC_F32] = add_f32,
        [PC_F64] = add_f64})
KERNEL(sub, 1, {[PC_U8] = sub_u8, [PC_I32] = sub_i32, [PC_I64] = sub_i64, [PC_F32] = sub_f32, [PC_F64] = sub_f64})
KERNEL(mul, 1,
       {[PC_BOOL] = mul_bool,
        [PC_U8] = mul_u8,
        [PC_I32] = mul_i32,
        [PC_I64] = mul_i64,
        [PC_F32] = mul_f32,
        [PC_F64] = mul_f64})
KERNEL(div, 4, {[PC_F32] = div_f32, [PC_F64] = div_f64})

PC__RUN1(neg_u8, uint8_t, uint8_t, -a)
PC__RUN1(neg_i32, int32_t, int32_t, 0u - (uint32_t)a)
PC__RUN1(neg_i64, int64_t, int64_t, 0ull - (uint64_t)a)
PC__RUN1(neg_f32, float, float, -a)
PC__RUN1(neg_f64, double, double, -a)
KERNEL(neg, 1, {[PC_U8] = neg_u8, [PC_I32] = neg_i32, [PC_I64] = neg_i64, [PC_F32] = neg_f32, [PC_F64] = neg_f64})

/* !(a <= 0) keeps NaN */
PC__RUN1(relu_u8, uint8_t, uint8_t, a)
PC__RUN1(relu_i32, int32_t, int32_t, a > 0 ? a : 0)
PC__RUN1(relu_i64, int64_t, int64_t, a > 0 ? a : 0)
PC__RUN1(relu_f32, float, float, a <= 0 ? 0 : a)
PC__RUN1(relu_f64, double, double, a <= 0 ? 0 : a)
KERNEL(relu, 1, {[PC_U8] = relu_u8, [PC_I32] = relu_i32, [PC_I64] = relu_i64, [PC_F32] = relu_f32, [PC_F64] = relu_f64})

#define FUNCTION(name, cost, f32, f64)                                                                                 \
    PC__RUN1(name##_f32, float, float, f32)                                                                            \
    PC__RUN1(name##_f64, double, double, f64)                                                                          \
    KERNEL(name, cost, {[PC_F32] = name##_f32, [PC_F64] = name##_f64})

FUNCTION(exp, 16, pc__exp_f32(a), exp(a))
FUNCTION(log, 40, logf(a), log(a))
FUNCTION(sqrt, 8, sqrtf(a), sqrt(a))
FUNCTION(sigmoid, 20, 1 / (1 + pc__exp_f32(-a)), 1 / (1 + exp(-a)))
FUNCTION(tanh, 60, tanhf(a), tanh(a))

#define BACKWARD(name, expression)                                                                                     \
    PC__RUN2(name##_backward_f32, float, float, expression)                                                            \
    PC__RUN2(name##_backward_f64, double, double, expression)                                                          \
    KERNEL(name##_backward, 2, {[PC_F32] = name##_backward_f32, [PC_F64] = name##_backward_f64})

/* a is the gradient behind the function, b the function's value */
BACKWARD(relu, b <= 0 ? 0 : a)
BACKWARD(sigmoid, a *b *(1 - b))
BACKWARD(tanh, a *(1 - b * b))

#define COMPARE(name, expression)                                                                                      \
    PC__RUN2(name##_bool, bool, bool, expression)                                                                      \
    PC__RUN2(name##_u8, uint8_t, bool, expression)                                                                     \
    PC__RUN2(name##_i32, int32_t, bool, expression)                                                                    \
    PC__RUN2(name##_i64, int64_t, bool, expression)                                                                    \
    PC__RUN2(name##_f32, float, bool, expression)                                                                      \
    PC__RUN2(name##_f64, double, bool, expression)                                                                     \
    KERNEL(name, 1,                                                                                                    \
           {[PC_BOOL] = name##_bool,                                                                                   \
            [PC_U8] = name##_u8,                                                                                       \
            [PC_I32] = name##_i32,                                                                                     \
            [PC_I64] = name##_i64,                                                                                     \
            [PC_F32] = name##_f32,                                                                                     \
            [PC_F64] = name##_f64})

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
