/* elementwise.cu: the functions of elementwise.c for all dtypes; bool counts as bytes of 0 and 1. */
#include "cuda/elementwise.h"
#include "cuda/functions.cuh"

namespace
{

using namespace pc;

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
