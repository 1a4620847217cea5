/* pool_max_backward.cu: the gradient of maxima over windows. Each element of dx looks at the windows that cover it, in the
 * order of memory: nothing is added by several threads, so the sums are the same every time. */
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/half.cuh"
#include "cuda/pool/pool.cuh"

#define FEW (1 << 15) /* threads: a block for each multiprocessor, or nearly */

namespace
{

/* At most 16 bytes an access. */
template <int N> __device__ __forceinline__ pack<int32_t, N> load_places(const int32_t *from)
{
    constexpr int EACH = N < 4 ? N : 4;
    pack<int32_t, N> place;
#pragma unroll
    for (int k = 0; k < N; k += EACH) {
        const pack<int32_t, EACH> part = load<EACH>(from + k);
#pragma unroll
        for (int n = 0; n < EACH; n++)
            place.v[k + n] = part.v[n];
    }
    return place;
}

/* N channels of one place. Windows that cover it are looked at two by two, their loads together. */
template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    max_backward_kernel(const __grid_constant__ pc__cuda_pool s, const T *__restrict__ dy,
                        const int32_t *__restrict__ argmax, T *__restrict__ dx, long long count)
{
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    const element e = element_at(i, (int)s.h, (int)s.w, (int)s.c / N);
    const range h = covering(e.row, s.sh, s.kh, s.ph, (int)s.oh), w = covering(e.column, s.sw, s.kw, s.pw, (int)s.ow);
    const long long plane = e.image * s.oh * s.ow * s.c + e.channel * N;
    const int here = e.row * (int)s.w + e.column;
    const bool apart = s.kh <= s.sh && s.kw <= s.sw; /* one window at most covers it */
    pc::math<T> sum[N] = {};
    pc::wait_for_earlier();
    if (i >= count)
        return;
    if (apart && h.from < h.to && w.from < w.to) {
        const long long at = plane + (long long)(h.from * (int)s.ow + w.from) * (int)s.c;
        const pack<T, N> given = load<N>(dy + at);
        const pack<int32_t, N> place = load_places<N>(argmax + at);
#pragma unroll
        for (int n = 0; n < N; n++)
            sum[n] = place.v[n] == here ? pc::math<T>(given.v[n]) : pc::math<T>(0);
    }
#pragma unroll 1
    for (int r = h.from; r < h.to && !apart; r += 2)
#pragma unroll 1
        for (int c = w.from; c < w.to; c += 2) {
            pack<T, N> given[4];
            pack<int32_t, N> place[4];
#pragma unroll
            for (int k = 0; k < 4; k++) { /* beyond the end: the last one again, for nothing */
                const int row = min(r + k / 2, h.to - 1), column = min(c + k % 2, w.to - 1);
                const long long at = plane + (long long)(row * (int)s.ow + column) * (int)s.c;
                given[k] = load<N>(dy + at);
                place[k] = load_places<N>(argmax + at);
            }
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const int wanted = r + k / 2 < h.to && c + k % 2 < w.to ? here : -1;
#pragma unroll
                for (int n = 0; n < N; n++)
                    sum[n] += place[k].v[n] == wanted ? pc::math<T>(given[k].v[n]) : pc::math<T>(0);
            }
        }
    pack<T, N> out;
#pragma unroll
    for (int n = 0; n < N; n++)
        out.v[n] = T(sum[n]);
    *reinterpret_cast<pack<T, N> *>(dx + i * N) = out;
}

/* N channels of 2 x 2 neighbouring places, which windows that overlap cover together: each is read once for all four. */
template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    squares_backward_kernel(const __grid_constant__ pc__cuda_pool s, const T *__restrict__ dy,
                            const int32_t *__restrict__ argmax, T *__restrict__ dx, int down, int along,
                            long long count)
{
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    const element e = element_at(i, down, along, (int)s.c / N);
    const int row = 2 * e.row, column = 2 * e.column, rows = min(2, (int)s.h - row),
              columns = min(2, (int)s.w - column);
    const int top = covering(row, s.sh, s.kh, s.ph, (int)s.oh).from, here = row * (int)s.w + column;
    const int bottom = covering(row + rows - 1, s.sh, s.kh, s.ph, (int)s.oh).to;
    const int left = covering(column, s.sw, s.kw, s.pw, (int)s.ow).from;
    const int right = covering(column + columns - 1, s.sw, s.kw, s.pw, (int)s.ow).to;
    const long long plane = e.image * s.oh * s.ow * s.c + e.channel * N;
    pc::math<T> sum[4][N] = {};
    pc::wait_for_earlier();
    if (i >= count)
        return;
#pragma unroll 1
    for (int r = top; r < bottom; r++)
#pragma unroll 1
        for (int c = left; c < right; c += 2) {
            pack<T, N> given[2];
            pack<int32_t, N> place[2];
#pragma unroll
            for (int k = 0; k < 2; k++) { /* beyond the end: the last one again, for nothing */
                const long long at = plane + (long long)(r * (int)s.ow + min(c + k, right - 1)) * (int)s.c;
                given[k] = load<N>(dy + at);
                place[k] = load_places<N>(argmax + at);
            }
#pragma unroll
            for (int k = 0; k < 2; k++)
#pragma unroll
                for (int n = 0; n < N; n++) {
                    const int off = c + k < right ? place[k].v[n] - here : -1;
                    const pc::math<T> more = pc::math<T>(given[k].v[n]);
                    sum[0][n] += off == 0 ? more : pc::math<T>(0);
                    sum[1][n] += off == 1 && columns == 2 ? more : pc::math<T>(0);
                    sum[2][n] += off == (int)s.w ? more : pc::math<T>(0);
                    sum[3][n] += off == (int)s.w + 1 && columns == 2 ? more : pc::math<T>(0);
                }
        }
#pragma unroll
    for (int k = 0; k < 4; k++) {
        pack<T, N> out;
#pragma unroll
        for (int n = 0; n < N; n++)
            out.v[n] = T(sum[k][n]);
        if (k / 2 < rows && k % 2 < columns)
            *reinterpret_cast<pack<T, N> *>(dx + ((e.image * s.h + row + k / 2) * s.w + column + k % 2) * s.c +
                                            e.channel * N) = out;
    }
}

/* Planes: N neighbours of a row. */
template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    plane_backward_kernel(const __grid_constant__ pc__cuda_pool s, const T *__restrict__ dy,
                          const int32_t *__restrict__ argmax, T *__restrict__ dx, int strips, int whole,
                          long long count)
{
    constexpr int AT_ONCE = N / 2 + 1; /* what covers N neighbours at windows of 3 and strides of 2 */
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    const element e = element_at(i, (int)s.h, strips, 1);
    const int first = e.column * N, end = min(first + N, (int)s.w);
    const range h = covering(e.row, s.sh, s.kh, s.ph, (int)s.oh);
    const int from = covering(first, s.sw, s.kw, s.pw, (int)s.ow).from;
    const int to = covering(end - 1, s.sw, s.kw, s.pw, (int)s.ow).to;
    const int here = e.row * (int)s.w + first;
    const long long plane = e.image * s.oh * s.ow;
    pc::math<T> sum[N] = {};
    pc::wait_for_earlier();
    if (i >= count)
        return;
#pragma unroll 1
    for (int r = h.from; r < h.to; r++)
#pragma unroll 1
        for (int c = from; c < to; c += AT_ONCE) {
            const long long at = plane + r * (int)s.ow + c;
            int place[AT_ONCE];
            pc::math<T> given[AT_ONCE];
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) {
                const int step = min(c + k, to - 1) - c; /* as above */
                place[k] = argmax[at + step] - here;
                given[k] = dy[at + step];
                place[k] = c + k < to ? place[k] : -1;
            }
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++)
#pragma unroll
                for (int n = 0; n < N; n++)
                    sum[n] += place[k] == n ? given[k] : pc::math<T>(0);
        }
    T *row = dx + (e.image * s.h + e.row) * s.w + first;
    pack<T, N> out;
#pragma unroll
    for (int n = 0; n < N; n++)
        out.v[n] = T(sum[n]);
    if (whole) {
        *reinterpret_cast<pack<T, N> *>(row) = out;
        return;
    }
#pragma unroll
    for (int n = 0; n < N; n++)
        if (first + n < end)
            row[n] = out.v[n];
}

template <class T> struct pooling {
    static constexpr int PACK = 16 / sizeof(T);

    static void max_backward(cudaStream_t queue, const pc__cuda_pool *s, const void *dy, const int32_t *argmax,
                             void *dx)
    {
        const long long count = s->n * s->h * s->w * s->c;
        const auto go = [&](auto kernel, long long threads, auto... parameters) {
            (void)pc::start(kernel, blocks(threads), THREADS, queue, s->early, *s, (const T *)dy, argmax, (T *)dx,
                            parameters..., threads);
        };
        if (s->c == 1) {
            const int strips = (int)((s->w + PACK - 1) / PACK);
            const int whole = s->w % PACK == 0 && on_16(dx, dx, dx);
            go(plane_backward_kernel<T, PACK>, s->n * s->h * strips, strips, whole);
        } else {
            const int down = (int)((s->h + 1) / 2), along = (int)((s->w + 1) / 2);
            const long long squares = s->n * down * along * s->c;
            const bool overlapping = s->kh > s->sh || s->kw > s->sw;
            by_width<PACK>(s->c, on_16(dy, argmax, dx), [&](auto n) {
                if (overlapping && squares / n.value >= FEW)
                    go(squares_backward_kernel<T, n.value>, squares / n.value, down, along);
                else if (n.value * sizeof(T) <= 4 && pc__cuda_max_pool_lines(queue, s, dy, argmax, dx))
                    return;
                else
                    go(max_backward_kernel<T, n.value>, count / n.value);
            });
        }
    }
};

} // namespace

void pc__cuda_max_pool_backward(cudaStream_t queue, const pc__cuda_pool *s, const void *dy, const int32_t *argmax,
                                void *dx)
{
    BY_DTYPE(max_backward(queue, s, dy, argmax, dx))
}
