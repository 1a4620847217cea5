/* loss.cuh: losses of pairs of numbers, an input or logit x and a target y. */
#ifndef PC__CUDA_LOSS_CUH
#define PC__CUDA_LOSS_CUH

#include "cuda/loss/loss.h"
#include "cuda/shared/real.cuh"

namespace
{

template <int KIND, class T> __device__ inline double lost(T x, T y)
{
    if (KIND == PC__LOSS_MSE)
        return (double)(x - y) * (double)(x - y);
    const T size = x < 0 ? -x : x;
    return (double)((x > 0 ? x : T(0)) - x * y + log1p_of(exp_of(-size)));
}

/* Of the mean of some PC__LOSS_BCE, at x; `inverse`: 1 / how many. */
template <class T> __device__ inline T bce_gradient(T x, T y, T inverse)
{
    return (logistic_of(x) - y) * inverse;
}

} // namespace

#endif
