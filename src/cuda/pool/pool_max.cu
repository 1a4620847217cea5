/* pool_max.cu: maxima over windows. A thread goes down a strip of windows, for as many neighbouring
 * channels as 16 bytes hold; a window's loads are all under way before the first is compared, and what neighbours in the
 * strip share comes out of the first-level cache. Planes (one channel) go by single elements. */
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/half.cuh"
#include "cuda/pool/pool.cuh"

#include <math_constants.h>

#define MANY (1 << 18) /* threads that fill the GPU */

namespace
{

/* At most 16 bytes an access. */
template <int N> __device__ __forceinline__ void put_places(int32_t *to, const int (&place)[N])
{
    constexpr int EACH = N < 4 ? N : 4;
#pragma unroll
    for (int k = 0; k < N; k += EACH) {
        pack<int32_t, EACH> part;
#pragma unroll
        for (int n = 0; n < EACH; n++)
            part.v[n] = place[k + n];
        *reinterpret_cast<pack<int32_t, EACH> *>(to + k) = part;
    }
}

/* The later of several NaNs, the first of equals. */
template <class T, int N>
__device__ __forceinline__ void meet(pc::math<T> (&most)[N], int (&place)[N], const pack<T, N> &x, int here)
{
#pragma unroll
    for (int n = 0; n < N; n++) {
        const pc::math<T> value = x.v[n];
        const bool more = value > most[n] || value != value;
        most[n] = more ? value : most[n];
        place[n] = more ? here : place[n];
    }
}

__device__ __forceinline__ int within(int at, int size)
{
    return min(max(at, 0), size - 1);
}

/* Windows of K x K. What lies outside of the picture is replaced by the nearest element inside, which the window has
 * too. */
template <class T, int N, int K>
__device__ __forceinline__ void look(const pc__cuda_pool &s, const T *picture, int top, int left,
                                     pc::math<T> (&most)[N], int (&place)[N])
{
    const int w = (int)s.w;
    pack<T, N> x[K][K];
    int line[K], column[K];
#pragma unroll
    for (int k = 0; k < K; k++) {
        line[k] = within(top + k, (int)s.h) * w;
        column[k] = within(left + k, w);
    }
#pragma unroll
    for (int r = 0; r < K; r++)
#pragma unroll
        for (int c = 0; c < K; c++)
            x[r][c] = load<N>(picture + (long long)(line[r] + column[c]) * (int)s.c);
#pragma unroll
    for (int n = 0; n < N; n++)
        place[n] = line[0] + column[0];
#pragma unroll
    for (int r = 0; r < K; r++)
#pragma unroll
        for (int c = 0; c < K; c++)
            meet<T, N>(most, place, x[r][c], line[r] + column[c]);
}

/* Windows of any size. */
template <class T, int N>
__device__ __forceinline__ void look_around(const pc__cuda_pool &s, const T *picture, int top, int left,
                                            pc::math<T> (&most)[N], int (&place)[N])
{
    const int w = (int)s.w, right = min(left + s.kw, w), bottom = min(top + s.kh, (int)s.h);
#pragma unroll
    for (int n = 0; n < N; n++)
        place[n] = max(top, 0) * w + max(left, 0);
    for (int r = max(top, 0); r < bottom; r++)
#pragma unroll 2
        for (int c = max(left, 0); c < right; c++)
            meet<T, N>(most, place, load<N>(picture + (long long)(r * w + c) * (int)s.c), r * w + c);
}

/* Strips of `tall` windows; K: 0 for any size */
template <class T, int N, int K>
__global__ void __launch_bounds__(THREADS)
    max_kernel(const __grid_constant__ pc__cuda_pool s, const T *__restrict__ x, T *__restrict__ y,
               int32_t *__restrict__ argmax, int tall, int strips, long long count)
{
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    const element e = element_at(i, strips, (int)s.ow, (int)s.c / N);
    const T *picture = x + e.image * s.h * s.w * s.c + e.channel * N;
    const int left = e.column * s.sw - s.pw, end = min((e.row + 1) * tall, (int)s.oh);
    pc::wait_for_earlier();
    if (i >= count)
        return;
#pragma unroll(N == 1 && K > 0 ? 4 : 1) /* single elements: the loads of four windows together */
    for (int row = e.row * tall; row < end; row++) {
        pc::math<T> most[N];
        int place[N];
#pragma unroll
        for (int n = 0; n < N; n++)
            most[n] = pc::math<T>(-CUDART_INF);
        if constexpr (K > 0)
            look<T, N, K>(s, picture, row * s.sh - s.ph, left, most, place);
        else
            look_around<T, N>(s, picture, row * s.sh - s.ph, left, most, place);
        const long long at = ((e.image * s.oh + row) * s.ow + e.column) * s.c + e.channel * N;
        pack<T, N> out;
#pragma unroll
        for (int n = 0; n < N; n++)
            out.v[n] = T(most[n]);
        *reinterpret_cast<pack<T, N> *>(y + at) = out;
        if (argmax)
            put_places<N>(argmax + at, place);
    }
}

template <class T, int N> void forward(cudaStream_t queue, const pc__cuda_pool *s, const T *x, T *y, int32_t *argmax)
{
    const long long columns = s->n * s->ow * (s->c / N);
    const int tall = columns * s->oh >= 4 * MANY ? 4 : columns * s->oh >= 2 * MANY ? 2 : 1;
    const int strips = (int)((s->oh + tall - 1) / tall), square = s->kh == s->kw && sizeof(T) < 8 ? s->kh : 0;
    const long long count = columns * strips;
    const auto go = [&](auto kernel) {
        (void)pc::start(kernel, blocks(count), THREADS, queue, s->early, *s, x, y, argmax, tall, strips, count);
    };
    if constexpr (sizeof(T) < 8) {
        if (square == 2)
            return go(max_kernel<T, N, 2>);
        if (square == 3)
            return go(max_kernel<T, N, 3>);
    }
    go(max_kernel<T, N, 0>);
}

template <class T> struct pooling {
    static constexpr int PACK = 16 / sizeof(T);

    static void max(cudaStream_t queue, const pc__cuda_pool *s, const void *x, void *y, int32_t *argmax)
    {
        by_width<PACK>(s->c, on_16(x, y, argmax),
                       [&](auto n) { forward<T, n.value>(queue, s, (const T *)x, (T *)y, argmax); });
    }
};

} // namespace

void pc__cuda_max_pool(cudaStream_t queue, const pc__cuda_pool *s, const void *x, void *y, int32_t *argmax)
{
    BY_DTYPE(max(queue, s, x, y, argmax))
}
