/* sums.cuh: sums and maxima over a warp and over a block, always in the same order: the same bits every time. */
#ifndef PC__CUDA_SUMS_CUH
#define PC__CUDA_SUMS_CUH

struct plus {
    template <class T> __device__ T operator()(T a, T b) const
    {
        return a + b;
    }
};

struct larger {
    template <class T> __device__ T operator()(T a, T b) const
    {
        return b > a ? b : a;
    }
};

template <class Join, class T> __device__ inline T warp_join(T value)
{
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        value = Join()(value, __shfl_xor_sync(0xffffffffu, value, distance));
    return value;
}

/* Over `lanes` neighbours of a warp, a power of 2; every one gets the sum. */
template <class T> __device__ __forceinline__ T sum_of_lanes(T value, int lanes)
{
    for (int distance = lanes / 2; distance > 0; distance /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}

/* What the thread has that lies so far off in the warp; of a struct a function of its own. */
template <class M> __device__ __forceinline__ M swapped(M value, int distance)
{
    return __shfl_xor_sync(0xffffffffu, value, distance);
}

/* The sums of all threads of the block, of numbers or what else has + and swapped(), in all of them. The room, one for each
 * warp, is for one use in turn with another. */
template <class V> __device__ __forceinline__ V over_block(V value, V *room)
{
    const int warps = (int)blockDim.x / 32;
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        value = value + swapped(value, distance);
    if (warps == 1)
        return value;
    if (threadIdx.x % 32 == 0)
        room[threadIdx.x / 32] = value;
    __syncthreads();
    value = (int)threadIdx.x % 32 < warps ? room[threadIdx.x % 32] : V{};
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        value = value + swapped(value, distance);
    return value;
}

/* Over all threads of a block of whole warps; every thread gets the result. `nothing` leaves values as they are. Once a
 * kernel for each Join and T: the memory between the warps is not guarded against a second use. */
template <class Join, int THREADS, class T> __device__ inline T block_join(T value, T nothing)
{
    __shared__ T parts[THREADS / 32];
    const int lane = threadIdx.x % 32;
    value = warp_join<Join>(value);
    if (THREADS == 32)
        return value;
    if (lane == 0)
        parts[threadIdx.x / 32] = value;
    __syncthreads();
    return warp_join<Join>(lane < THREADS / 32 ? parts[lane] : nothing);
}

/* Quotients, by 32 bits where the numbers allow: several times as fast. Both are at least 0. */
__device__ inline long long quotient(long long a, long long b)
{
    return (a | b) >> 32 ? a / b : (long long)((unsigned)a / (unsigned)b);
}

#endif
