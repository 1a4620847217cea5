/* columns.cu: what the windows of a convolution read, side by side. A thread writes eight numbers of a window, 16 bytes;
 * where they come from lies in a table in shared memory, made once for a block. */
#include "cuda/conv/columns.h"

#include "cuda/shared/dependent_launch.cuh"

#include <limits.h>

#define THREADS 256
#define DEPTH_MOST 512
#define COLUMNS_MOST ((size_t)192 << 20) /* bytes: what is written and read once should not outweigh the product */

namespace
{

constexpr int EIGHT = 8;

/* A number of a window: its row and column under the taps, and how far from the window's first it lies; with row < 0
 * none, a zero. */
struct source {
    short row, column;
    int away;
};

struct alignas(EIGHT * sizeof(uint16_t)) eight {
    uint16_t at[EIGHT];
};

inline int depth_of(const pc__cuda_conv *s)
{
    return s->c * s->kh * s->kw;
}

inline int padded_of(const pc__cuda_conv *s)
{
    return (depth_of(s) + EIGHT - 1) / EIGHT * EIGHT;
}

__device__ inline source source_of(const pc__cuda_conv &s, int k)
{
    const int area = s.kh * s.kw, c = k / area, tap = k - c * area, row = tap / s.kw, column = tap - row * s.kw;
    return c < s.c ? source{(short)row, (short)column, (row * s.w + column) * s.c + c} : source{-1, 0, 0};
}

/* Number `i` of the weights with zeros behind each output's `depth`. */
__device__ inline void pad(const uint16_t *weight, uint16_t *to, int i, int depth, int padded)
{
    const int o = i / padded, k = i - o * padded;
    to[i] = k < depth ? weight[o * depth + k] : (uint16_t)0;
}

__global__ void __launch_bounds__(THREADS)
    columns_kernel(const pc__cuda_conv s, const uint16_t *x, const uint16_t *weight, eight *columns, uint16_t *padded,
                   int chunks)
{
    __shared__ source sources[DEPTH_MOST];
    const unsigned total = (unsigned)(s.n * s.oh * s.ow * chunks), step = gridDim.x * THREADS;
    for (int k = threadIdx.x; k < chunks * EIGHT; k += THREADS)
        sources[k] = source_of(s, k);
    pc::wait_for_earlier();
    __syncthreads();
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < total; i += step) {
        const unsigned pixel = i / (unsigned)chunks, chunk = i - pixel * (unsigned)chunks;
        const unsigned line = pixel / (unsigned)s.ow, image = line / (unsigned)s.oh;
        const int row = (int)(line - image * (unsigned)s.oh) * s.sh - s.ph;
        const int column = (int)(pixel - line * (unsigned)s.ow) * s.sw - s.pw;
        const uint16_t *first = x + (((long long)image * s.h + row) * s.w + column) * s.c;
        eight out;
#pragma unroll
        for (int j = 0; j < EIGHT; j++) {
            const source from = sources[chunk * EIGHT + j];
            const bool real = from.row >= 0 && (unsigned)(row + from.row) < (unsigned)s.h &&
                              (unsigned)(column + from.column) < (unsigned)s.w;
            out.at[j] = real ? first[from.away] : (uint16_t)0;
        }
        columns[i] = out;
    }
    for (int i = blockIdx.x * THREADS + threadIdx.x; weight && i < s.o * chunks * EIGHT; i += (int)step)
        pad(weight, padded, i, s.c * s.kh * s.kw, chunks * EIGHT);
}

__global__ void __launch_bounds__(THREADS)
    strip_kernel(const uint16_t *padded, uint16_t *dweight, int depth, int width, int count)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    pc::wait_for_earlier();
    if (i < count)
        dweight[i] = padded[i / depth * width + i % depth];
}

inline size_t whole(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

inline double columns_of(const pc__cuda_conv *s)
{
    return (double)s->n * s->oh * s->ow * padded_of(s);
}

} // namespace

bool pc__cuda_conv_columns_fits(const pc__cuda_conv *s)
{
    const double taps = (double)s->kh * s->kw;
    return s->c > 0 && s->c <= 4 && taps > 1 && taps * s->c <= DEPTH_MOST && s->pool <= 2 &&
           (double)s->h * s->w * s->c < INT_MAX && (double)s->o * DEPTH_MOST < INT_MAX &&
           columns_of(s) * sizeof(uint16_t) <= COLUMNS_MOST;
}

pc__cuda_conv pc__cuda_conv_columns_shape(const pc__cuda_conv *s)
{
    pc__cuda_conv of = *s;
    of.ready_x = of.ready_weight = of.ready_turned = false;
    of.h = s->oh, of.w = s->ow, of.c = padded_of(s);
    of.kh = of.kw = of.sh = of.sw = 1;
    of.ph = of.pw = 0;
    return of;
}

size_t pc__cuda_conv_columns_bytes(const pc__cuda_conv *s)
{
    return whole((size_t)columns_of(s) * sizeof(uint16_t));
}

size_t pc__cuda_conv_columns_weight_bytes(const pc__cuda_conv *s)
{
    return padded_of(s) == depth_of(s) ? 0 : whole((size_t)s->o * padded_of(s) * sizeof(uint16_t));
}

void pc__cuda_conv_columns(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight, void *columns,
                           void *padded)
{
    const int chunks = padded_of(s) / EIGHT;
    const long long threads = s->n * s->oh * s->ow * chunks;
    const long long blocks = (threads + THREADS - 1) / THREADS, most = (long long)s->multiprocessors * 32;
    pc::start(columns_kernel, (unsigned)(blocks < most ? blocks : most), THREADS, queue, s->early, *s,
              (const uint16_t *)x, (const uint16_t *)weight, (eight *)columns, (uint16_t *)padded, chunks);
}

void pc__cuda_conv_columns_strip(cudaStream_t queue, const pc__cuda_conv *s, const void *padded, void *dweight)
{
    const int depth = depth_of(s), count = s->o * depth;
    pc::start(strip_kernel, (unsigned)((count + THREADS - 1) / THREADS), THREADS, queue, s->early,
              (const uint16_t *)padded, (uint16_t *)dweight, depth, padded_of(s), count);
}
