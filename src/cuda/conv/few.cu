/* few.cu: the forward convolution of three channels. A warp makes windows of 2 x 2 pixels, a lane an output
 * channel, whose 27 weights it keeps in registers: what is read from shared memory is the same for all lanes. Plain
 * multiplications: 27 products are too few to pay for what matrix units want. */
#include "cuda/conv/few.cuh"
#include "cuda/conv/few_half.h"

namespace
{

constexpr int WEIGHTS = LANES * (DEPTH + 1); /* of a block's channels, and their biases */

struct forward_data {
    const float *x, *weight, *bias;
    float *y;
    uint8_t *argmax;
};

/* The four pixels of the window whose first input element is `from`; 8-byte loads, since windows lie an even number of
 * floats apart. */
template <int STRIDE>
__device__ inline void window_sums(const float *from, int pitch, const float (&w)[DEPTH], float (&sum)[4])
{
    constexpr int WIDTH = (STRIDE + 3) * COLORS, PAIRS = (WIDTH + 1) / 2;
#pragma unroll
    for (int i = 0; i < STRIDE + 3; i++) {
        float x[2 * PAIRS];
#pragma unroll
        for (int j = 0; j < PAIRS; j++)
            *(float2 *)(x + 2 * j) = *(const float2 *)(from + i * pitch + 2 * j);
#pragma unroll
        for (int q = 0; q < 4; q++) {
            const int row = i - q / 2 * STRIDE;
            if (row >= 0 && row < 3)
#pragma unroll
                for (int j = 0; j < 9; j++)
                    sum[q] = fmaf(x[q % 2 * STRIDE * COLORS + j], w[row * 9 + j], sum[q]);
        }
    }
}

/* Where results of the band wait until they are written plane by plane: [channel][window], 4 pixels without pooling. */
struct staged {
    float *y;
    uint8_t *argmax;
    int pitch;
};

/* Without pooling: the pixels of the window at (row, column) of y, `to` its channel's first. */
__device__ inline void store_pixels(const pc__cuda_conv &s, float *to, const float (&sum)[4], float bias, int row,
                                    int column)
{
    const int step = s.planes ? 1 : s.o;
#pragma unroll
    for (int q = 0; q < 4; q++) {
        const int r = row + q / 2, w = column + q % 2;
        if (r < s.yh && w < s.yw)
            to[(r * s.yw + w) * step] = activated(s.activation, sum[q] + bias);
    }
}

/* The largest of a window and its place. */
__device__ inline float largest(const float (&sum)[4], int &place)
{
    float most = sum[0];
    place = 0;
#pragma unroll
    for (int q = 1; q < 4; q++) {
        const bool more = sum[q] > most || sum[q] != sum[q];
        most = more ? sum[q] : most;
        place = more ? q : place;
    }
    return most;
}

/* The weights of channels from `begin` on, and behind them the biases, or zeros. */
__device__ inline void load_weights(const pc__cuda_conv &s, const forward_data &d, int begin, int outputs, float *to)
{
    const float *from = d.weight + begin * DEPTH;
    const int count = outputs * DEPTH;
    if (count % 4 == 0 && (uintptr_t)from % 16 == 0)
        for (int i = 4 * threadIdx.x; i < count; i += 4 * blockDim.x)
            bring<4>(to + i, from + i, true);
    else
        for (int i = threadIdx.x; i < count; i += blockDim.x)
            bring<1>(to + i, from + i, true);
    const int lane = threadIdx.x;
    const bool there = d.bias && lane < outputs;
    if (lane < LANES)
        bring<1>(to + LANES * DEPTH + lane, there ? d.bias + begin + lane : d.weight, there);
}

template <int POOL, int STRIDE>
__global__ void __launch_bounds__(256) few_kernel(const pc__cuda_conv s, const cut c, const forward_data d)
{
    extern __shared__ __align__(16) float band[];
    float *weight = band + c.pitch * c.height;
    const int pitch = c.rows * c.wide | 1;
    const staged to = {weight + WEIGHTS, (uint8_t *)(weight + WEIGHTS + LANES * pitch), pitch};
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
    const int image = blockIdx.x / c.bands, first = (blockIdx.x - image * c.bands) * c.rows;
    const int rows = min(c.rows, c.high - first), windows = rows * c.wide, begin = blockIdx.y * LANES;
    const int outputs = min(LANES, s.o - begin), o = begin + lane;
    pc::wait_for_earlier();
    load_band(s, c, d.x + (long long)image * s.h * s.w * COLORS, first * 2 * STRIDE - s.ph, band);
    load_weights(s, d, begin, outputs, weight);
    wait_loaded();
    const float bias = weight[LANES * DEPTH + lane];
    float w[DEPTH];
#pragma unroll
    for (int k = 0; k < DEPTH; k++)
        w[k] = lane < outputs ? weight[lane * DEPTH + k % COLORS * TAPS + k / COLORS] : 0.0f;
    const long long picture = picture_at(s, image) + (long long)o * channel_step(s);
    const bool relu = s.activation == ACTIVATION_RELU, marks = marks_dead(s);
    float *y = d.y + picture + (s.planes ? 0 : first * s.yw * s.o);
    uint8_t *argmax = d.argmax ? d.argmax + picture + first * s.yw * s.o : NULL;
    int down = 0, column = warp;
    for (; column >= c.wide; column -= c.wide)
        down++;
    for (int i = warp; i < windows; i += warps) {
        float sum[4] = {};
        window_sums<STRIDE>(band + (down * c.pitch + column * COLORS) * 2 * STRIDE, c.pitch, w, sum);
        if (POOL == 1 && lane < outputs)
            store_pixels(s, d.y + picture, sum, bias, 2 * (first + down), 2 * column);
        int place;
        float most = largest(sum, place) + bias;
        most = relu ? (most < 0 ? 0 : most) : activated(s.activation, most);
        place = marks && most <= 0 ? PC__CUDA_CONV_DEAD : place;
        if (POOL == 2 && s.planes) {
            to.y[lane * to.pitch + i] = most;
            to.argmax[lane * to.pitch + i] = (uint8_t)place;
        } else if (POOL == 2 && lane < outputs) {
            y[i * s.o] = most;
            if (argmax)
                argmax[i * s.o] = (uint8_t)place;
        }
        for (column += warps; column >= c.wide; column -= c.wide)
            down++;
    }
    if (POOL == 1 || !s.planes)
        return;
    __syncthreads();
    const long long at = picture_at(s, image) + (long long)begin * channel_step(s) + first * s.yw;
    for (unsigned e = threadIdx.x; e < (unsigned)(outputs * windows); e += blockDim.x) {
        const int k = (int)(e / (unsigned)windows), i = (int)e - k * windows, target = k * channel_step(s) + i;
        d.y[at + target] = to.y[k * to.pitch + i];
        if (d.argmax)
            d.argmax[at + target] = to.argmax[k * to.pitch + i];
    }
}

size_t bytes_for(const pc__cuda_conv *s, const cut &c)
{
    const size_t waiting = s->planes && s->pool == 2 ? (size_t)LANES * (c.rows * c.wide | 1) * 5 : 0;
    return band_bytes(c) + WEIGHTS * sizeof(float) + waiting;
}

/* As many rows in a band as leave three blocks for each multiprocessor, at most 8: all are there at once, and those of
 * the fullest one decide. */
cut cut_for(const pc__cuda_conv *s)
{
    int rows = 8;
    while (rows > 1 && (s->n * over(cut_of(s, 1).high, rows) * over(s->o, LANES) < 3 * s->multiprocessors ||
                        bytes_for(s, cut_of(s, rows)) > SHARED_MOST / 2))
        rows--;
    return cut_of(s, rows);
}

template <int POOL> void launch(cudaStream_t queue, const pc__cuda_conv *s, const forward_data &d)
{
    const cut c = cut_for(s);
    const int warps = over(c.rows * c.wide, 2);
    const dim3 grid((unsigned)(s->n * c.bands), (unsigned)over(s->o, LANES));
    const dim3 block((unsigned)(LANES * (warps < 2 ? 2 : warps < 8 ? warps : 8)));
    pc::start_grid(s->sh == 1   ? few_kernel<POOL, 1>
                   : s->sh == 2 ? few_kernel<POOL, 2>
                                : few_kernel<POOL, 3>,
                   grid, block, bytes_for(s, c), queue, s->early, *s, c, d);
}

} // namespace

bool pc__cuda_conv_few_fits(const pc__cuda_conv *s, const void *x)
{
    const long long blocks = s->n * (long long)s->yh, chunks = over(s->o, LANES);
    return s->dtype != PC__CUDA_F64 && s->c == COLORS && s->kh == 3 && s->kw == 3 && s->sh == s->sw && s->sh <= 3 &&
           s->pool <= 2 && s->o >= 8 && blocks < INT32_MAX && chunks < 65536 && (uintptr_t)x % 16 == 0 &&
           bytes_for(s, cut_of(s, 1)) <= SHARED_MOST && pc__cuda_conv_few_scratch(s) > 0;
}

void pc__cuda_conv_few_forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
                               const void *bias, void *y, uint8_t *argmax)
{
    if (is_half(s)) {
        pc__cuda_conv_few_half_forward(queue, s, x, weight, bias, y, argmax);
        return;
    }
    const forward_data d = {(const float *)x, (const float *)weight, (const float *)bias, (float *)y, argmax};
    s->pool == 2 ? launch<2>(queue, s, d) : launch<1>(queue, s, d);
}
