/* augment_host.c: one picture of the op augment on the host: geometry, channel shift, brightness, colour jitter,
 * scale, mean and std, erased parts. */
#include "ops/augment.h"

#include "base/simd.h"

typedef struct extent {
    float low, high;
} extent;

static extent extent_of(const float *x, size_t n)
{
    extent e = {x[0], x[0]};
    for (size_t i = 1; i < n; i++) {
        e.low = x[i] < e.low ? x[i] : e.low;
        e.high = x[i] > e.high ? x[i] : e.high;
    }
    return e;
}

static void shift_channels(float *x, size_t n, float shift)
{
    const extent e = extent_of(x, n);
    for (size_t i = 0; i < n; i++) {
        const float moved = x[i] + shift;
        x[i] = moved < e.low ? e.low : moved > e.high ? e.high : moved;
    }
}

/* Keras goes through PIL: bytes in, bytes out, both cut off at the point. Values outside 0..255 (a cval can bring
 * them) are squeezed into it before and stretched back after. */
static void change_brightness(float *x, size_t n, float factor)
{
    const extent e = extent_of(x, n);
    const bool outside = e.low < 0 || e.high > 255;
    const float range = e.high - e.low;
    for (size_t i = 0; i < n; i++) {
        float value = x[i];
        if (outside)
            value = range != 0 ? (value - e.low) / range * 255 : 0;
        const float bright = factor * (float)(int)value;
        value = bright >= 255 ? 255 : (float)(int)bright;
        x[i] = outside ? value / 255 * range + e.low : value;
    }
}

/* Coordinate i comes from i, or from the other end: exactly. */
static bool keeps(double of_itself, double of_other, double from, int length)
{
    return of_other == 0 && ((of_itself == 1 && from == 0) || (of_itself == -1 && from == length - 1));
}

static void fetch(const pc__warp *warp, float *out)
{
    if (keeps(warp->rows[0], warp->rows[1], warp->rows[2], warp->height) &&
        keeps(warp->columns[1], warp->columns[0], warp->columns[2], warp->width))
        pc__warp_copy(warp, warp->columns[1] < 0, warp->rows[0] < 0, out);
    else
        pc__warp_run(warp, out);
}

PC__SIMD static void normalise_rgb(const pc__augment_attributes *a, float *out, size_t pixels)
{
    const float mean[3] = {a->mean[0], a->mean[1], a->mean[2]}, std[3] = {a->std[0], a->std[1], a->std[2]};
    for (size_t i = 0; i < pixels; i++)
        for (int c = 0; c < 3; c++)
            out[3 * i + c] = (out[3 * i + c] - mean[c]) / std[c];
}

static void normalise(const pc__augment_attributes *a, float *out, size_t pixels, int channels)
{
    if (channels == 3) {
        normalise_rgb(a, out, pixels);
        return;
    }
    for (size_t i = 0; i < pixels; i++)
        for (int c = 0; c < channels; c++, out++)
            *out = (*out - a->mean[c]) / a->std[c];
}

void pc__augment_one(const pc__augment_attributes *attributes, const pc__augment_row *row, const uint8_t *pixels,
                     int height, int width, int channels, float *out)
{
    const bool jitters = attributes->colours && row->order >= 0;
    const bool two_steps = row->channel_shift != 0 || row->brightness >= 0 || jitters;
    pc__warp warp = {.pixels = pixels,
                     .height = height,
                     .width = width,
                     .channels = channels,
                     .edge = attributes->edge,
                     .cval = attributes->cval,
                     .margin = attributes->crops ? 0.5 : 0,
                     .scale = two_steps ? 1 : attributes->scale};
    memcpy(warp.rows, row->rows, sizeof warp.rows);
    memcpy(warp.columns, row->columns, sizeof warp.columns);
    fetch(&warp, out);
    const size_t n = (size_t)height * (size_t)width * (size_t)channels;
    if (row->channel_shift != 0)
        shift_channels(out, n, (float)row->channel_shift);
    if (row->brightness >= 0)
        change_brightness(out, n, (float)row->brightness);
    if (jitters)
        pc__augment_jitter(row, out, (size_t)height * (size_t)width, channels);
    for (size_t i = 0; two_steps && i < n; i++)
        out[i] *= attributes->scale;
    if (attributes->normalises)
        normalise(attributes, out, (size_t)height * (size_t)width, channels);
    if (attributes->colours)
        pc__augment_erase(row, width, channels, out);
}
