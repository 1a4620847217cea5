/* input.cu: the gradient of a convolution's input: each pixel of x collects, over the taps of the kernel, what the
 * pixels it went into send back; no two threads add to one element. A stride s makes s x s classes of pixels, by the
 * taps that reach them; each class is a convolution of stride 1 with every s-th tap, or with as many more as their
 * distance shares with the stride, so that no tap is tried in vain.
 * Behind pooling or an activation the gradient is first spread out before them, in scratch memory: every element of it
 * is read for each tap. */
#include "cuda/conv/conv.h"
#include "cuda/conv/order.cuh"
#include "cuda/conv/tile.cuh"
#include "cuda/shared/dependent_launch.cuh"

#define SPREAD_MOST ((int64_t)128 << 20) /* bytes of gradient spread at a time */

namespace
{

/* dy spread over the windows, behind the activation: a thread makes N channels of a window. */
template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    spread_kernel(const pc__cuda_conv s, const T *__restrict__ dy, const T *__restrict__ y,
                  const uint8_t *__restrict__ argmax, T *__restrict__ to, long long count)
{
    const long long i = ((long long)blockIdx.x * THREADS + threadIdx.x) * N;
    pc::wait_for_earlier();
    if (i >= count)
        return;
    const long long window = quotient(i, s.o), line = quotient(window, s.yw);
    const int o = (int)(i - window * s.o), width = s.yw * s.pool, column = (int)(window - line * s.yw) * s.pool;
    T *at = to + (line * s.pool * width + column) * s.o + o;
    const long long from = s.planes ? pixel_at(s, window) + (long long)o * channel_step(s) : i;
    vector<T, N> value = *(const vector<T, N> *)(dy + from);
    vector<uint8_t, N> most = {};
    if (needs_y(s)) {
        const vector<T, N> saved = *(const vector<T, N> *)(y + from);
#pragma unroll
        for (int j = 0; j < N; j++)
            value.at[j] = activation_gradient(s.activation, value.at[j], saved.at[j]);
    }
    if (s.pool > 1)
        most = *(const vector<uint8_t, N> *)(argmax + from);
    for (int q = 0; q < s.pool * s.pool; q++) {
        vector<T, N> here;
#pragma unroll
        for (int j = 0; j < N; j++)
            here.at[j] = most.at[j] == q ? value.at[j] : T(0);
        *(vector<T, N> *)(at + (q / s.pool * width + q % s.pool) * s.o) = here;
    }
}

/* The taps, along one axis, that lead to pixels of one class: every `apart`-th; behind each lies the next `places` further. */
struct axis_taps {
    int apart, places;
};

__host__ __device__ inline axis_taps taps_between(int stride, int dilation)
{
    int a = stride, b = dilation;
    while (b) {
        const int rest = a % b;
        a = b, b = rest;
    }
    return {stride / a, dilation / a};
}

/* Pixels whose distance from the first tap's, along one axis, leaves `rest` when divided by the stride: the first of
 * them, how many, the first tap that reaches them, and how many do. */
struct axis {
    int first, count, tap, taps;
};

__device__ inline axis axis_of(int rest, int size, int stride, int dilation, int padding, int kernel, int apart)
{
    const int first = ((rest - padding) % stride + stride) % stride;
    const int count = first < size ? (size - first + stride - 1) / stride : 0;
    const unsigned by = (unsigned)dilation % (unsigned)stride; /* what a tap adds to a rest */
    int tap = by == 1 ? rest : 0;
    for (unsigned reached = 0; by != 1 && tap < apart && reached != (unsigned)rest; tap++)
        reached = reached + by < (unsigned)stride ? reached + by : reached + by - (unsigned)stride;
    if (tap >= apart || tap >= kernel)
        return {first, count, 0, 0};
    return {first, count, tap, (kernel - tap + apart - 1) / apart};
}

template <class T, int BN, int VECTOR, bool EXACT>
__global__ void __launch_bounds__(THREADS, blocks_at_once<T>(BN))
    input_kernel(const pc__cuda_conv s, picture<T> g, weights<T> w, T *__restrict__ dx, bool whole, const split_k k)
{
    typedef tile<T, BN, VECTOR, EXACT> tile_type;
    constexpr int BM = tile_type::BM;
    __shared__ place places[BM];
    __shared__ long long targets[BM]; /* where each row goes in dx, or -1 */
    pc::wait_for_earlier();
    const int kind = blockIdx.z / k.splits; /* of pixels */
    const int every_row = taps_between(s.sh, s.dh).apart, every_column = taps_between(s.sw, s.dw).apart;
    const axis down = axis_of(kind / s.sw, s.h, s.sh, s.dh, s.ph, s.kh, every_row);
    const axis right = axis_of(kind % s.sw, s.w, s.sw, s.dw, s.pw, s.kw, every_column);
    const columns across = columns_of(s.groups, inputs_of(s), BN, blockIdx.y);
    const long long first = (long long)blockIdx.x * BM, rows = s.n * down.count * right.count;
    if (first >= rows)
        return;
    if (threadIdx.x < BM) {
        const int at = tile_type::row_at(threadIdx.x);
        const long long m = first + at;
        places[threadIdx.x] = nowhere();
        targets[at] = -1;
        if (m < rows) {
            const long long line = quotient(m, right.count), image = quotient(line, down.count);
            const int row = down.first + (int)(line - image * down.count) * s.sh;
            const int column = right.first + (int)(m - line * right.count) * s.sw;
            places[threadIdx.x] =
                place_at(g, image, (row + s.ph - down.tap * s.dh) / s.sh, (column + s.pw - right.tap * s.dw) / s.sw);
            targets[at] = ((image * s.h + row) * s.w + column) * s.c;
        }
    }
    g.x += across.group * outputs_of(s);
    w.at += down.tap * w.tap_row + right.tap * w.tap_column + across.group * w.group;
    w.tap_row *= every_row, w.tap_column *= every_column;
    w.taps_in_row = right.taps > 0 ? right.taps : 1;
    w.depth = down.taps * right.taps * w.inner;
    w.outputs = across.end;
    w.stride = tap_of(w, DEPTH);
    __syncthreads();
    tile_type t;
    if (!run_part(t, g, w, across.column, places, k, kind, blockIdx.z - kind * k.splits))
        return;
#pragma unroll
    for (int i = 0; i < tile_type::TM; i++) {
        const int width = tile_type::width_of(i / 4), column = across.column + tile_type::column_of(i / 4);
        const long long target = width ? targets[tile_type::row_of(i / 4) + i % 4] : -1;
        if (target >= 0 && column < across.end)
            store_four(dx + target + column, t.sum[i], width, across.end - column, whole);
    }
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

/* By tiles `wide`, of all pictures, whether they are made at a time or not. */
cut_tiles tiling_of(const pc__cuda_conv *s, int wide)
{
    const int taps =
        parts_of(s->kh, taps_between(s->sh, s->dh).apart) * parts_of(s->kw, taps_between(s->sw, s->dw).apart);
    return tiling_of(s, wide, s->n * most_pixels(s), inputs_of(*s), s->sh * s->sw, taps * outputs_of(*s));
}

/* `n` of the pictures. */
template <class T, int BN, int VECTOR, bool EXACT>
void launch(cudaStream_t queue, const pc__cuda_conv *s, int64_t n, const picture<T> &g, const weights<T> &w, T *dx,
            const parts_memory &in)
{
    const long long most = n * most_pixels(s);
    const split_k k = split_of<T>(tiling_of(s, BN), w.depth, in);
    pc__cuda_conv part = *s;
    part.n = n;
    constexpr int BM = rows_of_block<T>(BN);
    const dim3 grid((unsigned)((most + BM - 1) / BM), (unsigned)blocks_across(s, inputs_of(*s), BN),
                    (unsigned)(s->sh * s->sw * k.splits));
    const bool whole = inputs_of(*s) % 4 == 0 && on_16_bytes(dx);
    pc::start_grid(input_kernel<T, BN, VECTOR, EXACT>, grid, dim3(THREADS), 0, queue, s->early, part, g, w, dx, whole,
                   k);
}

template <int BN>
void launch_wide(cudaStream_t queue, const pc__cuda_conv *s, int64_t n, const picture<float> &g,
                 const weights<float> &w, bool fours, float *dx, const parts_memory &in)
{
    if (!fours)
        launch<float, BN, 1, true>(queue, s, n, g, w, dx, in);
    else if (s->tf32)
        launch<float, BN % 32 ? 32 : BN, 4, false>(queue, s, n, g, w, dx, in);
    else
        launch<float, BN, 4, true>(queue, s, n, g, w, dx, in);
}

void launch_any(cudaStream_t queue, const pc__cuda_conv *s, int64_t n, const picture<double> &g,
                const weights<double> &w, double *dx, const parts_memory &in)
{
    launch<double, 32, 1, true>(queue, s, n, g, w, dx, in);
}

void launch_any(cudaStream_t queue, const pc__cuda_conv *s, int64_t n, const picture<float> &g, const weights<float> &w,
                float *dx, const parts_memory &in)
{
    const bool fours = outputs_of(*s) % 4 == 0 && on_16_bytes(g.x);
    switch (tile_for(inputs_of(*s), s->tf32 && fours)) {
    case 16:
        launch_wide<16>(queue, s, n, g, w, fours, dx, in);
        break;
    case 48:
        launch_wide<48>(queue, s, n, g, w, fours, dx, in);
        break;
    case 64:
        launch_wide<64>(queue, s, n, g, w, fours, dx, in);
        break;
    default:
        launch_wide<32>(queue, s, n, g, w, fours, dx, in);
    }
}

bool needs_spreading(const pc__cuda_conv *s)
{
    return s->pool > 1 || s->planes || s->activation != ACTIVATION_NONE;
}

/* Of one picture's gradient before pooling. */
size_t picture_bytes(const pc__cuda_conv *s)
{
    return bytes_of(s, (size_t)s->yh * s->yw * s->pool * s->pool * s->o);
}

/* Pictures at a time: as many as there is scratch memory for. */
int64_t spread_pictures(const pc__cuda_conv *s)
{
    const int64_t bytes = (int64_t)picture_bytes(s), most = SPREAD_MOST / (bytes > 0 ? bytes : 1);
    return most < 1 ? 1 : most < s->n ? most : s->n;
}

size_t spread_bytes(const pc__cuda_conv *s)
{
    return needs_spreading(s) ? in_256((size_t)spread_pictures(s) * picture_bytes(s)) : 0;
}

template <class T>
void backward(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void *y, const uint8_t *argmax,
              const void *dy, void *dx, void *scratch, unsigned *counters)
{
    const int area = s->kh * s->kw, c = inputs_of(*s), o = outputs_of(*s);
    const int down = -taps_between(s->sh, s->dh).places, right = -taps_between(s->sw, s->dw).places;
    const weights<T> w = weights_for<T>(queue, s, weight, {o, s->c, c, c * area, area, o * c * area}, scratch);
    const long long window = (long long)s->yh * s->yw * s->o, image = (long long)s->h * s->w * s->c;
    T *spread = (T *)((char *)scratch + packed_bytes(s));
    const parts_memory in = {(float *)((char *)scratch + packed_bytes(s) + spread_bytes(s)), counters};
    pc__cuda_conv part = *s;
    if (!needs_spreading(s)) {
        launch_any(queue, s, s->n, picture<T>{(const T *)dy, s->yh, s->yw, s->o, down, right}, w, (T *)dx, in);
        return;
    }
    part.n = spread_pictures(s);
    for (long long first = 0; first < s->n; first += part.n) {
        part.n = part.n < s->n - first ? part.n : s->n - first;
        const T *from = (const T *)dy + first * window, *saved = (const T *)y + first * window;
        const uint8_t *most = argmax ? argmax + first * window : NULL;
        const long long count = part.n * window;
        const unsigned grid = (unsigned)((count + THREADS - 1) / THREADS), by_four = (grid + 3) / 4;
        if (count > 0 && !s->planes && s->o % 4 == 0 && on_16_bytes(from) && on_16_bytes(saved) &&
            (uintptr_t)most % 4 == 0)
            pc::start(spread_kernel<T, 4>, by_four, THREADS, queue, s->early, part, from, saved, most, spread, count);
        else if (count > 0)
            pc::start(spread_kernel<T, 1>, grid, THREADS, queue, s->early, part, from, saved, most, spread, count);
        const picture<T> g = {spread, s->yh * s->pool, s->yw * s->pool, s->o, down, right};
        launch_any(queue, s, part.n, g, w, (T *)dx + first * image, in);
    }
}

} // namespace

size_t pc__cuda_conv_input_scratch(const pc__cuda_conv *s)
{
    return packed_bytes(s) + spread_bytes(s) + most_partial_bytes(s, inputs_of(*s), tiling_of);
}

void pc__cuda_conv_input(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void *y,
                         const uint8_t *argmax, const void *dy, void *dx, void *scratch, unsigned *counters)
{
    if (s->dtype == PC__CUDA_F32)
        backward<float>(queue, s, weight, y, argmax, dy, dx, scratch, counters);
    else
        backward<double>(queue, s, weight, y, argmax, dy, dx, scratch, counters);
}
