/* pooled.cu: maxima of the windows of a convolution in memory, and the gradient spread over them again. A thread has N
 * channels of a window, 16 bytes of them where channels come in such. */
#include "cuda/conv/pooled.h"

#include "cuda/conv/column_sums.cuh"
#include "cuda/conv/order.cuh"
#include "cuda/shared/load.cuh"

namespace
{

enum { AT_ONCE = 2 /* windows of a thread in flight */ };

/* Windows that cover the whole convolution, those at the end cut off. */
__host__ __device__ inline int covering(int size, int pool)
{
    return (size + pool - 1) / pool;
}

template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    pool(const __grid_constant__ pc__cuda_conv s, const T *__restrict__ conv, int h, int w, const T *__restrict__ bias,
         T *__restrict__ y, uint8_t *__restrict__ argmax, long long count)
{
    typedef pc::math<T> M;
    typedef vector<T, N> pack;
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    const long long pixel = quotient(i, s.o / N), line = quotient(pixel, s.yw), image = quotient(line, s.yh);
    const int o = (int)(i - pixel * (s.o / N)) * N, row = (int)(line - image * s.yh) * s.pool,
              column = (int)(pixel - line * s.yw) * s.pool;
    const T *from = conv + ((image * h + row) * w + column) * s.o + o;
    M most[N];
    vector<uint8_t, N> place;
    pack out;
    pc::wait_for_earlier();
    if (i >= count)
        return;
    for (int q = 0; q < s.pool * s.pool; q++) {
        const pack x = *reinterpret_cast<const pack *>(from + (long long)(q / s.pool * w + q % s.pool) * s.o);
#pragma unroll
        for (int k = 0; k < N; k++) {
            const M value = x.at[k];
            const bool more = q == 0 || value > most[k] || value != value;
            most[k] = more ? value : most[k];
            place.at[k] = more ? (uint8_t)q : place.at[k];
        }
    }
#pragma unroll
    for (int k = 0; k < N; k++) {
        const M value = activated(s.activation, most[k] + (bias ? M(bias[o + k]) : M(0)));
        out.at[k] = T(value);
        place.at[k] = (uint8_t)mark_of(s, place.at[k], value);
    }
    if constexpr (N == 1) {
        const long long at = pixel_at(s, pixel) + (long long)o * channel_step(s);
        y[at] = out.at[0];
        if (argmax)
            argmax[at] = place.at[0];
        return;
    }
    *reinterpret_cast<pack *>(y + pixel * s.o + o) = out;
    if (argmax)
        *reinterpret_cast<vector<uint8_t, N> *>(argmax + pixel * s.o + o) = place;
}

/* A window's gradient in its place, zeros in the others that are there. */
template <class T, int N>
__device__ inline void spread(const pc__cuda_conv &s, T *dz, long long image, int row, int column, int o,
                              const vector<T, N> &g, const vector<uint8_t, N> &place)
{
    for (int q = 0; q < s.pool * s.pool; q++) {
        const int r = row * s.pool + q / s.pool, c = column * s.pool + q % s.pool;
        vector<T, N> here;
#pragma unroll
        for (int k = 0; k < N; k++)
            here.at[k] = place.at[k] == q ? g.at[k] : T(0.0f);
        if (r < s.oh && c < s.ow)
            *reinterpret_cast<vector<T, N> *>(dz + ((image * s.oh + r) * s.ow + c) * s.o + o) = here;
    }
}

/* A block has a share of the windows; part[block][channel], or NULL: the sums of their gradients. */
template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    unpool(const __grid_constant__ pc__cuda_conv s, const T *__restrict__ dy, const T *__restrict__ y,
           const uint8_t *__restrict__ argmax, T *__restrict__ dz, float *part, long long windows)
{
    const int o = (blockIdx.y * blockDim.x + threadIdx.x) * N;
    const int high = covering(s.oh, s.pool), wide = covering(s.ow, s.pool);
    const long long share = (windows + gridDim.x - 1) / gridDim.x, begin = blockIdx.x * share;
    const long long end = begin + share < windows ? begin + share : windows;
    float sum[N] = {};
    pc::wait_for_earlier();
    for (long long first = begin + threadIdx.y; o < s.o && first < end; first += AT_ONCE * blockDim.y) {
        vector<T, N> g[AT_ONCE], value[AT_ONCE];
        vector<uint8_t, N> place[AT_ONCE];
        long long image[AT_ONCE];
        int row[AT_ONCE], column[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            const long long window = first + i * blockDim.y, line = quotient(window, wide);
            image[i] = quotient(line, high);
            row[i] = (int)(line - image[i] * high), column[i] = (int)(window - line * wide);
            g[i] = value[i] = {};
            place[i] = {};
            if (window >= end || row[i] >= s.yh || column[i] >= s.yw)
                continue;
            const long long at = ((image[i] * s.yh + row[i]) * s.yw + column[i]) * s.o + o;
            g[i] = *reinterpret_cast<const vector<T, N> *>(dy + at);
            place[i] = *reinterpret_cast<const vector<uint8_t, N> *>(argmax + at);
            if (needs_y(s))
                value[i] = *reinterpret_cast<const vector<T, N> *>(y + at);
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
#pragma unroll
            for (int k = 0; k < N; k++) {
                const float given = float(g[i].at[k]);
                g[i].at[k] = T(needs_y(s) ? activation_gradient(s.activation, given, float(value[i].at[k])) : given);
                sum[k] += place[i].at[k] == PC__CUDA_CONV_DEAD ? 0.0f : float(g[i].at[k]);
            }
            if (first + i * blockDim.y < end)
                spread(s, dz, image[i], row[i], column[i], o, g[i], place[i]);
        }
    }
    if (part)
        add_threads(sum, part, o, s.o);
}

long long windows_of(const pc__cuda_conv *s)
{
    return s->n * covering(s->oh, s->pool) * covering(s->ow, s->pool);
}

bool in_vectors(const pc__cuda_conv *s, int n, const void *a, const void *b, const uint8_t *argmax)
{
    return s->o % n == 0 && ((uintptr_t)a | (uintptr_t)b) % 16 == 0 && (uintptr_t)argmax % n == 0;
}

template <class T>
void forward(cudaStream_t queue, const pc__cuda_conv *s, const void *conv, int h, int w, const void *bias, void *y,
             uint8_t *argmax)
{
    constexpr int N = 16 / sizeof(T);
    const bool vectors = !s->planes && in_vectors(s, N, conv, y, argmax);
    const long long count = s->n * s->yh * s->yw * (vectors ? s->o / N : s->o);
    pc::start(vectors ? pool<T, N> : pool<T, 1>, (unsigned)((count + THREADS - 1) / THREADS), THREADS, queue, s->early,
              *s, (const T *)conv, h, w, (const T *)bias, (T *)y, argmax, count);
}

template <class T, int N>
void launch_unpool(cudaStream_t queue, const pc__cuda_conv *s, const void *dy, const void *y, const uint8_t *argmax,
                   void *dz, void *dbias, void *scratch)
{
    const long long windows = windows_of(s);
    float *part = dbias ? (float *)scratch : NULL;
    (void)pc::start_grid(unpool<T, N>, grid_for<N>(windows, s->o), block_for<N>(s->o), 0, queue, s->early, *s,
                         (const T *)dy, (const T *)y, argmax, (T *)dz, part, windows);
    if (dbias)
        add_blocks<T>(queue, s->early, part, dbias, windows, s->o);
}

template <class T>
void backward(cudaStream_t queue, const pc__cuda_conv *s, const void *dy, const void *y, const uint8_t *argmax,
              void *dz, void *dbias, void *scratch)
{
    constexpr int N = 16 / sizeof(T);
    if (in_vectors(s, N, dy, needs_y(*s) ? y : NULL, argmax))
        launch_unpool<T, N>(queue, s, dy, y, argmax, dz, dbias, scratch);
    else
        launch_unpool<T, 1>(queue, s, dy, y, argmax, dz, dbias, scratch);
}

} // namespace

void pc__cuda_conv_pool(cudaStream_t queue, const pc__cuda_conv *s, const void *conv, int h, int w, const void *bias,
                        void *y, uint8_t *argmax)
{
    switch (s->dtype) {
    case PC__CUDA_F16:
        return forward<pc::f16>(queue, s, conv, h, w, bias, y, argmax);
    case PC__CUDA_BF16:
        return forward<pc::bf16>(queue, s, conv, h, w, bias, y, argmax);
    case PC__CUDA_F32:
        return forward<float>(queue, s, conv, h, w, bias, y, argmax);
    default:
        return forward<double>(queue, s, conv, h, w, bias, y, argmax);
    }
}

size_t pc__cuda_conv_unpool_scratch(const pc__cuda_conv *s)
{
    return (size_t)blocks_for(windows_of(s)) * s->o * sizeof(float);
}

void pc__cuda_conv_unpool(cudaStream_t queue, const pc__cuda_conv *s, const void *dy, const void *y,
                          const uint8_t *argmax, void *dz, void *dbias, void *scratch)
{
    switch (s->dtype) {
    case PC__CUDA_F16:
        return backward<pc::f16>(queue, s, dy, y, argmax, dz, dbias, scratch);
    case PC__CUDA_BF16:
        return backward<pc::bf16>(queue, s, dy, y, argmax, dz, dbias, scratch);
    default:
        return backward<float>(queue, s, dy, y, argmax, dz, dbias, scratch);
    }
}
