/* augment.h: the geometry of an augmented picture, between what is drawn (augment.c) and the loops (warp.c). */
#ifndef PC__AUGMENT_H
#define PC__AUGMENT_H

#include "base/base.h"

#include <paracord/augment.h>

/* Where output pixel (row, column) comes from, flips included:
 *     input row    = rows[0] * row + rows[1] * column + rows[2]
 *     input column = columns[0] * row + columns[1] * column + columns[2]   */
typedef struct pc__warp {
    const uint8_t *pixels;
    int height, width, channels;
    double rows[3], columns[3];
    pc_fill_mode fill;
    float cval, scale; /* scale multiplies every result */
} pc__warp;

/* Fill `out` (height x width x channels) by bilinear interpolation. */
void pc__warp_run(const pc__warp *warp, float *out);

/* The same where every output pixel is an input pixel: only flips. */
void pc__warp_copy(const pc__warp *warp, bool flip_horizontal, bool flip_vertical, float *out);

#endif
