/* pool.cu: a thread for each element written, channels side by side so that a warp reads and writes whole lines.
 * Backward, each element of dx looks at the windows that cover it, in the order of memory: nothing is added by several
 * threads, so the sums are the same every time. */
#include "cuda/pool.h"

#include "cuda/half.cuh"
#include "cuda/early.cuh"
#include "cuda/sums.cuh"

#include <math_constants.h>

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

template <class T>
__global__ void __launch_bounds__(THREADS) max_kernel(const pc__cuda_pool s, const T *__restrict__ x, T *__restrict__ y,
                                                      int32_t *__restrict__ argmax, long long count)
{
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    pc::wait_for_earlier();
    if (i >= count)
        return;
    const element e = element_at(i, (int)s.oh, (int)s.ow, (int)s.c);
    const range h = inside(e.row, s.sh, s.kh, s.ph, (int)s.h), w = inside(e.column, s.sw, s.kw, s.pw, (int)s.w);
    const T *plane = x + e.image * s.h * s.w * s.c + e.channel;
    pc::math<T> most = pc::math<T>(-CUDART_INF);
    int place = h.from * (int)s.w + w.from;
    for (int r = h.from; r < h.to; r++)
        for (int c = w.from; c < w.to; c++) {
            const int here = r * (int)s.w + c;
            const pc::math<T> value = plane[here * s.c];
            const bool more = value > most || value != value;
            most = more ? value : most;
            place = more ? here : place;
        }
    y[i] = T(most);
    argmax[i] = place;
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    max_backward_kernel(const pc__cuda_pool s, const T *__restrict__ dy, const int32_t *__restrict__ argmax,
                        T *__restrict__ dx, long long count)
{
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    pc::wait_for_earlier();
    if (i >= count)
        return;
    const element e = element_at(i, (int)s.h, (int)s.w, (int)s.c);
    const range h = covering(e.row, s.sh, s.kh, s.ph, (int)s.oh), w = covering(e.column, s.sw, s.kw, s.pw, (int)s.ow);
    const long long plane = e.image * s.oh * s.ow * s.c + e.channel;
    const int here = e.row * (int)s.w + e.column;
    pc::math<T> sum = 0;
    for (int r = h.from; r < h.to; r++)
#pragma unroll 2
        for (int c = w.from; c < w.to; c++) {
            const long long at = plane + (r * s.ow + c) * s.c;
            if (argmax[at] == here)
                sum += dy[at];
        }
    dx[i] = T(sum);
}

/* Padding counts as zeros: the divisor is the whole window. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    average_kernel(const pc__cuda_pool s, const T *__restrict__ x, T *__restrict__ y, long long count)
{
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    pc::wait_for_earlier();
    if (i >= count)
        return;
    const element e = element_at(i, (int)s.oh, (int)s.ow, (int)s.c);
    const range h = inside(e.row, s.sh, s.kh, s.ph, (int)s.h), w = inside(e.column, s.sw, s.kw, s.pw, (int)s.w);
    const T *plane = x + e.image * s.h * s.w * s.c + e.channel;
    pc::math<T> sum = 0;
    for (int r = h.from; r < h.to; r++)
        for (int c = w.from; c < w.to; c++)
            sum += plane[(r * s.w + c) * s.c];
    y[i] = T(sum * (1 / ((pc::math<T>)s.kh * (pc::math<T>)s.kw)));
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    average_backward_kernel(const pc__cuda_pool s, const T *__restrict__ dy, T *__restrict__ dx, long long count)
{
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    pc::wait_for_earlier();
    if (i >= count)
        return;
    const element e = element_at(i, (int)s.h, (int)s.w, (int)s.c);
    const range h = covering(e.row, s.sh, s.kh, s.ph, (int)s.oh), w = covering(e.column, s.sw, s.kw, s.pw, (int)s.ow);
    const long long plane = e.image * s.oh * s.ow * s.c + e.channel;
    pc::math<T> sum = 0;
    for (int r = h.from; r < h.to; r++)
        for (int c = w.from; c < w.to; c++)
            sum += dy[plane + (r * s.ow + c) * s.c];
    dx[i] = T(sum * (1 / ((pc::math<T>)s.kh * (pc::math<T>)s.kw)));
}

static unsigned blocks(long long count)
{
    return (unsigned)((count + THREADS - 1) / THREADS);
}

static long long inputs(const pc__cuda_pool *s)
{
    return s->n * s->h * s->w * s->c;
}

static long long outputs(const pc__cuda_pool *s)
{
    return s->n * s->oh * s->ow * s->c;
}

template <class T> struct pooling {
    static void max(cudaStream_t queue, const pc__cuda_pool *s, const void *x, void *y, int32_t *argmax)
    {
        const long long count = outputs(s);
        pc::start(max_kernel<T>, blocks(count), THREADS, queue, s->early, *s, (const T *)x, (T *)y, argmax, count);
    }

    static void max_backward(cudaStream_t queue, const pc__cuda_pool *s, const void *dy, const int32_t *argmax,
                             void *dx)
    {
        const long long count = inputs(s);
        pc::start(max_backward_kernel<T>, blocks(count), THREADS, queue, s->early, *s, (const T *)dy, argmax, (T *)dx,
                  count);
    }

    static void average(cudaStream_t queue, const pc__cuda_pool *s, const void *x, void *y)
    {
        const long long count = outputs(s);
        pc::start(average_kernel<T>, blocks(count), THREADS, queue, s->early, *s, (const T *)x, (T *)y, count);
    }

    static void average_backward(cudaStream_t queue, const pc__cuda_pool *s, const void *dy, void *dx)
    {
        const long long count = inputs(s);
        pc::start(average_backward_kernel<T>, blocks(count), THREADS, queue, s->early, *s, (const T *)dy, (T *)dx,
                  count);
    }
};

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

void pc__cuda_max_pool(cudaStream_t queue, const pc__cuda_pool *s, const void *x, void *y, int32_t *argmax)
{
    BY_DTYPE(max(queue, s, x, y, argmax))
}

void pc__cuda_max_pool_backward(cudaStream_t queue, const pc__cuda_pool *s, const void *dy, const int32_t *argmax,
                                void *dx)
{
    BY_DTYPE(max_backward(queue, s, dy, argmax, dx))
}

void pc__cuda_avg_pool(cudaStream_t queue, const pc__cuda_pool *s, const void *x, void *y)
{
    BY_DTYPE(average(queue, s, x, y))
}

void pc__cuda_avg_pool_backward(cudaStream_t queue, const pc__cuda_pool *s, const void *dy, void *dx)
{
    BY_DTYPE(average_backward(queue, s, dy, dx))
}
