/* pack.cuh: some neighbours of a tensor, and of parameters, as they are computed with. */
#ifndef PC__CUDA_NORM_PACK_CUH
#define PC__CUDA_NORM_PACK_CUH

#include "cuda/norm/rows.h"
#include "cuda/shared/dtype.cuh"
#include "cuda/shared/load.cuh"
#include "cuda/shared/real.cuh"

namespace
{

/* What is computed with in W places. */
template <class M, int W> struct numbers {
    M at[W];
};

template <class T, int W> __device__ __forceinline__ numbers<pc::math<T>, W> taken(const vector<T, W> &raw)
{
    numbers<pc::math<T>, W> x;
#pragma unroll
    for (int j = 0; j < W; j++)
        x.at[j] = pc::math<T>(raw.at[j]);
    return x;
}

template <class T, int W> __device__ __forceinline__ vector<T, W> raw_at(const void *from, long long i)
{
    return *reinterpret_cast<const vector<T, W> *>(static_cast<const T *>(from) + i);
}

template <class T, int W> __device__ __forceinline__ void put(void *to, long long i, const numbers<pc::math<T>, W> &x)
{
    vector<T, W> raw;
#pragma unroll
    for (int j = 0; j < W; j++)
        raw.at[j] = T(x.at[j]);
    *reinterpret_cast<vector<T, W> *>(static_cast<T *>(to) + i) = raw;
}

/* W neighbours of a vector, which lie on 16 bytes or W is 1; `missing` where there is none. */
template <class T, int W>
__device__ __forceinline__ numbers<pc::math<T>, W> parameters(const pc__cuda_vector &v, long long i,
                                                              pc::math<T> missing)
{
    typedef pc::math<T> M;
    numbers<M, W> x;
    if (!v.at) {
#pragma unroll
        for (int j = 0; j < W; j++)
            x.at[j] = missing;
    } else if (sizeof(T) == 2 && v.wide) {
        x = taken<M, W>(raw_at<M, W>(v.at, i));
    } else {
        x = taken<T, W>(raw_at<T, W>(v.at, i));
    }
    return x;
}

/* Number i of the gradient of a parameter of tensors of T, where it is wanted. */
template <class T>
__device__ __forceinline__ void put_gradient(const pc__cuda_vector_gradient &v, long long i, pc::math<T> value)
{
    if (v.at && sizeof(T) == 2 && !v.wide)
        static_cast<T *>(v.at)[i] = T(value);
    else if (v.at)
        static_cast<pc::math<T> *>(v.at)[i] = value;
}

/* K neighbours from `from` on, wherever they begin: where on 16 bytes, in one access. */
template <int K, class T> __device__ __forceinline__ vector<T, K> some_at(const T *from)
{
    if constexpr (K > 1) {
        if (reinterpret_cast<uintptr_t>(from) % (K * sizeof(T)) != 0) {
            vector<T, K> x;
#pragma unroll
            for (int j = 0; j < K; j++)
                x.at[j] = from[j];
            return x;
        }
    }
    return *reinterpret_cast<const vector<T, K> *>(from);
}

template <int K, class T> __device__ __forceinline__ void put_some(T *to, const vector<T, K> &x)
{
    if constexpr (K > 1) {
        if (reinterpret_cast<uintptr_t>(to) % (K * sizeof(T)) != 0) {
#pragma unroll
            for (int j = 0; j < K; j++)
                to[j] = x.at[j];
            return;
        }
    }
    *reinterpret_cast<vector<T, K> *>(to) = x;
}

/* f(a number of x's type, one of y's). */
template <class F> void with_both(const pc__cuda_norm_rows &r, F &&f)
{
    if (r.dtype_y == r.dtype)
        return with_number(r.dtype, [&](auto number) { f(number, number); });
    return r.dtype_y == PC__CUDA_F16 ? f(float(), pc::f16()) : f(float(), pc::bf16());
}

/* The sum over LANES neighbouring threads, a warp or some; each use has a room of its own, [warps of the block]. All
 * threads of the block call it. */
template <int LANES, class M> __device__ __forceinline__ M sum_over(M value, M *room)
{
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, distance);
    if (LANES == 32)
        return value;
    constexpr int warps = LANES / 32;
    const int warp = threadIdx.x / 32, first = warp / warps * warps;
    if (threadIdx.x % 32 == 0)
        room[warp] = value;
    __syncthreads();
    value = 0;
#pragma unroll
    for (int i = 0; i < warps; i++)
        value += room[first + i];
    return value;
}

} // namespace

#endif
