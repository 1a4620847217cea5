/* conv.cu: the forward convolution. With pooling by two the rows of a tile are ordered window by window, so that a
 * thread holds whole windows and pools them in registers; other windows are pooled by a kernel of their own (pooled.h)
 * from the convolution in scratch memory. */
#include "cuda/conv/conv.h"
#include "cuda/conv/order.cuh"
#include "cuda/conv/pooled.h"
#include "cuda/conv/tile.cuh"
#include "cuda/shared/dependent_launch.cuh"

namespace
{

/* Row m of the product: pixel m of [n][yh * POOL][yw * POOL], window by window. */
template <int POOL, class T> __device__ inline place place_of(const pc__cuda_conv &s, const picture<T> &x, long long m)
{
    const long long window = m / (POOL * POOL);
    const int q = (int)(m % (POOL * POOL));
    const long long line = quotient(window, s.yw), image = quotient(line, s.yh);
    if (image >= s.n)
        return nowhere();
    const int row = (int)(line - image * s.yh) * POOL + q / POOL;
    const int column = (int)(window - line * s.yw) * POOL + q % POOL;
    return place_at(x, image, row * s.sh - s.ph, column * s.sw - s.pw);
}

template <class T> struct result {
    const T *bias;
    T *y;
    uint8_t *argmax;
    bool whole; /* outputs side by side, in fours that lie on 16 bytes */
};

/* Out of line is what few layers need: for each of a thread's sums it would be most of the kernel. */
template <class T> __device__ __noinline__ T activated_apart(int kind, T x)
{
    return activated(kind, x);
}

__device__ __noinline__ long long place_in_planes(long long pixel, int area, int channels)
{
    return pixel + quotient(pixel, area) * ((long long)area * (channels - 1));
}

/* As pixel_at says. */
__device__ inline long long target_at(const pc__cuda_conv &s, long long pixel)
{
    return s.planes ? place_in_planes(pixel, s.yh * s.yw, s.o) : pixel * s.o;
}

template <class T, int N> __device__ inline void activate(int kind, T (*value)[4])
{
    if (kind == ACTIVATION_NONE)
        return;
#pragma unroll
    for (int i = 0; i < 4 * N; i++) {
        T &x = value[i / 4][i % 4];
        if (kind == ACTIVATION_RELU)
            x = x < 0 ? T(0) : x;
        else
            x = activated_apart(kind, x);
    }
}

/* Pool (activations are monotone, so that they may follow), add the bias, activate, write. sum[4] is a window or four
 * pixels, by `width` outputs, of which `left` are there. */
template <class T, int POOL>
__device__ inline void finish(const pc__cuda_conv &s, const result<T> &to, const T (*sum)[4], long long m, int column,
                              int width, int left)
{
    T bias[4], value[4][4];
    for (int j = 0; j < 4; j++)
        bias[j] = to.bias && j < left ? to.bias[column + j] : T(0);
    const int step = channel_step(s);
    const long long first = (long long)column * step;
    if (POOL == 1) {
        const long long rows = s.n * s.yh * s.yw;
#pragma unroll
        for (int i = 0; i < 16; i++)
            value[i / 4][i % 4] = sum[i / 4][i % 4] + bias[i % 4];
        activate<T, 4>(s.activation, value);
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (m + i < rows)
                store_four(to.y + target_at(s, m + i) + first, value[i], width, left, to.whole, step);
        return;
    }
    if (m / 4 >= s.n * s.yh * s.yw)
        return;
    uint8_t most[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
        T &largest = value[0][j];
        largest = sum[0][j];
        most[j] = 0;
#pragma unroll
        for (int q = 1; q < 4; q++) {
            const bool more = sum[q][j] > largest || sum[q][j] != sum[q][j];
            largest = more ? sum[q][j] : largest;
            most[j] = more ? (uint8_t)q : most[j];
        }
        largest += bias[j];
    }
    activate<T, 1>(s.activation, value);
#pragma unroll
    for (int j = 0; j < 4; j++)
        most[j] = (uint8_t)mark_of(s, most[j], value[0][j]);
    const long long at = target_at(s, m / 4) + first;
    store_four(to.y + at, value[0], width, left, to.whole, step);
    if (to.argmax)
        store_four(to.argmax + at, most, width, left, to.whole, step);
}

template <class T, int POOL, int BN, int VECTOR, bool EXACT>
__global__ void __launch_bounds__(THREADS, blocks_at_once<T>(BN))
    forward_kernel(const pc__cuda_conv s, picture<T> x, weights<T> w, const result<T> to, const split_k k)
{
    typedef tile<T, BN, VECTOR, EXACT> tile_type;
    __shared__ place places[tile_type::BM];
    const columns across = columns_of(s.groups, outputs_of(s), BN, blockIdx.y);
    x.x += across.group * inputs_of(s);
    w.at += across.group * w.group;
    w.outputs = across.end;
    pc::wait_for_earlier();
    const long long first = (long long)blockIdx.x * tile_type::BM;
    if (threadIdx.x < tile_type::BM)
        places[threadIdx.x] = place_of<POOL>(s, x, first + tile_type::row_at(threadIdx.x));
    __syncthreads();
    tile_type t;
    if (!run_part(t, x, w, across.column, places, k, 0, blockIdx.z))
        return;
#pragma unroll
    for (int group = 0; group < tile_type::GROUPS; group++) {
        const int column = across.column + tile_type::column_of(group), left = across.end - column;
        const int width = tile_type::width_of(group);
        if (width > 0 && left > 0)
            finish<T, POOL>(s, to, t.sum + group * 4, first + tile_type::row_of(group), column, width, left);
    }
}

/* By tiles `wide`. Counted before pooling, fused or not, so that sums are cut in the same way. */
cut_tiles tiling_of(const pc__cuda_conv *s, int wide)
{
    return tiling_of(s, wide, s->n * s->oh * s->ow, outputs_of(*s), 1, s->kh * s->kw * inputs_of(*s));
}

template <class T, int POOL, int BN, int VECTOR, bool EXACT>
void launch(cudaStream_t queue, const pc__cuda_conv *s, const picture<T> &x, const weights<T> &w, const result<T> &to,
            const parts_memory &in)
{
    const long long rows = s->n * s->yh * s->yw * POOL * POOL;
    constexpr int BM = rows_of_block<T>(BN);
    const split_k k = split_of<T>(tiling_of(s, BN), w.depth, in);
    const dim3 grid((unsigned)((rows + BM - 1) / BM), (unsigned)blocks_across(s, outputs_of(*s), BN),
                    (unsigned)k.splits);
    pc::start_grid(forward_kernel<T, POOL, BN, VECTOR, EXACT>, grid, dim3(THREADS), 0, queue, s->early, *s, x, w, to,
                   k);
}

template <int POOL>
void launch_any(cudaStream_t queue, const pc__cuda_conv *s, const picture<double> &x, const weights<double> &w,
                const result<double> &to, const parts_memory &in)
{
    launch<double, POOL, 32, 1, true>(queue, s, x, w, to, in);
}

template <int POOL, int BN>
void launch_wide(cudaStream_t queue, const pc__cuda_conv *s, const picture<float> &x, const weights<float> &w,
                 bool fours, const result<float> &to, const parts_memory &in)
{
    if (!fours)
        launch<float, POOL, BN, 1, true>(queue, s, x, w, to, in);
    else if (s->tf32)
        launch<float, POOL, BN % 32 ? 32 : BN, 4, false>(queue, s, x, w, to, in);
    else
        launch<float, POOL, BN, 4, true>(queue, s, x, w, to, in);
}

template <int POOL>
void launch_any(cudaStream_t queue, const pc__cuda_conv *s, const picture<float> &x, const weights<float> &w,
                const result<float> &to, const parts_memory &in)
{
    const bool fours = inputs_of(*s) % 4 == 0 && on_16_bytes(x.x);
    switch (tile_for(outputs_of(*s), s->tf32 && fours)) {
    case 16:
        launch_wide<POOL, 16>(queue, s, x, w, fours, to, in);
        break;
    case 48:
        launch_wide<POOL, 48>(queue, s, x, w, fours, to, in);
        break;
    case 64:
        launch_wide<POOL, 64>(queue, s, x, w, fours, to, in);
        break;
    default:
        launch_wide<POOL, 32>(queue, s, x, w, fours, to, in);
    }
}

/* Of the convolution that is pooled by a kernel of its own. */
size_t flat_bytes(const pc__cuda_conv *s)
{
    return s->pool > 2 ? in_256(bytes_of(s, (size_t)s->n * s->yh * s->yw * s->pool * s->pool * s->o)) : 0;
}

template <class T>
void forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight, const void *bias, void *y,
             uint8_t *argmax, void *scratch, unsigned *counters)
{
    const int area = s->kh * s->kw, c = inputs_of(*s), o = outputs_of(*s);
    const picture<T> from = {(const T *)x, s->h, s->w, s->c, s->dh, s->dw};
    const weights<T> w = weights_for<T>(queue, s, weight, {c, s->o, o, area, c * area, o * c * area}, scratch);
    const bool whole = !s->planes && o % 4 == 0 && on_16_bytes(y) && (uintptr_t)argmax % 4 == 0;
    const result<T> to = {(const T *)bias, (T *)y, argmax, whole};
    const parts_memory in = {(float *)((char *)scratch + packed_bytes(s) + flat_bytes(s)), counters};
    if (s->pool == 1) {
        launch_any<1>(queue, s, from, w, to, in);
    } else if (s->pool == 2) {
        launch_any<2>(queue, s, from, w, to, in);
    } else {
        pc__cuda_conv flat = *s;
        T *conv = (T *)((char *)scratch + packed_bytes(s));
        flat.pool = 1, flat.activation = ACTIVATION_NONE, flat.planes = 0;
        flat.yh = s->yh * s->pool, flat.yw = s->yw * s->pool;
        const result<T> between = {NULL, conv, NULL, s->o % 4 == 0};
        launch_any<1>(queue, &flat, from, w, between, in);
        pc__cuda_conv_pool(queue, s, conv, flat.yh, flat.yw, bias, y, argmax);
    }
}

} // namespace

size_t pc__cuda_conv_scratch(const pc__cuda_conv *s)
{
    return packed_bytes(s) + flat_bytes(s) + most_partial_bytes(s, outputs_of(*s), tiling_of);
}

void pc__cuda_conv_forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
                           const void *bias, void *y, uint8_t *argmax, void *scratch, unsigned *counters)
{
    if (s->dtype == PC__CUDA_F32)
        forward<float>(queue, s, x, weight, bias, y, argmax, scratch, counters);
    else
        forward<double>(queue, s, x, weight, bias, y, argmax, scratch, counters);
}
