/* convolve.h: convolutions with taps apart or channels in groups, over plain memory, as compute.h has it for the others. */
#ifndef PC__CPU_CONVOLVE_H
#define PC__CPU_CONVOLVE_H

#include "cpu/level/compute.h"

/* x[n][h][w][c], weight[o][c / groups][kh][kw], y[n][oh][ow][o]; tap (i, j) of the window of y[r][q] is at
 * x[r * sh - ph + i * dh][q * sw - pw + j * dw], zero beyond x. */
typedef struct pc__grouped {
    int64_t n, h, w, c, o, kh, kw, oh, ow;
    int64_t sh, sw, ph, pw, dh, dw, groups;
    bool half, is_f16; /* float32's of groups and planes: numbers have 16 bits */
    /* Of planes_*: pictures in C order, weights [o][kh][kw][c / groups], what follows y. */
    bool x_planes, y_planes, weights_last;
    pc__activation activation;
} pc__grouped;

/* A group of one input each. */
static inline bool pc__is_depthwise(const pc__grouped *s)
{
    return s->groups > 1 && s->groups == s->c;
}

/* The places along one dimension from which on taps lie within `size`, and where they end. */
static inline void pc__taps_within(int64_t at, int64_t size, int64_t dilation, int64_t taps, int64_t *from,
                                   int64_t *end)
{
    *from = at < 0 ? (-at + dilation - 1) / dilation : 0;
    *end = at < size ? (size - 1 - at) / dilation + 1 : 0;
    *from = *from < taps ? *from : taps;
    *end = *end < taps ? *end : taps;
    *end = *end > *from ? *end : *from;
}

/* depthwise_turned.c: whether planes_f32 of channels alone, forward or back to the pictures, takes 16-bit numbers too: strips of pictures in
 * C order are turned, and a block of channels is done side by side, where that is faster than places side by side. */
#define pc__depthwise_turns PC__K(depthwise_turns)
bool pc__depthwise_turns(const pc__grouped *s, bool back);

/* depthwise_*: groups of one input each. grouped_*: any, by the kernels without groups, part by part. Each: y, and then dx
 * and dweight from dy; sizes may be 0. planes_*: any, with neighbouring places in a vector (planar.h), and pictures in either order. */
#define PC__CONVOLVE_PROTOTYPES(way, type)                                                                             \
    pc_status PC__K(way##_##type)(const pc__grouped *s, const void *x, const void *weight, const void *bias, void *y); \
    pc_status PC__K(way##_input_##type)(const pc__grouped *s, const void *weight, const void *dy, void *dx);           \
    pc_status PC__K(way##_weight_##type)(const pc__grouped *s, const void *x, const void *dy, void *dweight);
PC__CONVOLVE_PROTOTYPES(depthwise, f32)
PC__CONVOLVE_PROTOTYPES(depthwise, f64)
PC__CONVOLVE_PROTOTYPES(grouped, f32)
PC__CONVOLVE_PROTOTYPES(grouped, f64)
PC__CONVOLVE_PROTOTYPES(planes, f32)
PC__CONVOLVE_PROTOTYPES(planes, f64)

#endif
