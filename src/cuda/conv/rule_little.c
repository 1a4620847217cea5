/* rule_little.c: which products of convolutions kernels for few channels and little work do, from their shapes alone. */
#include "cuda/conv/size.h"

#include <math.h>

/* Matrix units work on eight channels by eight at least, and blocks of cuDNN's on several times that: in front of them
 * the direct kernels win as long as little of their own work is left. */
bool pc__conv_is_few(const pc__conv_shape *s)
{
    enum { PLACES = 65536 }; /* fewer leave multiprocessors idle */
    const int64_t products = (int64_t)s->c * s->o * s->kh * s->kw;
    const bool eights = together(s) == 8 && s->c % 8 == 0 && s->o % 8 == 0;
    if (s->dtype == PC_F64 || eights || s->c > 8 || products > 1000)
        return false;
    return s->direction == PC__CONV_WEIGHTS ? s->o <= 12 && places_of(s) > 500
                                            : s->o <= 8 && s->c * s->o <= 40 && s->n * s->oh * s->ow >= PLACES;
}

/* Ours reads the gradient once, and so for all taps that it has registers for. */
bool pc__conv_is_single(const pc__conv_shape *s)
{
    enum { PLACES = 16384, TAPS = 49 };
    return s->direction == PC__CONV_INPUT && s->dtype != PC_F64 && s->c == 1 && s->o > 8 && taps_of(s) > 1 &&
           taps_of(s) <= TAPS && places_of(s) >= PLACES;
}

/* A sum is walked by a warp at most. */
bool pc__conv_is_least(const pc__conv_shape *s, bool asked)
{
    enum { LEAST = 1 << 19, LONG = 2048 };
    const int times = asked ? 16 : 1;
    const double terms = s->direction == PC__CONV_FORWARD ? (double)s->c * taps_of(s)
                         : s->direction == PC__CONV_INPUT ? (double)s->o * taps_of(s)
                                                          : places_of(s);
    return terms <= times * LONG && places_of(s) * s->o * s->c * taps_of(s) <= times * LEAST;
}

/* By the products that its tiles make, whole or not; with a stride the input's gradient tries taps in vain. The limits
 * are where, of 300 drawn layers, it was the fastest more often than not: with matrix units other ways are that sooner, and in float32 more rows occupy the chip whole. */
bool pc__conv_is_little(const pc__conv_shape *s)
{
    enum { FLOATS, TF32, HALVES };
    static const double most[][2] = {[FLOATS] = {3e7, 3e7}, [TF32] = {4e7, 3e7}, [HALVES] = {3e7, 1e7}};
    const bool input = s->direction == PC__CONV_INPUT;
    const int kind = together(s) == 8 ? HALVES : together(s) == 4 ? TF32 : FLOATS;
    const double rows = input ? (double)s->n * s->h * s->w * s->sh * s->sw : places_of(s),
                 columns = input ? s->c : s->o;
    if (s->dtype == PC_F64 || s->direction == PC__CONV_WEIGHTS || (taps_of(s) == 1 && kind != FLOATS) ||
        (kind == FLOATS && !input && pc__conv_rule(s, false) >= 0) ||
        (kind == TF32 && !input && s->c == 1 && taps_of(s) <= 9))
        return false;
    const double products = (rows < 32 ? 32 : rows) * (columns < 32 ? 32 : columns) * depth_of(s);
    if (kind == FLOATS && !input && depth_of(s) < 64 && rows * ceil(columns / 32) > 20000) /* nothing is cut then */
        return false;
    if (kind != HALVES && !input && taps_of(s) >= 49 && rows <= 256) /* for which cuDNN has but slow kernels */
        return products <= 8e8;
    if (kind == TF32 && !input && s->c % 4 == 0 && taps_of(s) == 9)
        return products <= 2.5e7;
    return products <= (kind == FLOATS && rows <= 8192 ? 1.5e8 : most[kind][input]);
}

bool pc__conv_is_shallow(const pc__conv_shape *s)
{
    enum { PLACES = 512 };
    return together(s) == 8 && s->direction == PC__CONV_FORWARD && s->c < 8 && s->oh * s->ow >= PLACES;
}

bool pc__conv_is_deep(const pc__conv_shape *s)
{
    return depth_of(s) >= 144;
}
