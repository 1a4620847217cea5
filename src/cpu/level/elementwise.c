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

KERNEL(add, 1, {add_bool, add_u8, add_i32, add_i64, add_f32, add_f64})
KERNEL(sub, 1, {NULL, sub_u8, sub_i32, sub_i64, sub_f32, sub_f64})
KERNEL(mul, 1, {mul_bool, mul_u8, mul_i32, mul_i64, mul_f32, mul_f64})
KERNEL(div, 4, {[PC_F32] = div_f32, [PC_F64] = div_f64})

PC__RUN1(neg_u8, uint8_t, uint8_t, -a)
PC__RUN1(neg_i32, int32_t, int32_t, 0u - (uint32_t)a)
PC__RUN1(neg_i64, int64_t, int64_t, 0ull - (uint64_t)a)
PC__RUN1(neg_f32, float, float, -a)
PC__RUN1(neg_f64, double, double, -a)
KERNEL(neg, 1, {NULL, neg_u8, neg_i32, neg_i64, neg_f32, neg_f64})

/* !(a <= 0) keeps NaN */
PC__RUN1(relu_u8, uint8_t, uint8_t, a)
PC__RUN1(relu_i32, int32_t, int32_t, a > 0 ? a : 0)
PC__RUN1(relu_i64, int64_t, int64_t, a > 0 ? a : 0)
PC__RUN1(relu_f32, float, float, a <= 0 ? 0 : a)
PC__RUN1(relu_f64, double, double, a <= 0 ? 0 : a)
KERNEL(relu, 1, {NULL, relu_u8, relu_i32, relu_i64, relu_f32, relu_f64})

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
    KERNEL(name, 1, {name##_bool, name##_u8, name##_i32, name##_i64, name##_f32, name##_f64})

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
WHERE(uint32_t)
WHERE(uint64_t)

PC__KERNEL(where)
{
    (void)stream;
    pc_tensor *operands[4] = {call->out[0], call->in[0], call->in[1], call->in[2]};
    size_t size = pc_dtype_size(call->out[0]->dtype);
    pc__loop loop;
    pc__loop_make(&loop, 4, operands, NULL);
    pc__loop_run(&loop, size == 1 ? where_uint8_t : size == 4 ? where_uint32_t : where_uint64_t, 2);
    return PC_OK;
}
