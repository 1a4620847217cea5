/* size.h: how much a convolution is to do, from its shape alone. Numbers are doubles where they may be beyond 64 bits. */
#ifndef PC__CUDA_CONV_SIZE_H
#define PC__CUDA_CONV_SIZE_H

#include "cuda/conv/choice.h"

#include <limits.h>
#include <paracord/tensor.h>

/* Sixteen bytes of channels; 1 where no matrix units multiply. */
static inline int together(const pc__conv_shape *s)
{
    return s->dtype == PC_F16 || s->dtype == PC_BF16 ? 8 : s->dtype == PC_F32 && s->tf32 ? 4 : 1;
}

static inline int rounded_up(int n, int to)
{
    return n > INT_MAX - to ? n : (n + to - 1) / to * to;
}

/* Numbers that make one of the result: sums of so many products are what matrix units are for. */
static inline double depth_of(const pc__conv_shape *s)
{
    return (double)(s->direction == PC__CONV_INPUT ? s->o : s->c) * s->kh * s->kw;
}

static inline double places_of(const pc__conv_shape *s)
{
    return (double)s->n * s->oh * s->ow;
}

static inline double work_of(const pc__conv_shape *s)
{
    return places_of(s) * s->o * s->c * s->kh * s->kw;
}

/* Of both pictures: below some number a kernel is all launch, and bringing operands into another format is dear. */
static inline double numbers_of(const pc__conv_shape *s)
{
    return (double)s->n * s->h * s->w * s->c + places_of(s) * s->o;
}

/* Of channels, which a shape without any need not say. */
static inline int groups_of(const pc__conv_shape *s)
{
    return s->groups > 1 ? s->groups : 1;
}

static inline double weights_of(const pc__conv_shape *s)
{
    return (double)s->c * s->o * s->kh * s->kw;
}

static inline int taps_of(const pc__conv_shape *s)
{
    return s->kh * s->kw;
}

/* A product of matrices. */
static inline bool has_windows_of_one(const pc__conv_shape *s)
{
    return taps_of(s) == 1 && s->sh * s->sw == 1;
}

#endif
