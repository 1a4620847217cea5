/* pool.cu: averages over windows and their gradient. A thread for as many neighbouring channels as 16 bytes hold, or fewer,
 * side by side so that a warp reads and writes whole lines; in planes for neighbours of a row. Backward, each element of dx looks at the windows that cover it, in the order of
 * memory: nothing is added by several threads, so the sums are the same every time. */
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/half.cuh"
#include "cuda/pool/pool.cuh"

namespace
{

template <class T, int N> __device__ __forceinline__ void add(pc::math<T> (&sum)[N], const pack<T, N> &x)
{
#pragma unroll
    for (int n = 0; n < N; n++)
        sum[n] += pc::math<T>(x.v[n]);
}

template <class T, int N>
__device__ __forceinline__ void add(pc::math<T> (&sum)[N], const pack<T, N> &x, pc::math<T> part)
{
#pragma unroll
    for (int n = 0; n < N; n++)
        sum[n] += pc::math<T>(x.v[n]) * part;
}

__device__ static inline int counted(int out, int stride, int kernel, int padding, int size, int exclude)
{
    const int first = out * stride - padding, end = min(first + kernel, exclude ? size : size + padding);
    return end - (exclude ? max(first, 0) : first);
}

/* Of a window's sum what is its mean. Mostly padding counts as zeros, and the divisor is the whole window. */
template <class M> __device__ __forceinline__ M share_of(const pc__cuda_pool &s, int row, int column)
{
    if (!s.uneven)
        return 1 / ((M)s.kh * (M)s.kw);
    return 1 / ((M)counted(row, s.sh, s.kh, s.ph, (int)s.h, s.exclude_padding) *
                (M)counted(column, s.sw, s.kw, s.pw, (int)s.w, s.exclude_padding));
}

template <class T, int N> __device__ __forceinline__ void put(pc::math<T> part, const pc::math<T> (&sum)[N], T *to)
{
    pack<T, N> out;
#pragma unroll
    for (int n = 0; n < N; n++)
        out.v[n] = T(sum[n] * part);
    *reinterpret_cast<pack<T, N> *>(to) = out;
}

/* Loads of small windows are under way together; K: both sides of the window, 0: any. */
template <class T, int N, int K>
__device__ __forceinline__ void add_window(const pc__cuda_pool &s, const T *picture, int row, int column,
                                           pc::math<T> (&sum)[N])
{
    if constexpr (K > 0) {
        pack<T, N> value[K][K];
        const int top = row * s.sh - s.ph, left = column * s.sw - s.pw;
#pragma unroll
        for (int r = 0; r < K; r++)
#pragma unroll
            for (int c = 0; c < K; c++) {
                const bool there = (unsigned)(top + r) < (unsigned)s.h && (unsigned)(left + c) < (unsigned)s.w;
                value[r][c] = there ? load<N>(picture + ((top + r) * s.w + left + c) * s.c) : pack<T, N>{};
            }
#pragma unroll
        for (int r = 0; r < K; r++)
#pragma unroll
            for (int c = 0; c < K; c++)
                add<T, N>(sum, value[r][c]);
    } else {
        const range h = inside(row, s.sh, s.kh, s.ph, (int)s.h), w = inside(column, s.sw, s.kw, s.pw, (int)s.w);
        for (int r = h.from; r < h.to; r++)
            for (int c = w.from; c < w.to; c++)
                add<T, N>(sum, load<N>(picture + (r * s.w + c) * s.c));
    }
}

template <class T, int N, int K>
__global__ void __launch_bounds__(THREADS)
    average_kernel(const pc__cuda_pool s, const T *__restrict__ x, T *__restrict__ y, long long count)
{
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    const element e = element_at(i, (int)s.oh, (int)s.ow, (int)s.c / N);
    pc::math<T> sum[N] = {};
    pc::wait_for_earlier();
    if (i >= count)
        return;
    add_window<T, N, K>(s, x + e.image * s.h * s.w * s.c + e.channel * N, e.row, e.column, sum);
    put<T, N>(share_of<pc::math<T>>(s, e.row, e.column), sum, y + i * N);
}

/* Planes: N neighbours of a row, whose windows share what is read. K: both sides of a window, S: both strides. Each window
 * is added up in the order of add_window. */
template <class T, int N, int K, int S>
__global__ void __launch_bounds__(THREADS)
    plane_average_kernel(const __grid_constant__ pc__cuda_pool s, const T *__restrict__ x, T *__restrict__ y,
                         int strips, int whole, long long count)
{
    constexpr int ACROSS = (N - 1) * S + K;
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    const element e = element_at(i, (int)s.oh, strips, 1);
    const int h = (int)s.h, w = (int)s.w, first = e.column * N, top = e.row * S - s.ph, left = first * S - s.pw;
    const T *picture = x + e.image * h * w;
    pc::math<T> sum[N] = {};
    pc::wait_for_earlier();
    if (i >= count)
        return;
    pc::math<T> value[K][ACROSS];
#pragma unroll
    for (int r = 0; r < K; r++) {
        const T *line = picture + (top + r) * w + left;
        const bool row = (unsigned)(top + r) < (unsigned)h;
#pragma unroll
        for (int c = 0; c < ACROSS; c++)
            value[r][c] = row && (unsigned)(left + c) < (unsigned)w ? pc::math<T>(line[c]) : pc::math<T>(0);
    }
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int k = 0; k < K * K; k++)
            sum[n] += value[k / K][n * S + k % K];
    T *to = y + (e.image * s.oh + e.row) * s.ow + first;
    if (whole && !s.uneven) {
        put<T, N>(share_of<pc::math<T>>(s, e.row, first), sum, to);
        return;
    }
#pragma unroll
    for (int n = 0; n < N; n++)
        if (first + n < (int)s.ow) {
            const pc::math<T> one[1] = {sum[n]};
            put<T, 1>(share_of<pc::math<T>>(s, e.row, first + n), one, to + n);
        }
}

template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    average_backward_kernel(const pc__cuda_pool s, const T *__restrict__ dy, T *__restrict__ dx, long long count)
{
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    const element e = element_at(i, (int)s.h, (int)s.w, (int)s.c / N);
    const range h = covering(e.row, s.sh, s.kh, s.ph, (int)s.oh), w = covering(e.column, s.sw, s.kw, s.pw, (int)s.ow);
    const T *picture = dy + e.image * s.oh * s.ow * s.c + e.channel * N;
    pc::math<T> sum[N] = {};
    pc::wait_for_earlier();
    if (i >= count)
        return;
    for (int r = h.from; r < h.to; r++)
        for (int c = w.from; c < w.to; c++) {
            const pack<T, N> g = load<N>(picture + (r * s.ow + c) * s.c);
            if (s.uneven)
                add<T, N>(sum, g, share_of<pc::math<T>>(s, r, c));
            else
                add<T, N>(sum, g);
        }
    put<T, N>(s.uneven ? pc::math<T>(1) : share_of<pc::math<T>>(s, 0, 0), sum, dx + i * N);
}

static long long inputs(const pc__cuda_pool *s)
{
    return s->n * s->h * s->w * s->c;
}

static long long outputs(const pc__cuda_pool *s)
{
    return s->n * s->oh * s->ow * s->c;
}

template <class T, int N> void forward(cudaStream_t queue, const pc__cuda_pool *s, const T *x, T *y)
{
    const long long count = outputs(s) / N;
    const auto kernel = s->kh != s->kw ? average_kernel<T, N, 0>
                        : s->kh == 2   ? average_kernel<T, N, 2>
                        : s->kh == 3   ? average_kernel<T, N, 3>
                                       : average_kernel<T, N, 0>;
    (void)pc::start(kernel, blocks(count), THREADS, queue, s->early, *s, x, y, count);
}

/* False: there is no kernel for such windows. */
template <class T, int N> bool forward_planes_by(cudaStream_t queue, const pc__cuda_pool *s, const T *x, T *y)
{
    const int strips = (int)((s->ow + N - 1) / N), whole = s->ow % N == 0 && on_16(y, y, y);
    const long long count = s->n * s->oh * strips;
    const auto go = [&](auto kernel) {
        (void)pc::start(kernel, blocks(count), THREADS, queue, s->early, *s, x, y, strips, whole, count);
        return true;
    };
    if (s->c != 1 || s->kh != s->kw || s->sh != s->sw || s->kh < 2 || s->kh > 3 || s->sh > s->kh)
        return false;
    if (s->kh == 2)
        return s->sh == 1 ? go(plane_average_kernel<T, N, 2, 1>) : go(plane_average_kernel<T, N, 2, 2>);
    return s->sh == 1   ? go(plane_average_kernel<T, N, 3, 1>)
           : s->sh == 2 ? go(plane_average_kernel<T, N, 3, 2>)
                        : go(plane_average_kernel<T, N, 3, 3>);
}

/* What threads share in a row saves loads; what they have of it apart, with strides, makes each load of a warp touch more
 * lines of memory. */
template <class T> bool forward_planes(cudaStream_t queue, const pc__cuda_pool *s, const T *x, T *y)
{
    enum { WIDE = 32, NARROW = 8 };
    if (s->sw == 1 || (s->sw == 2 && sizeof(T) == 2 && s->ow >= WIDE))
        return forward_planes_by<T, 4>(queue, s, x, y);
    if (s->sw == 2 && (sizeof(T) == 2 || s->ow > NARROW))
        return forward_planes_by<T, 2>(queue, s, x, y);
    return forward_planes_by<T, 1>(queue, s, x, y);
}

template <class T, int N> void backward(cudaStream_t queue, const pc__cuda_pool *s, const T *dy, T *dx)
{
    const long long count = inputs(s) / N;
    (void)pc::start(average_backward_kernel<T, N>, blocks(count), THREADS, queue, s->early, *s, dy, dx, count);
}

template <class T> struct pooling {
    static constexpr int PACK = 16 / sizeof(T);

    static void average(cudaStream_t queue, const pc__cuda_pool *s, const void *x, void *y)
    {
        if (forward_planes<T>(queue, s, (const T *)x, (T *)y))
            return;
        by_width<PACK>(s->c, on_16(x, y, y), [&](auto n) { forward<T, n.value>(queue, s, (const T *)x, (T *)y); });
    }

    static void average_backward(cudaStream_t queue, const pc__cuda_pool *s, const void *dy, void *dx)
    {
        by_width<PACK>(s->c, on_16(dy, dx, dx),
                       [&](auto n) { backward<T, n.value>(queue, s, (const T *)dy, (T *)dx); });
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
