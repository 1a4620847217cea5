/* resample.h: pictures of another size: along each axis an output place is made of neighbouring input places, each with a
 * weight; the gradient the other way round. Plain C that kernels include too. */
#ifndef PC__OP_RESAMPLE_H
#define PC__OP_RESAMPLE_H

#include "base/philox.h"

#include <math.h>

enum pc__resample_kind { PC__NEAREST, PC__BILINEAR, PC__BILINEAR_CORNERS, PC__AREA };

typedef struct pc__axis {
    int64_t in, out;
    double step; /* input places for one of the output */
    int64_t kind;
} pc__axis;

typedef struct pc__resample_attributes {
    pc__axis axis[2]; /* rows, columns */
} pc__resample_attributes;

/* The input places [first, first + count): the first has weight[0], the others weight[1] each. */
typedef struct pc__taps {
    int64_t first, count;
    double weight[2];
} pc__taps;

/* As PyTorch: nearest counts in float32, but for sizes that are equal or doubled; what lies before the first place or behind the last one is that place. As many places
 * stay as they are: nothing is taken of neighbours, not even 0 times NaN. */
PC__BOTH pc__taps pc__taps_of(const pc__axis *a, int64_t o)
{
    pc__taps t = {0, 1, {1, 0}};
    double at = (double)o * a->step, part;
    if (a->kind == PC__AREA) {
        t.first = o * a->in / a->out;
        t.count = ((o + 1) * a->in + a->out - 1) / a->out - t.first;
        t.weight[0] = t.weight[1] = 1 / (double)t.count;
        return t;
    }
    if (a->kind == PC__NEAREST)
        at = a->step == 1 || a->step == 0.5 ? floor(at) : (double)floorf((float)o * (float)a->step);
    else if (a->kind == PC__BILINEAR)
        at = ((double)o + 0.5) * a->step - 0.5;
    at = at > 0 ? at : 0;
    t.first = at < (double)(a->in - 1) ? (int64_t)at : a->in - 1;
    part = at - (double)t.first;
    if (a->kind == PC__NEAREST || t.first == a->in - 1 || a->in == a->out)
        return t;
    t.count = 2;
    t.weight[0] = 1 - part;
    t.weight[1] = part;
    return t;
}

PC__BOTH double pc__weight_in(const pc__taps *t, int64_t i)
{
    const int64_t k = i - t->first;
    return k < 0 || k >= t->count ? 0 : t->weight[k > 0];
}

/* The output places [first, end) that input place i is part of; some at the ends may have no weight. */
typedef struct pc__outputs {
    int64_t first, end;
} pc__outputs;

/* As far as rounding may take it, */
PC__BOTH pc__outputs pc__about(const pc__axis *a, int64_t i)
{
    const double half = a->kind == PC__BILINEAR ? 0.5 : 0, reach = a->kind == PC__NEAREST ? 0 : 1;
    const double slack = (a->kind == PC__NEAREST ? 1 : 1e-6) + 1e-6 * (double)a->out;
    pc__outputs s = {0, a->out};
    if (a->kind == PC__AREA) {
        s.first = i * a->out / a->in;
        s.end = ((i + 1) * a->out + a->in - 1) / a->in;
    } else if (a->step > 0) {
        const double low = ((double)i - reach + half) / a->step - half - slack;
        const double high = ((double)i + 1 + half) / a->step - half + slack;
        if (i > 0 && low > 0)
            s.first = low < (double)a->out ? (int64_t)low : a->out;
        if (i < a->in - 1 && high + 1 < (double)a->out)
            s.end = (int64_t)high + 1;
    }
    return s;
}

/* and without those that have nothing of it. */
PC__BOTH pc__outputs pc__outputs_of(const pc__axis *a, int64_t i)
{
    pc__outputs s = pc__about(a, i);
    for (; s.first < s.end; s.first++) {
        const pc__taps t = pc__taps_of(a, s.first);
        if (t.first + t.count > i)
            break;
    }
    for (; s.first < s.end; s.end--) {
        const pc__taps t = pc__taps_of(a, s.end - 1);
        if (t.first <= i)
            break;
    }
    return s;
}

#endif
