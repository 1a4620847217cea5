/* sum_of.cuh: neighbours in memory that are added up. */
#ifndef PC__CUDA_INDEX_SUM_OF_CUH
#define PC__CUDA_INDEX_SUM_OF_CUH

#include "cuda/shared/half.cuh"
#include "cuda/shared/load.cuh"

namespace
{

/* N neighbours of T, as they are added. */
template <class T, int N> struct alignas(N * sizeof(pc::math<T>) < 16 ? N * sizeof(pc::math<T>) : 16) sum_of {
    typedef pc::math<T> M;
    M at[N];

    /* As it is: 0 + -0 is another zero. */
    __device__ __forceinline__ void take(const vector<T, N> &x)
    {
#pragma unroll
        for (int k = 0; k < N; k++)
            at[k] = M(x.at[k]);
    }
    __device__ __forceinline__ void operator+=(const vector<T, N> &x)
    {
#pragma unroll
        for (int k = 0; k < N; k++)
            at[k] = M(at[k] + M(x.at[k]));
    }
    __device__ __forceinline__ void operator+=(const sum_of &x)
    {
#pragma unroll
        for (int k = 0; k < N; k++)
            at[k] = M(at[k] + x.at[k]);
    }
    __device__ __forceinline__ vector<T, N> rounded() const
    {
        vector<T, N> y;
#pragma unroll
        for (int k = 0; k < N; k++)
            y.at[k] = T(at[k]);
        return y;
    }
};

} // namespace

#endif
