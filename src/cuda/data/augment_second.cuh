/* augment_second.cuh: what a picture may need behind its geometry: channel shift, brightness, colour jitter, then scale,
 * mean and std, and the erased part. One block does a whole picture, in a few passes that stay in the cache: each thread
 * has the same pixels in all of them. Operation by operation as ops/augment_host.c and augment_colour.c. */
#ifndef PC__CUDA_AUGMENT_SECOND_CUH
#define PC__CUDA_AUGMENT_SECOND_CUH

#include "cuda/data/augment_pixel.cuh"
#include "ops/colour.h"
#include "ops/epoch_draw.h"

namespace
{

constexpr int THREADS = 512;

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

/* The sum of all threads' numbers, for all of them. */
__device__ long long sum_of(long long part)
{
    __shared__ long long warps[THREADS / 32];
    for (int step = 16; step > 0; step /= 2)
        part += __shfl_xor_sync(0xffffffffu, part, step);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = part;
    __syncthreads();
    long long sum = 0;
    for (int w = 0; w < THREADS / 32; w++)
        sum += warps[w];
    return sum;
}

/* Of one picture. Shifting keeps the order of values, so the extent behind it is the shifted extent. */
struct second {
    const pc__cuda_augment &a;
    const job &j;
    bool shift, brighten;
    float2 before, between;          /* extents: in front of the shift, in front of the brightness */
    int order;                       /* of the colours; negative: none change */
    float factor[PC__COLOURS], mean; /* mean: of the greys in front of contrast */

    __device__ void first_changes(float *v) const
    {
        for (int c = 0; c < a.channels; c++) {
            if (shift)
                v[c] = shifted(v[c], j.shift, before.x, before.y);
            if (brighten)
                v[c] = brightened(v[c], j.brightness, between.x, between.y);
        }
    }

    __device__ bool does(int colour) const
    {
        return factor[colour] != (colour == PC__HUE ? 0 : 1);
    }

    __device__ void blend_with(float *v, float other, float by) const
    {
        for (int c = 0; c < a.channels; c++)
            v[c] = pc__colour_blend(v[c], other, by);
    }

    /* Changes [from, end) of the order. */
    __device__ void colours(float *v, int from, int end) const
    {
        for (int k = from; k < end; k++) {
            const int colour = pc__colour_at(order, k);
            if (!does(colour))
                continue;
            if (colour == PC__BRIGHTNESS)
                blend_with(v, 0, factor[colour]);
            else if (colour == PC__CONTRAST)
                blend_with(v, mean, factor[colour]);
            else if (colour == PC__SATURATION && a.channels == 3)
                pc__saturate(v, factor[colour]);
            else if (colour == PC__HUE && a.channels == 3)
                pc__turn_hue(v, factor[colour]);
        }
    }

    /* The place of contrast in the order; 4: it does not change. */
    __device__ int contrast() const
    {
        for (int k = 0; k < PC__COLOURS && order >= 0; k++)
            if (pc__colour_at(order, k) == PC__CONTRAST && does(PC__CONTRAST))
                return k;
        return PC__COLOURS;
    }
};

__device__ bool is_erased(const job &j, int row, int column)
{
    return row >= j.erased[0] && row < j.erased[1] && column >= j.erased[2] && column < j.erased[3];
}

/* `row`: of the table. */
__device__ __noinline__ void second_step(const pc__cuda_augment &a, const job &j, const double *row)
{
    const int pixels = a.height * a.width, channels = a.channels;
    second s = {a, j, j.shift != 0, j.brightness >= 0};
    s.order = a.colours ? static_cast<int>(row[12]) : -1;
    for (int i = 0; i < PC__COLOURS; i++)
        s.factor[i] = a.colours ? static_cast<float>(row[8 + i] + (i < PC__HUE)) : 1;
    if (s.shift || s.brighten) {
        s.before = extent_of(j.out, pixels * channels);
        s.between = s.before;
    }
    if (s.shift)
        s.between = make_float2(shifted(s.before.x, j.shift, s.before.x, s.before.y),
                                shifted(s.before.y, j.shift, s.before.x, s.before.y));
    const int contrast = s.contrast();
    if (contrast < PC__COLOURS) {
        long long greys = 0;
        for (int p = threadIdx.x; p < pixels; p += THREADS) {
            float *v = j.out + static_cast<int64_t>(p) * channels;
            s.first_changes(v);
            s.colours(v, 0, contrast);
            greys += pc__grey_parts(channels == 3 ? pc__grey(v[0], v[1], v[2]) : v[0]);
        }
        s.mean = pc__grey_mean(sum_of(greys), pixels);
    }
    for (int p = threadIdx.x; p < pixels; p += THREADS) {
        float *v = j.out + static_cast<int64_t>(p) * channels;
        const bool gone = is_erased(j, p / a.width, p % a.width);
        if (contrast == PC__COLOURS)
            s.first_changes(v);
        if (s.order >= 0)
            s.colours(v, contrast == PC__COLOURS ? 0 : contrast, PC__COLOURS);
        for (int c = 0; c < channels; c++)
            v[c] = gone ? 0 : normal(a, a.normalises, c, v[c] * a.scale);
    }
}

} // namespace

#endif
