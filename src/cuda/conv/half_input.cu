/* half_input.cu: the gradient of the input of a convolution of 16-bit numbers, by the way of input.cu: the
 * gradient is spread before pooling and activation in scratch memory, and a stride makes classes of pixels. */
#include "cuda/conv/half.cuh"
#include "cuda/conv/half.h"
#include "cuda/conv/patch.h"

#define SPREAD_MOST ((int64_t)256 << 20) /* bytes of gradient spread at a time */

namespace
{

template <class T> __device__ inline T before(const pc__cuda_conv &s, T dy, const T *y, long long at)
{
    return needs_y(s) ? T(activation_gradient(s.activation, (float)dy, (float)y[at])) : dy;
}

/* dy spread over the windows, behind the activation: a thread makes eight channels of a window. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    spread_kernel(const pc__cuda_conv s, const T *__restrict__ dy, const T *__restrict__ y,
                  const uint8_t *__restrict__ argmax, T *__restrict__ to, long long count)
{
    const long long i = ((long long)blockIdx.x * THREADS + threadIdx.x) * EIGHT;
    pc::wait_for_earlier();
    if (i >= count)
        return;
    const long long window = quotient(i, s.o), line = quotient(window, s.yw);
    const int width = s.yw * s.pool, column = (int)(window - line * s.yw) * s.pool;
    T *at = to + (line * s.pool * width + column) * s.o + (i - window * s.o);
    eight<T> value = *(const eight<T> *)(dy + i);
    eight<uint8_t> most = {};
#pragma unroll
    for (int j = 0; j < EIGHT; j++)
        value.at[j] = before(s, value.at[j], y, i + j);
    if (s.pool == 2)
        most = *(const eight<uint8_t> *)(argmax + i);
    for (int q = 0; q < s.pool * s.pool; q++) {
        eight<T> here;
#pragma unroll
        for (int j = 0; j < EIGHT; j++)
            here.at[j] = most.at[j] == q ? value.at[j] : T(0.0f);
        *(eight<T> *)(at + (q / s.pool * width + q % s.pool) * s.o) = here;
    }
}

/* Pixels whose distance from the first tap's, along one axis, leaves `rest` when divided by the stride: the first of
 * them, how many, and how many taps reach them. */
struct axis {
    int rest, first, count, taps;
};

__host__ __device__ inline axis axis_of(int rest, int size, int stride, int padding, int kernel)
{
    const int first = ((rest - padding) % stride + stride) % stride;
    return {rest, first, first < size ? (size - first + stride - 1) / stride : 0,
            rest < kernel ? (kernel - rest + stride - 1) / stride : 0};
}

template <class T, int BN>
__global__ void __launch_bounds__(THREADS, BN == 64 ? 3 : BLOCKS)
    half_input_kernel(const pc__cuda_conv s, const source<T> g, filter<T> f, T *__restrict__ dx, bool whole,
                      const split_k k)
{
#if TENSOR_UNITS
    typedef half_tile<T, BN> tile;
    extern __shared__ __align__(128) char shared[];
    __shared__ place places[tile::BM];
    __shared__ long long targets[tile::BM]; /* where each row goes in dx, or -1 */
    const int kind = blockIdx.z / k.splits; /* of pixels */
    const axis down = axis_of(kind / s.sw, s.h, s.sh, s.ph, s.kh);
    const axis right = axis_of(kind % s.sw, s.w, s.sw, s.pw, s.kw);
    const long long first = (long long)blockIdx.x * tile::BM, rows = s.n * down.count * right.count;
    pc::wait_for_earlier();
    if (first >= rows)
        return;
    for (int i = threadIdx.x; i < tile::BM; i += THREADS) {
        const int at = tile::row_at(i);
        const long long m = first + at;
        places[i] = {0, NOWHERE, NOWHERE};
        targets[at] = -1;
        if (m < rows) {
            const long long line = quotient(m, right.count), image = quotient(line, down.count);
            const int row = down.first + (int)(line - image * down.count) * s.sh;
            const int column = right.first + (int)(m - line * right.count) * s.sw;
            places[i] = {image * g.h * g.w * s.o, (row + s.ph - down.rest) / s.sh, (column + s.pw - right.rest) / s.sw};
            targets[at] = ((image * s.h + row) * s.w + column) * s.c;
        }
    }
    f.at += down.rest * f.tap_row + right.rest * f.tap_column;
    f.tap_row *= s.sh, f.tap_column *= s.sw;
    f.rows = right.taps > 0 ? down.taps : 0;
    f.columns = right.taps > 0 ? right.taps : 1;
    __syncthreads();
    tile t;
    if (!t.run(g, f, places, (T *)shared, k, kind, blockIdx.z - kind * k.splits))
        return;
    const int column = blockIdx.y * BN + tile::first_output();
#pragma unroll
    for (int q = 0; q < 4; q++) {
        const long long target = targets[tile::first_row() + q];
        eight<T> value;
#pragma unroll
        for (int j = 0; j < EIGHT; j++)
            value.at[j] = T(t.at(q, j));
        if (target >= 0 && column < s.c)
            store_eight(dx + target + column, value, s.c - column, whole);
    }
#endif
}

int parts_of(int size, int stride)
{
    return (size + stride - 1) / stride;
}

/* Pixels of a picture in the largest class. */
long long most_pixels(const pc__cuda_conv *s)
{
    return (long long)parts_of(s->h, s->sh) * parts_of(s->w, s->sw);
}

/* Of all pictures, whether they are made at a time or not. */
cut_tiles tiling_of(const pc__cuda_conv *s)
{
    const int taps = parts_of(s->kh, s->sh) * parts_of(s->kw, s->sw);
    return tiling_of(s, s->n * most_pixels(s), s->c, s->sh * s->sw, taps * s->o);
}

/* Of the pictures that `s` has. */
template <class T, int BN>
void launch(cudaStream_t queue, const pc__cuda_conv *s, const source<T> &g, const filter<T> &f, T *dx, const split_k &k)
{
    constexpr int BM = THREADS / 32 / (BN / 32) * 32;
    constexpr size_t shared = STAGES * (BM + BN) * DEPTH * sizeof(T);
    const long long most = s->n * most_pixels(s);
    const dim3 grid((unsigned)((most + BM - 1) / BM), (unsigned)((s->c + BN - 1) / BN),
                    (unsigned)(s->sh * s->sw * k.splits));
    const bool whole = s->c % EIGHT == 0 && on_16_bytes(dx);
    pc::start_grid(half_input_kernel<T, BN>, grid, dim3(THREADS), shared, queue, s->early, *s, g, f, dx, whole, k);
}

bool needs_spreading(const pc__cuda_conv *s)
{
    return s->pool > 1 || s->activation != ACTIVATION_NONE;
}

/* Pictures at a time: as many as there is scratch memory for. */
int64_t spread_pictures(const pc__cuda_conv *s)
{
    const int64_t bytes = (int64_t)2 * s->yh * s->yw * s->pool * s->pool * s->o;
    const int64_t most = SPREAD_MOST / (bytes > 0 ? bytes : 1);
    return most < 1 ? 1 : most < s->n ? most : s->n;
}

size_t spread_bytes(const pc__cuda_conv *s)
{
    const size_t picture = (size_t)2 * s->yh * s->yw * s->pool * s->pool * s->o;
    return needs_spreading(s) ? ((size_t)spread_pictures(s) * picture + 255) / 256 * 256 : 0;
}

template <class T>
void spread(cudaStream_t queue, const pc__cuda_conv *s, const T *dy, const T *y, const uint8_t *argmax, T *to)
{
    const long long count = s->n * s->yh * s->yw * s->o;
    pc::start(spread_kernel<T>, (unsigned)((count / EIGHT + THREADS - 1) / THREADS), THREADS, queue, s->early, *s, dy,
              y, argmax, to, count);
}

template <class T>
void backward(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, void *packed, const void *y,
              const uint8_t *argmax, const void *dy, void *dx, bool patches, void *scratch, unsigned *counters)
{
    const packing<T> weights = packing_of<T>(s, weight, packed ? packed : scratch, true);
    const filter<T> f = filter_of(s, weights);
    if (!packed)
        pack(queue, s, weights);
    const long long window = (long long)s->yh * s->yw * s->o, picture = (long long)s->h * s->w * s->c;
    if (patches) {
        pc__cuda_conv_patch_input(queue, s, f.at, y, argmax, dy, dx);
        return;
    }
    T *between = (T *)((char *)scratch + filter_bytes(s));
    const split_k k = split_of(tiling_of(s), {(float *)((char *)between + spread_bytes(s)), counters});
    const source<T> g = {needs_spreading(s) ? between : (const T *)dy, s->yh * s->pool, s->yw * s->pool, s->o, -1};
    pc__cuda_conv part = *s;
    part.n = needs_spreading(s) ? spread_pictures(s) : s->n;
    for (long long first = 0; first < s->n; first += part.n) {
        part.n = part.n < s->n - first ? part.n : s->n - first;
        const T *saved = y ? (const T *)y + first * window : NULL;
        if (needs_spreading(s))
            spread<T>(queue, &part, (const T *)dy + first * window, saved, argmax ? argmax + first * window : NULL,
                      between);
        if (s->c <= 32)
            launch<T, 32>(queue, &part, g, f, (T *)dx + first * picture, k);
        else
            launch<T, 64>(queue, &part, g, f, (T *)dx + first * picture, k);
    }
}

} // namespace

bool pc__cuda_conv_half_input_fits(const pc__cuda_conv *s, const void *dy)
{
    return s->o > 0 && s->o % EIGHT == 0 && s->pool <= 2 && s->kh * s->kw > 0 && s->n * s->yh * s->yw > 0 &&
           s->sh * s->sw < 65536 && on_16_bytes(dy);
}

size_t pc__cuda_conv_half_input_scratch(const pc__cuda_conv *s, bool patches)
{
    return filter_bytes(s) + (patches ? 0 : spread_bytes(s) + partial_bytes(tiling_of(s)));
}

void pc__cuda_conv_half_input(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, void *packed,
                              const void *y, const uint8_t *argmax, const void *dy, void *dx, bool patches,
                              void *scratch, unsigned *counters)
{
    if (s->dtype == PC__CUDA_F16)
        backward<pc::f16>(queue, s, weight, packed, y, argmax, dy, dx, patches, scratch, counters);
    else
        backward<pc::bf16>(queue, s, weight, packed, y, argmax, dy, dx, patches, scratch, counters);
}
