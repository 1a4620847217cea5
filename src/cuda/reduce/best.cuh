/* best.cuh: the largest or the smallest so far, and its place. NaN beats everything; of equals the first counts. */
#ifndef PC__CUDA_BEST_CUH
#define PC__CUDA_BEST_CUH

#include "cuda/shared/half.cuh"

namespace
{

/* Which of two numbers counts. */
struct the_larger {
    template <class M> static __device__ __forceinline__ bool beats(M a, M b)
    {
        return a > b;
    }
};

struct the_smaller {
    template <class M> static __device__ __forceinline__ bool beats(M a, M b)
    {
        return a < b;
    }
};

/* A value that is wanted: `out` is there. */
template <class T> __device__ __forceinline__ void put(T *out, int64_t i, pc::math<T> value)
{
    if (out)
        out[i] = static_cast<T>(value);
}

/* Of some elements of T, whose places are counted by 32 bits. */
template <class T, class Order> struct leader {
    typedef pc::math<T> M;
    M value;
    unsigned place;

    /* One that stands behind all that were seen. */
    __device__ __forceinline__ void see(M candidate, unsigned at)
    {
        const bool more = Order::beats(candidate, value) || (candidate != candidate && value == value);
        value = more ? candidate : value;
        place = more ? at : place;
    }

    /* Neighbours behind all that were seen, the first of them at `at`. */
    template <int N> __device__ __forceinline__ void operator()(const T (&x)[N], unsigned at)
    {
#pragma unroll
        for (int k = 0; k < N; k++)
            see(x[k], at + k);
    }

    /* The best of other elements, wherever they stand. */
    __device__ __forceinline__ void meet(M other, unsigned at)
    {
        const bool nan = value != value, other_nan = other != other;
        const bool equal = value == other || (nan && other_nan);
        const bool more = equal ? at < place : other_nan || (!nan && Order::beats(other, value));
        value = more ? other : value;
        place = more ? at : place;
    }
};

} // namespace

#endif
