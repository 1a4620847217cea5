/* store_as.cuh: results of float64 in the dtype that is wanted. */
#ifndef PC__CUDA_STORE_AS_CUH
#define PC__CUDA_STORE_AS_CUH

#include "cuda/runtime/view.h"
#include "cuda/shared/half.cuh"

namespace
{

/* A number as a result of dtype `to`, rounded once. */
__device__ __forceinline__ void store_as(void *out, int to, int64_t i, double value)
{
    switch (to) {
    case PC__CUDA_F16:
        static_cast<pc::f16 *>(out)[i] = pc::f16(static_cast<float>(value));
        break;
    case PC__CUDA_BF16:
        static_cast<pc::bf16 *>(out)[i] = pc::bf16(static_cast<float>(value));
        break;
    case PC__CUDA_F32:
        static_cast<float *>(out)[i] = static_cast<float>(value);
        break;
    default:
        static_cast<double *>(out)[i] = value;
    }
}

template <class T, int W> __device__ __forceinline__ void store_pack(void *out, int64_t i, const double (&value)[W])
{
    struct alignas(W * sizeof(T) < 16 ? W * sizeof(T) : 16) pack {
        T at[W];
    } all;
#pragma unroll
    for (int w = 0; w < W; w++)
        all.at[w] = T(static_cast<pc::math<T>>(value[w]));
    *reinterpret_cast<pack *>(static_cast<T *>(out) + i) = all;
}

/* W neighbours, the first of them on a multiple of W. */
template <int W> __device__ __forceinline__ void store_as(void *out, int to, int64_t i, const double (&value)[W])
{
    switch (to) {
    case PC__CUDA_F16:
        return store_pack<pc::f16>(out, i, value);
    case PC__CUDA_BF16:
        return store_pack<pc::bf16>(out, i, value);
    case PC__CUDA_F32:
        return store_pack<float>(out, i, value);
    default:
        return store_pack<double>(out, i, value);
    }
}

} // namespace

#endif
