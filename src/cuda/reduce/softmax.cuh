/* softmax.cuh: what softmax and its kin make of one element, and what they sum up for that. */
#ifndef PC__CUDA_SOFTMAX_CUH
#define PC__CUDA_SOFTMAX_CUH

#include "cuda/reduce/running.cuh"
#include "cuda/reduce/softmax.h"

namespace
{

template <int OP> struct traits {
    static const bool backward = OP == PC__SOFTMAX_BACKWARD || OP == PC__LOG_SOFTMAX_BACKWARD;
    static const bool logarithm = OP == PC__LOG_SOFTMAX || OP == PC__LOG_SOFTMAX_BACKWARD;
};

/* For rows of 16-bit numbers the short way: its error is far below theirs. */
template <class T> using so_far = pc::running<T, sizeof(T) == 2>;

template <class T> __device__ inline pc::math<T> power(pc::math<T> x)
{
    return so_far<T>::power(x);
}

/* What a row's elements add up to: exp(x - most); g y, or g where y is a logarithm. */
template <class T, int OP> __device__ inline pc::math<T> summand(pc::math<T> a, pc::math<T> b, pc::math<T> most)
{
    if (!traits<OP>::backward)
        return power<T>(a - most);
    return traits<OP>::logarithm ? a : a * b;
}

/* The sum as the elements need it, once a row. */
template <class T, int OP> __device__ inline T finished(T sum)
{
    return traits<OP>::backward ? sum : traits<OP>::logarithm ? log_of(sum) : 1 / sum;
}

/* One element: exp(x - most) / sum, (x - most) - log sum, y (g - sum), g - exp(y) sum. `term` is its summand. */
template <class T, int OP>
__device__ inline pc::math<T> element(pc::math<T> a, pc::math<T> b, pc::math<T> term, pc::math<T> most, pc::math<T> sum)
{
    if (!traits<OP>::backward)
        return traits<OP>::logarithm ? a - most - sum : term * sum;
    return traits<OP>::logarithm ? a - power<T>(b) * sum : b * (a - sum);
}

/* A kernel's numbers and op. */
template <class T, int OP> struct kind {
    using number = T;
    static constexpr int op = OP;
};

template <int OP, class LAUNCH> inline auto with_dtype(int dtype, LAUNCH launch)
{
    switch (dtype) {
    case PC__CUDA_F16:
        return launch(kind<pc::f16, OP>());
    case PC__CUDA_BF16:
        return launch(kind<pc::bf16, OP>());
    case PC__CUDA_F32:
        return launch(kind<float, OP>());
    default:
        return launch(kind<double, OP>());
    }
}

/* What launch(kind<T, OP>) returns for the T and OP of these. */
template <class LAUNCH> inline auto with_kind(int dtype, enum pc__cuda_softmax_op op, LAUNCH launch)
{
    switch (op) {
    case PC__SOFTMAX:
        return with_dtype<PC__SOFTMAX>(dtype, launch);
    case PC__LOG_SOFTMAX:
        return with_dtype<PC__LOG_SOFTMAX>(dtype, launch);
    case PC__SOFTMAX_BACKWARD:
        return with_dtype<PC__SOFTMAX_BACKWARD>(dtype, launch);
    default:
        return with_dtype<PC__LOG_SOFTMAX_BACKWARD>(dtype, launch);
    }
}

} // namespace

#endif
