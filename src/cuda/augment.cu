/* augment.cu: what ops/augment_warp.c and augment_host.c do, operation by operation and without fused multiply-add (the
 * build says so for this file), so that the bits are the CPU's.
 *
 * A block takes 1024 output pixels of one picture, a thread one pixel with all its channels. Pictures with a channel
 * shift or a brightness need the extent of the whole warped picture first: there the picture's first block does all of
 * it, in a few passes that stay in the cache, and the others leave.
 *
 * Of an epoch, a batch is gathered by the order, whose place in it is counted in device memory: one launch of a
 * recording after the other makes one batch after the other. */
#include "cuda/augment.h"
#include "cuda/fault.cuh"

namespace
{

constexpr int THREADS = 1024;

/* One picture. */
struct job {
    const uint8_t *pixels;
    double rows[3], columns[3];
    float shift, brightness; /* 0, negative: none */
    bool two_steps;
    float scale; /* of the first step */
    float *out;
};

__device__ __forceinline__ float blend(float tl, float tr, float bl, float br, float right, float down)
{
    const float top = tl + right * (tr - tl), bottom = bl + right * (br - bl);
    return top + down * (bottom - top);
}

__device__ double map_coordinate(double at, int length, int edge)
{
    const double period = edge == PC__CUDA_REFLECT ? 2.0 * length : length - 1;
    if (length == 1)
        return 0;
    if (edge == PC__CUDA_REFLECT) {
        at -= period * floor(at / period);
        return at >= length ? period - 1 - at : at;
    }
    if (edge == PC__CUDA_WRAP && at < 0)
        return at + period * (trunc(-at / period) + 1);
    if (edge == PC__CUDA_WRAP && at > period)
        return at - period * trunc(at / period);
    return at < 0 ? 0 : at > length - 1 ? length - 1 : at;
}

/* The four neighbours of a pixel, as offsets of their first channels, and how far it is from the first. */
struct corners {
    int tl, tr, bl, br;
    float right, down;
};

/* Inside the picture: the last row and column are reached from the ones before them with a distance of 1. */
__device__ corners inside_corners(const pc__cuda_augment &a, double y, double x)
{
    const double y_end = a.height - 1, x_end = a.width - 1;
    y = y < 0 ? 0 : y;
    y = y > y_end ? y_end : y;
    x = x < 0 ? 0 : x;
    x = x > x_end ? x_end : x;
    const int top = min(static_cast<int>(y), a.height - 2), left = min(static_cast<int>(x), a.width - 2);
    const int first = (top * a.width + left) * a.channels, below = first + a.width * a.channels;
    return {first,
            first + a.channels,
            below,
            below + a.channels,
            static_cast<float>(x - left),
            static_cast<float>(y - top)};
}

/* Anywhere: neighbours beyond the edge are the ones at it. */
__device__ corners edge_corners(const pc__cuda_augment &a, double y, double x)
{
    y = map_coordinate(y, a.height, a.edge);
    x = map_coordinate(x, a.width, a.edge);
    const int top = static_cast<int>(floor(y)), left = static_cast<int>(floor(x));
    const int y0 = max(top, 0) * a.width, y1 = min(top + 1, a.height - 1) * a.width;
    const int x0 = max(left, 0), x1 = min(left + 1, a.width - 1);
    return {(y0 + x0) * a.channels, (y0 + x1) * a.channels,       (y1 + x0) * a.channels,
            (y1 + x1) * a.channels, static_cast<float>(x - left), static_cast<float>(y - top)};
}

/* Output pixel `pixel`, all channels. */
__device__ void warp_pixel(const pc__cuda_augment &a, const job &j, int pixel)
{
    const int row = pixel / a.width, column = pixel - row * a.width;
    const double y = (j.rows[0] * row + j.rows[2]) + j.rows[1] * column;
    const double x = (j.columns[0] * row + j.columns[2]) + j.columns[1] * column;
    const bool outside = y < 0 || y > a.height - 1 || x < 0 || x > a.width - 1;
    const bool tiny = a.height < 2 || a.width < 2;
    float *out = j.out + static_cast<int64_t>(pixel) * a.channels;
    if (outside && a.edge == PC__CUDA_CONSTANT) {
        for (int c = 0; c < a.channels; c++)
            out[c] = a.cval * j.scale;
        return;
    }
    const corners k =
        !tiny && (a.edge == PC__CUDA_NEAREST || !outside) ? inside_corners(a, y, x) : edge_corners(a, y, x);
#pragma unroll
    for (int c = 0; c < 4; c++)
        if (c < a.channels)
            out[c] = j.scale * blend(j.pixels[k.tl + c], j.pixels[k.tr + c], j.pixels[k.bl + c], j.pixels[k.br + c],
                                     k.right, k.down);
}

/* Channel shift; low and high are the whole picture's. */
__device__ float shifted(float value, float shift, float low, float high)
{
    const float moved = value + shift;
    return moved < low ? low : moved > high ? high : moved;
}

/* Keras goes through PIL: see augment_host.c. */
__device__ float brightened(float value, float factor, float low, float high)
{
    const bool outside = low < 0 || high > 255;
    const float range = high - low;
    if (outside)
        value = range != 0 ? (value - low) / range * 255 : 0;
    const float bright = factor * static_cast<float>(static_cast<int>(value));
    value = bright >= 255 ? 255 : static_cast<float>(static_cast<int>(bright));
    return outside ? value / 255 * range + low : value;
}

/* The smallest and largest of `n` floats, for all threads of the block. */
__device__ float2 extent_of(const float *x, int n)
{
    __shared__ float2 warps[THREADS / 32];
    float low = x[0], high = low;
    for (int i = threadIdx.x; i < n; i += THREADS) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    for (int step = 16; step > 0; step /= 2) {
        low = fminf(low, __shfl_xor_sync(0xffffffffu, low, step));
        high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, step));
    }
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = make_float2(low, high);
    __syncthreads();
    for (int w = 0; w < THREADS / 32; w++) {
        low = fminf(low, warps[w].x);
        high = fmaxf(high, warps[w].y);
    }
    return make_float2(low, high);
}

/* All of a picture that takes two steps, by one block. Shifting keeps the order of values, so the extent behind it is
 * the shifted extent. */
__device__ void whole_picture(const pc__cuda_augment &a, const job &j)
{
    const int pixels = a.height * a.width, n = pixels * a.channels;
    for (int pixel = threadIdx.x; pixel < pixels; pixel += THREADS)
        warp_pixel(a, j, pixel);
    __syncthreads();
    const float2 e = extent_of(j.out, n);
    const bool shift = j.shift != 0;
    const float low = shift ? shifted(e.x, j.shift, e.x, e.y) : e.x;
    const float high = shift ? shifted(e.y, j.shift, e.x, e.y) : e.y;
    for (int i = threadIdx.x; i < n; i += THREADS) {
        float value = j.out[i];
        if (shift)
            value = shifted(value, j.shift, e.x, e.y);
        if (j.brightness >= 0)
            value = brightened(value, j.brightness, low, high);
        j.out[i] = value * a.scale;
    }
}

/* Where the batch begins in the epoch. The first thread of a block counts that the block has read it. */
__device__ int64_t begin(const pc__cuda_augment &a, unsigned &readers)
{
    int64_t first = a.at;
    if (first < 0)
        first = __ldcg(reinterpret_cast<const long long *>(a.place));
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        readers = atomicAdd(a.counter, 1u) + 1;
    }
    return first;
}

/* Whoever was the last to read it sets it behind the batch. */
__device__ void step_on(const pc__cuda_augment &a, int64_t first, unsigned readers)
{
    if (threadIdx.x != 0 || readers != gridDim.x)
        return;
    __threadfence();
    *a.counter = 0;
    *a.place = first + a.n;
}

__device__ void copy_label(const pc__cuda_augment &a, int64_t i, int64_t picture)
{
    if (a.label_bytes == 8)
        static_cast<int64_t *>(a.y)[i] = static_cast<const int64_t *>(a.labels)[picture];
    else if (a.label_bytes == 4)
        static_cast<int32_t *>(a.y)[i] = static_cast<const int32_t *>(a.labels)[picture];
    else
        static_cast<uint8_t *>(a.y)[i] = static_cast<const uint8_t *>(a.labels)[picture];
}

/* This block's part of output picture i: entry `entry` of table and index. */
__device__ void make_tile(const pc__cuda_augment &a, int64_t i, int64_t entry, int tile)
{
    const int64_t picture = a.index ? a.index[entry] : entry;
    const int pixels = a.height * a.width;
    const int64_t size = static_cast<int64_t>(pixels) * a.channels;
    if (picture < 0 || picture >= a.total) {
        if (tile == 0 && threadIdx.x == 0)
            pc::fault(a.fault, PC__FAULT_INDEX, entry, picture, a.total);
        return;
    }
    if (a.place && tile == 0 && threadIdx.x == 0)
        copy_label(a, i, picture);
    const double *t = a.table + entry * 8;
    job j = {a.pictures + picture * size,
             {t[0], t[1], t[2]},
             {t[3], t[4], t[5]},
             static_cast<float>(t[6]),
             static_cast<float>(t[7]),
             t[6] != 0 || t[7] >= 0,
             a.scale,
             a.out + i * size};
    if (!j.two_steps) {
        const int pixel = tile * THREADS + threadIdx.x;
        if (pixel < pixels)
            warp_pixel(a, j, pixel);
    } else if (tile == 0) {
        j.scale = 1;
        whole_picture(a, j);
    }
}

/* Blocks of picture i come in a row, `tiles` of them. */
__global__ void __launch_bounds__(THREADS) augment_kernel(const __grid_constant__ pc__cuda_augment a, int tiles)
{
    const int64_t i = blockIdx.x / tiles;
    unsigned readers = 0;
    const int64_t first = a.place ? begin(a, readers) : 0;
    if (!a.place || (first >= 0 && first <= a.length - a.n))
        make_tile(a, i, first + i, static_cast<int>(blockIdx.x - i * tiles));
    else if (blockIdx.x == 0 && threadIdx.x == 0)
        pc::fault(a.fault, PC__FAULT_INDEX, 0, first, a.length - a.n + 1);
    if (a.place)
        step_on(a, first, readers);
}

} // namespace

void pc__cuda_augment_run(const pc__cuda_augment *a, cudaStream_t queue)
{
    const int tiles = (a->height * a->width + THREADS - 1) / THREADS;
    augment_kernel<<<static_cast<unsigned>(a->n * tiles), THREADS, 0, queue>>>(*a, tiles);
}
