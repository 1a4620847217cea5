/* running.cuh: the maximum of a row and the sum of exp(x - it), found together and in pieces. */
#ifndef PC__CUDA_RUNNING_CUH
#define PC__CUDA_RUNNING_CUH

#include "cuda/shared/half.cuh"
#include "cuda/shared/real.cuh"
#include "cuda/shared/sums.cuh"

#include <math_constants.h>

namespace pc
{

/* Elements of T so far; of nothing but -inf the sum is 0. BRIEF: exp is __expf, whose error is some 2e-6 where the result is
 * not tiny. */
template <class T, bool BRIEF> struct running {
    typedef math<T> M;
    M most, sum;

    static __device__ __forceinline__ M power(M x)
    {
        if constexpr (BRIEF)
            return __expf(x);
        else
            return exp_of(x);
    }

    static __device__ __forceinline__ running nothing()
    {
        return {M(-CUDART_INF), M(0)};
    }

    __device__ __forceinline__ M base() const
    {
        return most > M(-CUDART_INF) ? most : M(0);
    }

    __device__ __forceinline__ void rise_to(M higher)
    {
        if (higher > most) {
            sum *= power(most - higher);
            most = higher;
        }
    }

    /* Neighbours of the row, the first of them at place so and so. */
    template <int N> __device__ __forceinline__ void operator()(const T (&x)[N], unsigned)
    {
        M higher = most;
#pragma unroll
        for (int k = 0; k < N; k++)
            higher = larger()(higher, M(x[k]));
        rise_to(higher);
#pragma unroll
        for (int k = 0; k < N; k++)
            sum += power(M(x[k]) - base());
    }

    __device__ __forceinline__ void operator+=(const running &other)
    {
        rise_to(larger()(most, other.most));
        sum += other.sum * power(other.most - base());
    }

    /* So many neighbours of a warp, which is here as a whole, get what theirs come to together. */
    __device__ __forceinline__ void join_lanes(int lanes)
    {
        for (int step = lanes / 2; step > 0; step /= 2) {
            running other;
            other.most = __shfl_xor_sync(0xffffffffu, most, step);
            other.sum = __shfl_xor_sync(0xffffffffu, sum, step);
            *this += other;
        }
    }

    /* All threads of a warp get what theirs come to together. */
    __device__ __forceinline__ void join_warp()
    {
        rise_to(warp_join<larger>(most));
        sum = warp_join<plus>(sum);
    }
};

} // namespace pc

#endif
