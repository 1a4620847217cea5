/* depthwise.h: what the files about convolutions of each channel alone share. */
#ifndef PC__CPU_DEPTHWISE_H
#define PC__CPU_DEPTHWISE_H

#include "cpu/level/convolve.h"
#include "cpu/level/real.h"

/* Weights [o][taps] as [tap][o]; `turned`: the last tap first. */
void PC__R(depthwise_pack)(const pc__grouped *s, const real *weight, bool turned, real *to);

/* The convolution that leads back, where the stride is 1: its padding may be below 0. */
pc__grouped PC__R(depthwise_turned)(const pc__grouped *s);

/* y of as many channels as x has. Padding may be below 0. */
void PC__R(depthwise_rows)(const pc__grouped *s, const real *x, const real *packed, const real *bias, real *y);

/* depthwise_half.c: y of x and weights [c][taps] of 16 bits, `turned` as above. */
pc_status PC__R(depthwise_halves)(const pc__grouped *s, const void *x, const void *weight, bool turned,
                                  const void *bias, void *y);

/* Pixels of c channels to those of c * times, each channel so often; and the sums of those. */
void PC__R(depthwise_repeat)(const real *from, int64_t pixels, int64_t c, int64_t times, real *to);
void PC__R(depthwise_add)(const real *from, int64_t pixels, int64_t c, int64_t times, real *to);

#endif
