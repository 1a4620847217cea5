/* depthwise.c: convolutions with a filter or more for each channel alone, channels side by side in vectors: the result, and
 * with a stride of 1 the gradient of the input, which is the same with the kernel turned around. */
#include "cpu/level/depthwise.h"

#include "base/parallel.h"

enum {
    COLUMNS = 4, /* of y at once, which share the weights that are loaded */
    VECTORS = 2,
    WEIGHT_BYTES = 24576,
    SLIDE_MOST = PC__VECTOR_REGISTERS == 32 ? 7 : 5, /* taps of a row in registers */
    APART = 2048,              /* bytes between pixels, a power of 2, from which on they are not */
    FEW = 4,                   /* vectors of one column where fewer are left */
    ALONE = COLUMNS * VECTORS, /* vectors of one column, or columns of one vector: as many sums */
};

/* to[tap][o], `turned`: the last tap first. */
void PC__R(depthwise_pack)(const pc__grouped *s, const real *weight, bool turned, real *to)
{
    const int64_t taps = s->kh * s->kw;
    for (int64_t o = 0; o < s->o; o++)
        for (int64_t k = 0; k < taps; k++)
            to[(turned ? taps - 1 - k : k) * s->o + o] = weight[o * taps + k];
}

typedef struct depthwise {
    const pc__grouped *s;
    const real *x, *weight, *bias; /* weight[tap][c]; bias may be NULL */
    real *y;
    int64_t first, end; /* columns whose windows lie within x */
    int64_t lots;       /* columns that many apart are done together */
    bool slides;        /* by slide_run */
    int64_t channels;   /* that are, whose weights stay in the first-level cache */
} depthwise;

/* Channels [from, end), which end with a whole vector. */
typedef struct channels {
    int64_t from, end;
} channels;

/* The taps of a window that lie within x, and the first one of all. */
typedef struct window {
    int64_t top, left, from_row, end_row, from, end;
} window;

/* `many` columns of y, whose windows have these taps, and vectors of channels from c on. */
INLINE void columns_run(const depthwise *d, const window *in, const real *image, int64_t c, real *y, const int many,
                        const int vectors)
{
    const pc__grouped *s = d->s;
    vec sum[ALONE];
    UNROLL for (int i = 0; i < many * vectors; i++) sum[i] =
        d->bias ? (vec)LOAD(d->bias + c + i % vectors * W) : (vec){0};
    const int64_t all = s->c, apart = d->lots * all, next = s->sw * apart, tap = s->dw * all;
    for (int64_t r = in->from_row; r < in->end_row; r++) {
        const real *weight = d->weight + (r * s->kw + in->from) * all + c;
        const real *at = image + ((in->top + r * s->dh) * s->w + in->left + in->from * s->dw) * all + c;
        for (int64_t k = in->end - in->from; k > 0; k--, weight += all, at += tap) {
            vec by[ALONE];
            UNROLL for (int v = 0; v < vectors; v++) by[v] = LOAD(weight + v * W);
            UNROLL for (int i = 0; i < many * vectors; i++) sum[i] +=
                LOAD(at + i / vectors * next + i % vectors * W) * by[i % vectors];
        }
    }
    UNROLL for (int i = 0; i < many * vectors; i++) AT(y + i / vectors * apart + c + i % vectors * W) = sum[i];
}

/* ALONE columns of one vector, as far apart as their taps are: what they share of a row is loaded once. */
INLINE void slide_run(const depthwise *d, const window *in, const real *image, int64_t c, real *y, const int taps)
{
    const int64_t all = d->s->c, apart = d->lots * all;
    vec sum[ALONE];
    UNROLL for (int i = 0; i < ALONE; i++) sum[i] = d->bias ? (vec)LOAD(d->bias + c) : (vec){0};
    for (int64_t r = in->from_row; r < in->end_row; r++) {
        const real *weight = d->weight + r * taps * all + c;
        const real *at = image + ((in->top + r * d->s->dh) * d->s->w + in->left) * all + c;
        vec by[SLIDE_MOST];
        UNROLL for (int k = 0; k < taps; k++) by[k] = LOAD(weight + k * all);
        UNROLL for (int j = 0; j < ALONE + taps - 1; j++)
        {
            const vec x = LOAD(at + j * apart);
            UNROLL for (int k = 0; k < taps; k++) if (j >= k && j - k < ALONE) sum[j - k] += x * by[k];
        }
    }
    UNROLL for (int i = 0; i < ALONE; i++) AT(y + i * apart + c) = sum[i];
}

/* Pixels a large power of 2 apart compete for the same places in the cache, and three taps share too little where pixels between
 * them are left out. */
static bool slides(const pc__grouped *s)
{
    const int64_t pixel = s->dw * s->c * (int64_t)sizeof(real), apart = pixel & -pixel;
    return s->sw == 1 && ((s->kw == 3 && s->dw == 1) || s->kw == 5 || s->kw == SLIDE_MOST) && apart < APART;
}

/* The same of fewer channels than a vector has. */
static void few_run(const depthwise *d, const window *in, const real *image, real *y)
{
    const pc__grouped *s = d->s;
    real sum[W];
    for (int64_t c = 0; c < s->c; c++)
        sum[c] = d->bias ? d->bias[c] : 0;
    for (int64_t r = in->from_row; r < in->end_row; r++)
        for (int64_t k = in->from; k < in->end; k++) {
            const real *weight = d->weight + (r * s->kw + k) * s->c;
            const real *at = image + ((in->top + r * s->dh) * s->w + in->left + k * s->dw) * s->c;
            for (int64_t c = 0; c < s->c; c++)
                sum[c] += at[c] * weight[c];
        }
    memcpy(y, sum, (size_t)s->c * sizeof *sum);
}

INLINE void piece_run(const depthwise *d, const window *in, const real *image, channels some, real *y, const int many,
                      const int vectors)
{
    int64_t c = some.from;
    for (; vectors > 1 && c + vectors * W <= some.end; c += vectors * W)
        columns_run(d, in, image, c, y, many, vectors);
    for (; many == 1 && c + FEW * W <= some.end; c += FEW * W) /* one sum would wait for itself */
        columns_run(d, in, image, c, y, many, FEW);
    for (; c < some.end; c += W) /* the last ones once more, which changes nothing */
        columns_run(d, in, image, PC__MIN(c, some.end - W), y, many, 1);
}

/* ALONE columns, or as many as COLUMNS, or one. */
static void some_columns(const depthwise *d, const window *in, const real *image, channels some, real *y, int64_t many)
{
    const pc__grouped *s = d->s;
    if (s->c < W)
        few_run(d, in, image, y);
    else if (sizeof(real) == sizeof(float) && many == ALONE && d->slides)
        for (int64_t c = some.from; c < some.end; c += W) {
            const int64_t at = PC__MIN(c, some.end - W);
            if (s->kw == 3)
                slide_run(d, in, image, at, y, 3);
            else if (s->kw == 5)
                slide_run(d, in, image, at, y, 5);
            else
                slide_run(d, in, image, at, y, SLIDE_MOST);
        }
    else if (many == ALONE)
        piece_run(d, in, image, some, y, ALONE, 1);
    else if (many == COLUMNS)
        piece_run(d, in, image, some, y, COLUMNS, VECTORS);
    else
        piece_run(d, in, image, some, y, 1, ALONE);
}

/* How many of `left` columns are done at once; where not so many are left, some of the `whole` ones before once more. */
static int64_t columns_at_once(const depthwise *d, int64_t left, int64_t whole)
{
    const bool wide = d->s->c < VECTORS * W || d->slides;
    if (d->s->c < W)
        return 1;
    if (wide && whole >= ALONE && 2 * left > ALONE)
        return ALONE;
    return whole >= COLUMNS && 2 * left > COLUMNS ? COLUMNS : 1;
}

/* Of so many columns those of a lot. */
static inline int64_t in_lot(const depthwise *d, int64_t lot, int64_t columns)
{
    return d->lots == 1 ? columns : columns > lot ? (columns - lot + d->lots - 1) / d->lots : 0;
}

/* Every so-manyth column of a row from column `lot` on. */
static void lot_run(const depthwise *d, window *in, const real *image, channels some, real *y, int64_t lot)
{
    const pc__grouped *s = d->s;
    const int64_t count = in_lot(d, lot, s->ow), first = in_lot(d, lot, d->first), end = in_lot(d, lot, d->end);
    for (int64_t i = 0, many; i < count; i += many) {
        const bool inner = i >= first && i < end;
        many = inner ? columns_at_once(d, end - i, end - first) : 1;
        i = inner ? PC__MIN(i, end - many) : i;
        const int64_t q = lot + i * d->lots;
        in->left = q * s->sw - s->pw;
        pc__taps_within(in->left, s->w, s->dw, s->kw, &in->from, &in->end);
        some_columns(d, in, image, some, y + q * s->c, many);
    }
}

static void row_run(void *context, int64_t task)
{
    const depthwise *d = context;
    const pc__grouped *s = d->s;
    const real *image = d->x + task / s->oh * s->h * s->w * s->c;
    real *y = d->y + task * s->ow * s->c;
    window in = {.top = task % s->oh * s->sh - s->ph};
    pc__taps_within(in.top, s->h, s->dh, s->kh, &in.from_row, &in.end_row);
    for (int64_t c = 0; c < s->c; c += d->channels)
        for (int64_t lot = 0; lot < PC__MIN(d->lots, s->ow); lot++)
            lot_run(d, &in, image, (channels){PC__MIN(c, PC__MAX(s->c - W, 0)), PC__MIN(c + d->channels, s->c)}, y,
                    lot);
}

void PC__R(depthwise_rows)(const pc__grouped *s, const real *x, const real *packed, const real *bias, real *y)
{
    depthwise d = {.s = s, .x = x, .weight = packed, .bias = bias, .y = y};
    const int64_t fit = WEIGHT_BYTES / (s->kh * s->kw * (int64_t)sizeof(real)) / (ALONE * W) * ALONE * W;
    d.channels = PC__MAX(fit, ALONE * W);
    const int64_t room = s->w - 1 - (s->kw - 1) * s->dw + s->pw;
    d.first = s->pw <= 0 ? 0 : PC__MIN((s->pw + s->sw - 1) / s->sw, s->ow);
    d.end = room < 0 ? d.first : PC__MAX(PC__MIN(room / s->sw + 1, s->ow), d.first);
    d.slides = sizeof(real) == sizeof(float) && slides(s) && d.end - d.first >= ALONE * s->dw;
    d.lots = d.slides ? s->dw : 1;
    pc__parallel(pc__threads(2 * s->n * s->oh * s->ow * s->c * s->kh * s->kw), s->n * s->oh, row_run, &d);
}

/* --- several filters a channel: each has a copy of it --- */

typedef struct repeat {
    const real *from;
    real *to;
    int64_t pixels, c, times;
    bool sums;
} repeat;

enum { PIXELS = 64 /* of a task */ };

static void repeat_run(void *context, int64_t task)
{
    const repeat *r = context;
    const int64_t first = task * PIXELS * r->c, end = PC__MIN((task + 1) * PIXELS, r->pixels) * r->c;
    for (int64_t i = first; i < end; i++) {
        real sum = 0;
        for (int64_t k = 0; k < r->times; k++)
            if (r->sums)
                sum += r->from[i * r->times + k];
            else
                r->to[i * r->times + k] = r->from[i];
        if (r->sums)
            r->to[i] = sum;
    }
}

static void repeat_all(repeat r)
{
    pc__parallel(pc__threads(4 * r.pixels * r.c * r.times), (r.pixels + PIXELS - 1) / PIXELS, repeat_run, &r);
}

void PC__R(depthwise_repeat)(const real *from, int64_t pixels, int64_t c, int64_t times, real *to)
{
    repeat_all((repeat){from, to, pixels, c, times, false});
}

void PC__R(depthwise_add)(const real *from, int64_t pixels, int64_t c, int64_t times, real *to)
{
    repeat_all((repeat){from, to, pixels, c, times, true});
}

/* --- the calls --- */

pc_status PC__R(depthwise)(const pc__grouped *s, const void *x, const void *weight, const void *bias, void *y)
{
    pc__grouped whole = *s;
    const int64_t packed = round_up(s->o * s->kh * s->kw, W), pixels = s->n * s->h * s->w;
    const bool repeats = s->o != s->c;
#if DEPTHWISE_HALVES
    if (s->half)
        return PC__R(depthwise_halves)(s, x, weight, false, bias, y);
#endif
    whole.c = s->o;
    real *slab = pc__alloc_aligned((size_t)(packed + (repeats ? pixels * s->o : 0)) * sizeof(real) + 1, 64);
    if (!slab)
        return PC_ERR_MEMORY;
    PC__R(depthwise_pack)(s, weight, false, slab);
    if (repeats)
        PC__R(depthwise_repeat)(x, pixels, s->c, s->o / s->c, slab + packed);
    PC__R(depthwise_rows)(&whole, repeats ? slab + packed : x, slab, bias, y);
    pc__free(slab);
    return PC_OK;
}
