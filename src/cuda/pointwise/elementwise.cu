/* elementwise.cu: the functions of elementwise.c for all dtypes; bools are bytes of 0 and 1. */
#include "cuda/pointwise/elementwise.h"
#include "cuda/shared/functions.cuh"

namespace
{

using namespace pc;

/* A function of the dtypes that its row names; others do not come. */
template <template <class> class F> void of_integers(const pc__cuda_launch *l, int dtype)
{
    if (dtype == PC__CUDA_U8)
        return run(l, F<uint8_t>());
    return dtype == PC__CUDA_I32 ? run(l, F<uint32_t>()) : run(l, F<uint64_t>());
}

template <template <class> class F> void of_floats(const pc__cuda_launch *l, int dtype, double number = 0)
{
    switch (dtype) {
    case PC__CUDA_F16:
        return run(l, function_of<F<pc::f16>>(number));
    case PC__CUDA_BF16:
        return run(l, function_of<F<pc::bf16>>(number));
    case PC__CUDA_F32:
        return run(l, function_of<F<float>>(number));
    default:
        return run(l, function_of<F<double>>(number));
    }
}

template <template <class> class F, class I32, class I64> void with_integers(const pc__cuda_launch *l, int dtype)
{
    switch (dtype) {
    case PC__CUDA_U8:
        return run(l, F<uint8_t>());
    case PC__CUDA_I32:
        return run(l, F<I32>());
    case PC__CUDA_I64:
        return run(l, F<I64>());
    default:
        return of_floats<F>(l, dtype);
    }
}

template <template <class> class F> void of_numbers(const pc__cuda_launch *l, int dtype)
{
    with_integers<F, uint32_t, uint64_t>(l, dtype);
}

template <template <class> class F> void of_ordered(const pc__cuda_launch *l, int dtype)
{
    with_integers<F, int32_t, int64_t>(l, dtype);
}

template <template <class> class F, class Truth> void of_all(const pc__cuda_launch *l, int dtype)
{
    return dtype == PC__CUDA_BOOL ? run(l, Truth()) : of_numbers<F>(l, dtype);
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

#define RUN_INTEGERS(name) of_integers<of_##name>(l, dtype)
#define RUN_FLOATS(name) of_floats<of_##name>(l, dtype)
#define RUN_ORDERED(name) of_ordered<of_##name>(l, dtype)
#define RUN_NUMBERS(name) of_numbers<of_##name>(l, dtype)
#define RUN_ALL(name) of_all<of_##name, truth_of_##name>(l, dtype)
#define CASE(name, dtypes)                                                                                             \
    case PC__POINTWISE_##name:                                                                                         \
        return RUN_##dtypes(name);

void pc__cuda_pointwise(const pc__cuda_launch *l, int function, int dtype, double number)
{
    switch (function) {
#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative)                                               \
    CASE(name, dtypes)                                                                                                 \
    CASE(name##_backward, FLOATS)
#define PC__UNARY(name, dtypes, cost, flags, f) CASE(name, dtypes)
#define PC__BINARY(name, dtypes, cost, flags, f) CASE(name, dtypes)
#define PC__PARAMETRIC(name, cost, f)                                                                                  \
    case PC__POINTWISE_##name:                                                                                         \
        return of_floats<of_##name>(l, dtype, number);
#include "ops/pointwise.def"
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
