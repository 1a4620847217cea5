/* augment_pixel.cuh: one pixel of what ops/augment_warp.c and augment_host.c do, operation by operation. */
#ifndef PC__CUDA_AUGMENT_PIXEL_CUH
#define PC__CUDA_AUGMENT_PIXEL_CUH

#include "cuda/data/augment.h"

namespace
{

/* Kernels are made for CHANNELS of 3, and 0: any number. */

/* One picture. */
struct job {
    double rows[3], columns[3];
    float shift, brightness; /* 0, negative: none */
    float scale;             /* of the first step, which is all where there is no second */
    bool normalises;         /* the first step does, as the last one of all */
    bool erases;             /* the first step does too */
    int erased[4];           /* rows [0] to below [1], columns [2] to below [3] */
    float *out;
};

__device__ __forceinline__ float blend(float tl, float tr, float bl, float br, float right, float down)
{
    const float top = tl + right * (tr - tl), bottom = bl + right * (br - bl);
    return top + down * (bottom - top);
}

__device__ __forceinline__ float normal(const pc__cuda_augment &a, bool normalises, int channel, float value)
{
    return normalises ? (value - a.mean[channel]) / a.std[channel] : value;
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

/* Within the margin the picture goes on with its last pixels. */
__device__ __forceinline__ double settle(double at, int length, double margin)
{
    const double end = length - 1;
    return at < 0 && at >= -margin ? 0 : at > end && at <= end + margin ? end : at;
}

/* The four neighbours of a pixel, as offsets of their first channels, and how far it is from the first. */
struct corners {
    int tl, tr, bl, br;
    float right, down;
};

/* Inside the picture: the last row and column are reached from the ones before them with a distance of 1. */
template <int CHANNELS> __device__ corners inside_corners(const pc__cuda_augment &a, double y, double x)
{
    const int channels = CHANNELS ? CHANNELS : a.channels;
    const double y_end = a.height - 1, x_end = a.width - 1;
    y = y < 0 ? 0 : y;
    y = y > y_end ? y_end : y;
    x = x < 0 ? 0 : x;
    x = x > x_end ? x_end : x;
    const int top = min(static_cast<int>(y), a.height - 2), left = min(static_cast<int>(x), a.width - 2);
    const int first = (top * a.width + left) * channels, below = first + a.width * channels;
    return {
        first, first + channels, below, below + channels, static_cast<float>(x - left), static_cast<float>(y - top)};
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

/* All channels of the output pixel at (row, column) of the picture whose bytes are at `bytes`, to `out`. */
template <int CHANNELS>
__device__ __forceinline__ void warp_pixel(const pc__cuda_augment &a, const job &j, const uint8_t *bytes, int row,
                                           int column, float *out)
{
    const int channels = CHANNELS ? CHANNELS : a.channels;
    double y = (j.rows[0] * row + j.rows[2]) + j.rows[1] * column;
    double x = (j.columns[0] * row + j.columns[2]) + j.columns[1] * column;
    const bool nearest = a.edge == PC__CUDA_NEAREST, tiny = a.height < 2 || a.width < 2;
    y = settle(y, a.height, a.margin);
    x = settle(x, a.width, a.margin);
    const bool outside = !nearest && (y < 0 || y > a.height - 1 || x < 0 || x > a.width - 1);
    if (outside && a.edge == PC__CUDA_CONSTANT) {
        for (int c = 0; c < channels; c++)
            out[c] = normal(a, j.normalises, c, a.cval * j.scale);
        return;
    }
    const corners k = !tiny && !outside ? inside_corners<CHANNELS>(a, y, x) : edge_corners(a, y, x);
#pragma unroll
    for (int c = 0; c < (CHANNELS ? CHANNELS : 4); c++)
        if (c < channels)
            out[c] = normal(
                a, j.normalises, c,
                j.scale * blend(bytes[k.tl + c], bytes[k.tr + c], bytes[k.bl + c], bytes[k.br + c], k.right, k.down));
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

} // namespace

#endif
