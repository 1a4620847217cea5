/* pool.cu: averages over windows and their gradient. A thread for each element written, channels side by side so that a
 * warp reads and writes whole lines. Backward, each element of dx looks at the windows that cover it, in the order of
 * memory: nothing is added by several threads, so the sums are the same every time. */
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/half.cuh"
#include "cuda/pool/pool.cuh"

namespace
{

/* Loads of small windows are under way together; K: both sides of the window, 0: any. */
template <class T, int K>
__device__ __forceinline__ pc::math<T> window_sum(const pc__cuda_pool &s, const T *plane, int row, int column)
{
    pc::math<T> sum = 0;
    if constexpr (K > 0) {
        T value[K][K];
        const int top = row * s.sh - s.ph, left = column * s.sw - s.pw;
#pragma unroll
        for (int r = 0; r < K; r++)
#pragma unroll
            for (int c = 0; c < K; c++) {
                const bool there = (unsigned)(top + r) < (unsigned)s.h && (unsigned)(left + c) < (unsigned)s.w;
                value[r][c] = there ? plane[((top + r) * s.w + left + c) * s.c] : T(0);
            }
#pragma unroll
        for (int r = 0; r < K; r++)
#pragma unroll
            for (int c = 0; c < K; c++)
                sum += pc::math<T>(value[r][c]);
    } else {
        const range h = inside(row, s.sh, s.kh, s.ph, (int)s.h), w = inside(column, s.sw, s.kw, s.pw, (int)s.w);
        for (int r = h.from; r < h.to; r++)
            for (int c = w.from; c < w.to; c++)
                sum += plane[(r * s.w + c) * s.c];
    }
    return sum;
}

/* Padding counts as zeros: the divisor is the whole window. */
template <class T, int K>
__global__ void __launch_bounds__(THREADS)
    average_kernel(const pc__cuda_pool s, const T *__restrict__ x, T *__restrict__ y, long long count)
{
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    pc::wait_for_earlier();
    if (i >= count)
        return;
    const element e = element_at(i, (int)s.oh, (int)s.ow, (int)s.c);
    const T *plane = x + e.image * s.h * s.w * s.c + e.channel;
    const pc::math<T> sum = window_sum<T, K>(s, plane, e.row, e.column);
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

static long long inputs(const pc__cuda_pool *s)
{
    return s->n * s->h * s->w * s->c;
}

static long long outputs(const pc__cuda_pool *s)
{
    return s->n * s->oh * s->ow * s->c;
}

template <class T> struct pooling {
    static void average(cudaStream_t queue, const pc__cuda_pool *s, const void *x, void *y)
    {
        const long long count = outputs(s);
        const auto kernel = s->kh != s->kw ? average_kernel<T, 0>
                            : s->kh == 2   ? average_kernel<T, 2>
                            : s->kh == 3   ? average_kernel<T, 3>
                                           : average_kernel<T, 0>;
        pc::start(kernel, blocks(count), THREADS, queue, s->early, *s, (const T *)x, (T *)y, count);
    }

    static void average_backward(cudaStream_t queue, const pc__cuda_pool *s, const void *dy, void *dx)
    {
        const long long count = inputs(s);
        pc::start(average_backward_kernel<T>, blocks(count), THREADS, queue, s->early, *s, (const T *)dy, (T *)dx,
                  count);
    }
};

} // namespace

void pc__cuda_avg_pool(cudaStream_t queue, const pc__cuda_pool *s, const void *x, void *y)
{
    BY_DTYPE(average(queue, s, x, y))
}

void pc__cuda_avg_pool_backward(cudaStream_t queue, const pc__cuda_pool *s, const void *dy, void *dx)
{
    BY_DTYPE(average_backward(queue, s, dy, dx))
}
