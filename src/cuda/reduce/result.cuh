/* result.cuh: a sum as it is written. */
#ifndef PC__CUDA_RESULT_CUH
#define PC__CUDA_RESULT_CUH

#include "cuda/shared/half.cuh"

namespace
{

/* The mean, where it is divided; rounded once. */
template <class O> __device__ __forceinline__ O result_of(double total, double divisor)
{
    return static_cast<O>(static_cast<pc::math<O>>(divisor == 1 ? total : total / divisor));
}

template <class O> __device__ __forceinline__ O result_of(unsigned long long total, double)
{
    return static_cast<O>(total);
}

} // namespace

#endif
