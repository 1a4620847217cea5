/* pool.cuh: windows, places and neighbouring channels, for the kernels of pooling. */
#ifndef PC__CUDA_POOL_CUH
#define PC__CUDA_POOL_CUH

#include "cuda/pool/pool.h"
#include "cuda/shared/sums.cuh"

#include <type_traits>

#define THREADS 256

namespace
{

struct range {
    int from, to;
};

/* The part of a window that lies inside the picture, along one axis. */
__device__ static inline range inside(int out, int stride, int kernel, int padding, int size)
{
    const int first = out * stride - padding;
    return {max(first, 0), min(first + kernel, size)};
}

/* The windows that cover place `at`, along one axis. */
__device__ static inline range covering(int at, int stride, int kernel, int padding, int windows)
{
    const int last = at + padding, first = last - kernel + 1;
    return {first > 0 ? (first + stride - 1) / stride : 0, min(last / stride + 1, windows)};
}

/* Element i of [n][rows][columns][c]. */
struct element {
    long long image;
    int row, column, channel;
};

__device__ static inline element element_at(long long i, int rows, int columns, int c)
{
    const long long pixel = quotient(i, c), line = quotient(pixel, columns);
    const long long image = quotient(line, rows);
    return {image, (int)(line - image * rows), (int)(pixel - line * columns), (int)(i - pixel * c)};
}

template <class T, int N> struct alignas(sizeof(T) * N) pack {
    T v[N];
};

template <int N, class T> __device__ __forceinline__ pack<T, N> load(const T *from)
{
    return *reinterpret_cast<const pack<T, N> *>(from);
}

static inline bool on_16(const void *a, const void *b, const void *c)
{
    return (((uintptr_t)a | (uintptr_t)b | (uintptr_t)c) & 15) == 0;
}

/* Channels of an access: as many as divide c, at most MOST, and one where a pointer is not on 16 bytes. */
template <int MOST, class F> static inline void by_width(long long c, bool aligned, F &&go)
{
    if constexpr (MOST == 1)
        go(std::integral_constant<int, 1>());
    else if (aligned && c % MOST == 0)
        go(std::integral_constant<int, MOST>());
    else
        by_width<MOST / 2>(c, aligned, go);
}

static inline unsigned blocks(long long count)
{
    return (unsigned)((count + THREADS - 1) / THREADS);
}

} // namespace

#define BY_DTYPE(call)                                                                                                 \
    switch (s->dtype) {                                                                                                \
    case PC__CUDA_F16:                                                                                                 \
        return pooling<pc::f16>::call;                                                                                 \
    case PC__CUDA_BF16:                                                                                                \
        return pooling<pc::bf16>::call;                                                                                \
    case PC__CUDA_F32:                                                                                                 \
        return pooling<float>::call;                                                                                   \
    default:                                                                                                           \
        return pooling<double>::call;                                                                                  \
    }

#endif
