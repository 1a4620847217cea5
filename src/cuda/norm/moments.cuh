/* moments.cuh: the mean of some numbers and the squares off it, which are joined with those of others (Chan, Golub, LeVeque
 * 1979); and two plain sums in the same places. */
#ifndef PC__CUDA_NORM_MOMENTS_CUH
#define PC__CUDA_NORM_MOMENTS_CUH

#include "cuda/norm/pack.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

template <class M> struct alignas(2 * sizeof(M)) pair {
    M first, second;
};

template <class M> __device__ __forceinline__ pair<M> operator+(const pair<M> &a, const pair<M> &b)
{
    return {a.first + b.first, a.second + b.second};
}

template <class M> __device__ __forceinline__ pair<M> swapped(const pair<M> &value, int distance)
{
    return {::swapped(value.first, distance), ::swapped(value.second, distance)};
}

/* A number or a pair, over a warp; every thread gets the sum. */
template <class V> __device__ __forceinline__ V warp_total(V value)
{
    using ::swapped;
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        value = value + swapped(value, distance);
    return value;
}

template <class M> struct moments {
    M count, first, second;
};

template <class M> __device__ __forceinline__ moments<M> joined(const moments<M> &a, const moments<M> &b)
{
    const M count = a.count + b.count, part = count > 0 ? b.count / count : M(0), off = b.first - a.first;
    return {count, a.first + off * part, a.second + b.second + off * off * a.count * part};
}

template <class M, int K> __device__ __forceinline__ moments<M> moments_of(const numbers<M, K> &x)
{
    M sum = 0, squares = 0;
#pragma unroll
    for (int j = 0; j < K; j++)
        sum += x.at[j];
    const M mean = sum / M(K);
#pragma unroll
    for (int j = 0; j < K; j++)
        squares += (x.at[j] - mean) * (x.at[j] - mean);
    return {M(K), mean, squares};
}

/* PLAIN: sums. */
template <bool PLAIN, class M> __device__ __forceinline__ moments<M> together(const moments<M> &a, const moments<M> &b)
{
    return PLAIN ? moments<M>{a.count + b.count, a.first + b.first, a.second + b.second} : joined(a, b);
}

template <class M> __device__ __forceinline__ moments<M> of_lane(const moments<M> &value, int lane)
{
    return {__shfl_sync(0xffffffffu, value.count, lane), __shfl_sync(0xffffffffu, value.first, lane),
            __shfl_sync(0xffffffffu, value.second, lane)};
}

/* Over a warp: the first lane's is right. */
template <bool PLAIN, class M> __device__ __forceinline__ moments<M> over_warp(moments<M> value)
{
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        value = together<PLAIN>(value, of_lane(value, threadIdx.x % 32 ^ distance));
    }
    return value;
}

/* Over `lanes` threads, a warp or all of the block: the first one's is right. */
template <bool PLAIN, class M>
__device__ __forceinline__ moments<M> over_lanes(moments<M> value, int lanes, moments<M> *room)
{
    value = over_warp<PLAIN>(value);
    if (lanes == 32)
        return value;
    if (threadIdx.x % 32 == 0)
        room[threadIdx.x / 32] = value;
    __syncthreads();
    for (int i = 1; i < lanes / 32 && threadIdx.x == 0; i++)
        value = together<PLAIN>(value, room[i]);
    return value;
}

} // namespace

#endif
