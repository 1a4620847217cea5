/* colour.h: changes of a pixel's colour as torchvision's functional has them (adjust_brightness, adjust_contrast,
 * adjust_saturation, adjust_hue of float pictures), of values from 0 to 255 rather than to 1. For hosts and kernels, and to
 * the same bits, as epoch_draw.h says. */
#ifndef PC__COLOUR_H
#define PC__COLOUR_H

#include "base/philox.h"

#include <math.h>

enum { PC__BRIGHTNESS, PC__CONTRAST, PC__SATURATION, PC__HUE, PC__COLOURS };

/* Greys are added up in whole parts of this, so that no order of the sum shows. */
#define PC__GREY_PARTS 65536

/* Which of the changes comes at place k of an order. */
PC__BOTH int pc__colour_at(int order, int k)
{
    return order >> 2 * k & 3;
}

PC__BOTH float pc__colour_cut(float value)
{
    return value < 0 ? 0 : value > 255 ? 255 : value;
}

PC__BOTH float pc__grey(float r, float g, float b)
{
    return (0.2989f * r + 0.587f * g) + 0.114f * b;
}

PC__BOTH int64_t pc__grey_parts(float grey)
{
    return (int64_t)(grey * PC__GREY_PARTS);
}

PC__BOTH float pc__grey_mean(int64_t parts, int64_t pixels)
{
    return (float)((double)parts / PC__GREY_PARTS / (double)pixels);
}

/* factor * value + (1 - factor) * other: of brightness with 0, of contrast with the picture's mean grey, of saturation
 * with the pixel's grey. */
PC__BOTH float pc__colour_blend(float value, float other, float factor)
{
    return pc__colour_cut(factor * value + (1 - factor) * other);
}

/* Of a picture of one channel the value itself is its grey, which saturation and hue leave alone. */
PC__BOTH void pc__saturate(float rgb[3], float factor)
{
    const float grey = pc__grey(rgb[0], rgb[1], rgb[2]);
    for (int c = 0; c < 3; c++)
        rgb[c] = pc__colour_blend(rgb[c], grey, factor);
}

/* By way of HSV, whose hue turns; `turns` of 1 are once round. */
PC__BOTH void pc__turn_hue(float rgb[3], float turns)
{
    const float r = rgb[0], g = rgb[1], b = rgb[2];
    const float most = r > g ? (r > b ? r : b) : (g > b ? g : b), least = r < g ? (r < b ? r : b) : (g < b ? g : b);
    const float range = most - least, by = range > 0 ? range : 1;
    const float rc = (most - r) / by, gc = (most - g) / by, bc = (most - b) / by;
    float hue = most == r ? bc - gc : most == g ? 2 + rc - bc : 4 + gc - rc;
    hue = hue / 6 + turns;
    hue = (hue - floorf(hue)) * 6;
    const float saturation = most > 0 ? range / most : 0;
    const int sector = (int)hue;
    const float part = hue - (float)sector;
    const float p = pc__colour_cut(most * (1 - saturation)), q = pc__colour_cut(most * (1 - saturation * part));
    const float t = pc__colour_cut(most * (1 - saturation * (1 - part)));
    const int s = sector % 6;
    rgb[0] = s == 0 || s == 5 ? most : s == 1 ? q : s == 4 ? t : p;
    rgb[1] = s == 1 || s == 2 ? most : s == 3 ? q : s == 0 ? t : p;
    rgb[2] = s == 3 || s == 4 ? most : s == 5 ? q : s == 2 ? t : p;
}

#endif
