/* augment_colour.c: colour jitter of a picture on the host, one change after the other, and erased parts. What needs the
 * whole picture is the mean grey that contrast blends with. */
#include "ops/augment.h"
#include "ops/colour.h"

#include "base/simd.h"

typedef struct jitter {
    float *pixels;
    size_t count; /* of pixels */
    int channels;
    float factor[PC__COLOURS];
} jitter;

PC__SIMD static void blend_all(float *x, size_t n, float other, float factor)
{
    for (size_t i = 0; i < n; i++)
        x[i] = pc__colour_blend(x[i], other, factor);
}

PC__SIMD static void saturate(float *x, size_t pixels, float factor)
{
    for (size_t i = 0; i < pixels; i++)
        pc__saturate(x + 3 * i, factor);
}

PC__SIMD static void turn_hue(float *x, size_t pixels, float turns)
{
    for (size_t i = 0; i < pixels; i++)
        pc__turn_hue(x + 3 * i, turns);
}

PC__SIMD static int64_t sum_greys(const float *x, size_t pixels)
{
    int64_t sum = 0;
    for (size_t i = 0; i < pixels; i++)
        sum += pc__grey_parts(pc__grey(x[3 * i], x[3 * i + 1], x[3 * i + 2]));
    return sum;
}

static float mean_grey(const jitter *j)
{
    int64_t sum = 0;
    if (j->channels == 3)
        sum = sum_greys(j->pixels, j->count);
    for (size_t i = 0; j->channels != 3 && i < j->count; i++)
        sum += pc__grey_parts(j->pixels[i * (size_t)j->channels]);
    return pc__grey_mean(sum, (int64_t)j->count);
}

static void change(const jitter *j, int colour)
{
    const float factor = j->factor[colour];
    const size_t values = j->count * (size_t)j->channels;
    if (factor == (colour == PC__HUE ? 0 : 1))
        return;
    if (colour == PC__BRIGHTNESS)
        blend_all(j->pixels, values, 0, factor);
    else if (colour == PC__CONTRAST)
        blend_all(j->pixels, values, mean_grey(j), factor);
    else if (colour == PC__SATURATION && j->channels == 3)
        saturate(j->pixels, j->count, factor);
    else if (colour == PC__HUE && j->channels == 3)
        turn_hue(j->pixels, j->count, factor);
}

void pc__augment_jitter(const pc__augment_row *row, float *out, size_t pixels, int channels)
{
    jitter j = {.pixels = out, .count = pixels, .channels = channels};
    for (int i = 0; i < PC__COLOURS; i++)
        j.factor[i] = (float)(row->jitter[i] + (i < PC__HUE));
    for (int k = 0; k < PC__COLOURS; k++)
        change(&j, pc__colour_at((int)row->order, k));
}

void pc__augment_erase(const pc__augment_row *row, int width, int channels, float *out)
{
    const size_t first = (size_t)row->erased[2], end = (size_t)row->erased[3];
    for (size_t y = (size_t)row->erased[0]; y < (size_t)row->erased[1]; y++)
        memset(out + (y * (size_t)width + first) * (size_t)channels, 0, (end - first) * (size_t)channels * sizeof *out);
}
