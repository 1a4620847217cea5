/* elementwise.cu: the functions of elementwise.c, written once for all dtypes that share their arithmetic: integers
 * wrap, so they are added and multiplied unsigned; bool counts as bytes of 0 and 1. The walk is in loop.cuh. */
#include "cuda/elementwise.h"
#include "cuda/half.cuh"
#include "cuda/loop.cuh"

namespace
{

using pc::run;
using pc::shape_of;

#define BINARY(name, expression)                                                                                       \
    template <class T> struct name : shape_of<T, 2, T, T> {                                                            \
        __device__ T operator()(T x, T y) const                                                                        \
        {                                                                                                              \
            const pc::math<T> a = x, b = y;                                                                            \
            return static_cast<T>(expression);                                                                         \
        }                                                                                                              \
    };

BINARY(add_of, a + b)
BINARY(either, a | b)
BINARY(sub_of, a - b)
BINARY(mul_of, a *b)
BINARY(div_of, a / b)
/* a is the gradient behind the function, b the function's value */
BINARY(relu_back, b <= 0 ? 0 : a)
BINARY(sigmoid_back, a *b *(1 - b))
BINARY(tanh_back, a *(1 - b * b))

/* The same function of floating dtypes, or of any. */
template <template <class> class F> void floating(const pc__cuda_launch *l, int dtype)
{
    switch (dtype) {
    case PC__CUDA_F16:
        return run(l, F<pc::f16>());
    case PC__CUDA_BF16:
        return run(l, F<pc::bf16>());
    case PC__CUDA_F32:
        return run(l, F<float>());
    default:
        return run(l, F<double>());
    }
}

template <template <class> class F> void any(const pc__cuda_launch *l, int dtype)
{
    switch (dtype) {
    case PC__CUDA_BOOL:
    case PC__CUDA_U8:
        return run(l, F<uint8_t>());
    case PC__CUDA_I32:
        return run(l, F<uint32_t>());
    case PC__CUDA_I64:
        return run(l, F<uint64_t>());
    default:
        return floating<F>(l, dtype);
    }
}

#define UNARY(name, expression)                                                                                        \
    template <class T> struct name : shape_of<T, 1, T> {                                                               \
        __device__ T operator()(T x) const                                                                             \
        {                                                                                                              \
            const pc::math<T> a = x;                                                                                   \
            return static_cast<T>(expression);                                                                         \
        }                                                                                                              \
    };

template <class T> struct neg_of : shape_of<T, 1, T> {
    __device__ T operator()(T a) const
    {
        return static_cast<T>(0u - a);
    }
};
#define NEG_OF(T)                                                                                                      \
    template <> struct neg_of<T> : shape_of<T, 1, T> {                                                                 \
        __device__ T operator()(T a) const                                                                             \
        {                                                                                                              \
            return static_cast<T>(-static_cast<pc::math<T>>(a)); /* of 0 it is -0 */                                   \
        }                                                                                                              \
    };
NEG_OF(pc::f16)
NEG_OF(pc::bf16)
NEG_OF(float)
NEG_OF(double)

UNARY(relu_of, a <= 0 ? 0 : a) /* keeps NaN */
UNARY(exp_of, exp(a))
UNARY(log_of, log(a))
UNARY(sqrt_of, sqrt(a))
UNARY(sigmoid_of, 1 / (1 + exp(-a)))
UNARY(tanh_of, tanh(a))

template <class T> struct compare_of : shape_of<uint8_t, 2, T, T> {
    unsigned outcomes;
    __device__ uint8_t operator()(T x, T y) const
    {
        const pc::math<T> a = x, b = y;
        const unsigned outcome = a < b ? PC__LESS : a == b ? PC__EQUAL : a > b ? PC__GREATER : PC__UNORDERED;
        return (outcomes & outcome) != 0;
    }
};

template <class T> void compare(const pc__cuda_launch *l, unsigned outcomes)
{
    compare_of<T> f;
    f.outcomes = outcomes;
    run(l, f);
}

template <class T> struct where_of : shape_of<T, 3, uint8_t, T, T> {
    __device__ T operator()(uint8_t condition, T a, T b) const
    {
        return condition ? a : b;
    }
};

} // namespace

void pc__cuda_binary(const pc__cuda_launch *l, int op, int dtype)
{
    switch (op) {
    case PC__BINARY_ADD:
        return dtype == PC__CUDA_BOOL ? run(l, either<uint8_t>()) : any<add_of>(l, dtype);
    case PC__BINARY_SUB:
        return any<sub_of>(l, dtype);
    case PC__BINARY_MUL:
        return any<mul_of>(l, dtype);
    case PC__BINARY_DIV:
        return floating<div_of>(l, dtype);
    case PC__BINARY_RELU_BACKWARD:
        return floating<relu_back>(l, dtype);
    case PC__BINARY_SIGMOID_BACKWARD:
        return floating<sigmoid_back>(l, dtype);
    default:
        return floating<tanh_back>(l, dtype);
    }
}

void pc__cuda_unary(const pc__cuda_launch *l, int op, int dtype)
{
    switch (op) {
    case PC__UNARY_NEG:
        return any<neg_of>(l, dtype);
    case PC__UNARY_RELU:
        if (dtype == PC__CUDA_I32)
            return run(l, relu_of<int32_t>());
        if (dtype == PC__CUDA_I64)
            return run(l, relu_of<int64_t>());
        return dtype == PC__CUDA_U8 ? run(l, relu_of<uint8_t>()) : floating<relu_of>(l, dtype);
    case PC__UNARY_EXP:
        return floating<exp_of>(l, dtype);
    case PC__UNARY_LOG:
        return floating<log_of>(l, dtype);
    case PC__UNARY_SQRT:
        return floating<sqrt_of>(l, dtype);
    case PC__UNARY_SIGMOID:
        return floating<sigmoid_of>(l, dtype);
    default:
        return floating<tanh_of>(l, dtype);
    }
}

void pc__cuda_compare(const pc__cuda_launch *l, unsigned outcomes, int dtype)
{
    switch (dtype) {
    case PC__CUDA_BOOL:
    case PC__CUDA_U8:
        return compare<uint8_t>(l, outcomes);
    case PC__CUDA_I32:
        return compare<int32_t>(l, outcomes);
    case PC__CUDA_I64:
        return compare<int64_t>(l, outcomes);
    case PC__CUDA_F16:
        return compare<pc::f16>(l, outcomes);
    case PC__CUDA_BF16:
        return compare<pc::bf16>(l, outcomes);
    case PC__CUDA_F32:
        return compare<float>(l, outcomes);
    default:
        return compare<double>(l, outcomes);
    }
}

void pc__cuda_where(const pc__cuda_launch *l, size_t element_bytes)
{
    if (element_bytes == 1)
        run(l, where_of<uint8_t>());
    else if (element_bytes == 2)
        run(l, where_of<uint16_t>());
    else if (element_bytes == 4)
        run(l, where_of<uint32_t>());
    else
        run(l, where_of<uint64_t>());
}
