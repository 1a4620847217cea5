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

/* Whether there are kernels of 16-bit numbers: not for processors of before 2013. */
#if defined(PC__DOUBLE) || (defined(__x86_64__) && defined(PC__LEVEL_base))
#define DEPTHWISE_HALVES 0
#else
#define DEPTHWISE_HALVES 1
#endif

/* depthwise_half.c: y of x and weights [c][taps] of 16 bits, `turned` as above; c is at least PC__HALVES. The same in two steps:
 * weights and bias, which may be NULL, packed into so many floats, and y. */
pc_status PC__R(depthwise_halves)(const pc__grouped *s, const void *x, const void *weight, bool turned,
                                  const void *bias, void *y);
int64_t PC__R(depthwise_halves_packed)(const pc__grouped *s);
void PC__R(depthwise_halves_pack)(const pc__grouped *s, const void *weights, bool turned, const void *biases,
                                  float *to);
void PC__R(depthwise_halves_rows)(const pc__grouped *s, const void *x, const float *packed, void *y);

/* depthwise_turned.c: y of x in C order, where pc__depthwise_turns; `back`: weights turned around. */
pc_status PC__R(depthwise_turned_run)(const pc__grouped *s, const void *x, const void *weight, bool back,
                                      const void *bias, void *y);

/* Pixels of c channels to those of c * times, each channel so often; and the sums of those. */
void PC__R(depthwise_repeat)(const real *from, int64_t pixels, int64_t c, int64_t times, real *to);
void PC__R(depthwise_add)(const real *from, int64_t pixels, int64_t c, int64_t times, real *to);

#endif
