/* depthwise_backward.c: the gradients of convolutions of each channel alone. */
#include "cpu/level/depthwise.h"

#include "base/parallel.h"

/* --- of the input --- */

pc__grouped PC__R(depthwise_turned)(const pc__grouped *s)
{
    pc__grouped t = *s;
    t.h = s->oh, t.w = s->ow, t.oh = s->h, t.ow = s->w;
    t.ph = s->dh * (s->kh - 1) - s->ph, t.pw = s->dw * (s->kw - 1) - s->pw;
    return t;
}

typedef struct back {
    const pc__grouped *s;
    const real *dy, *weight; /* weight[tap][c] */
    real *dx;
} back;

/* Behind tap k of the windows of a row of dy: the columns of dx. */
static void add_tap(const pc__grouped *s, const real *dy, const real *weight, int64_t k, real *dx)
{
    const int64_t left = k * s->dw - s->pw;
    const int64_t from = left < 0 ? (-left + s->sw - 1) / s->sw : 0;
    const int64_t end = left < s->w ? PC__MIN((s->w - 1 - left) / s->sw + 1, s->ow) : 0;
    for (int64_t q = from; q < end; q++) {
        const real *restrict g = dy + q * s->c;
        real *restrict to = dx + (q * s->sw + left) * s->c;
        for (int64_t c = 0; c < s->c; c++)
            to[c] += g[c] * weight[c];
    }
}

/* A row of dx, from all rows of dy that have a tap on it. */
static void row_run(void *context, int64_t task)
{
    const back *b = context;
    const pc__grouped *s = b->s;
    const real *dy = b->dy + task / s->h * s->oh * s->ow * s->c;
    real *dx = b->dx + task * s->w * s->c;
    memset(dx, 0, (size_t)(s->w * s->c) * sizeof *dx);
    for (int64_t r = 0; r < s->kh; r++) {
        const int64_t at = task % s->h + s->ph - r * s->dh;
        if (at < 0 || at % s->sh || at / s->sh >= s->oh)
            continue;
        for (int64_t k = 0; k < s->kw; k++)
            add_tap(s, dy + at / s->sh * s->ow * s->c, b->weight + (r * s->kw + k) * s->c, k, dx);
    }
}

pc_status PC__R(depthwise_input)(const pc__grouped *s, const void *weight, const void *dy, void *dx)
{
    pc__grouped whole = *s;
    const bool dense = s->sh == 1 && s->sw == 1, repeats = s->o != s->c;
    const int64_t packed = round_up(s->o * s->kh * s->kw, W), pixels = s->n * s->h * s->w;
#if DEPTHWISE_HALVES
    if (s->half) {
        const pc__grouped t = PC__R(depthwise_turned)(s);
        return PC__R(depthwise_halves)(&t, dy, weight, true, NULL, dx);
    }
#endif
    whole.c = s->o;
    real *slab = pc__alloc_aligned((size_t)(packed + (repeats ? pixels * s->o : 0)) * sizeof(real) + 1, 64);
    if (!slab)
        return PC_ERR_MEMORY;
    real *to = repeats ? slab + packed : dx;
    PC__R(depthwise_pack)(s, weight, dense, slab);
    if (dense) {
        const pc__grouped t = PC__R(depthwise_turned)(&whole);
        PC__R(depthwise_rows)(&t, dy, slab, NULL, to);
    } else {
        pc__parallel(pc__threads(6 * s->n * s->oh * s->ow * s->o * s->kh * s->kw), s->n * s->h, row_run,
                     &(back){&whole, dy, slab, to});
    }
    if (repeats)
        PC__R(depthwise_add)(to, pixels, s->c, s->o / s->c, dx);
    pc__free(slab);
    return PC_OK;
}

/* --- of the weights --- */

enum {
    PARTS = 64,    /* at most, of all rows of y; each has sums of its own */
    WORK = 100000, /* products that make a part */
    VECTORS = 4,
};

typedef struct sums {
    const pc__grouped *s;
    const real *x, *dy;
    real *sum;    /* [part][tap][c] */
    int64_t rows; /* of a part */
} sums;

/* sum[v] += x[i][v] * dy[i][v] over `count` columns. */
INLINE void dots(const real *x, int64_t x_step, const real *dy, int64_t step, int64_t count, real *sum,
                 const int vectors)
{
    vec all[VECTORS];
    UNROLL for (int v = 0; v < vectors; v++) all[v] = LOAD(sum + v * W);
    for (int64_t i = 0; i < count; i++, x += x_step, dy += step)
        UNROLL for (int v = 0; v < vectors; v++) all[v] += LOAD(x + v * W) * LOAD(dy + v * W);
    UNROLL for (int v = 0; v < vectors; v++) AT(sum + v * W) = all[v];
}

static void few_dots(const real *x, int64_t x_step, const real *dy, int64_t step, int64_t count, real *sum, int64_t n)
{
    for (int64_t i = 0; i < count; i++, x += x_step, dy += step)
        for (int64_t c = 0; c < n; c++)
            sum[c] += x[c] * dy[c];
}

/* One tap over a row of y: x at the tap of the first column, all channels from c on that a block has. */
static void tap_run(const pc__grouped *s, const real *x, const real *dy, int64_t k, int64_t c, real *sum)
{
    const int64_t left = k * s->dw - s->pw, from = left < 0 ? (-left + s->sw - 1) / s->sw : 0;
    const int64_t end = left < s->w ? PC__MIN((s->w - 1 - left) / s->sw + 1, s->ow) : 0, step = s->sw * s->c;
    const int64_t count = end - from;
    if (count <= 0)
        return;
    x += (from * s->sw + left) * s->c + c, dy += from * s->c + c, sum += c;
    if (c + VECTORS * W <= s->c) {
        dots(x, step, dy, s->c, count, sum, VECTORS);
        return;
    }
    for (; c + W <= s->c; c += W, x += W, dy += W, sum += W)
        dots(x, step, dy, s->c, count, sum, 1);
    few_dots(x, step, dy, s->c, count, sum, s->c - c);
}

static void part_run(void *context, int64_t part)
{
    const sums *a = context;
    const pc__grouped *s = a->s;
    const int64_t taps = s->kh * s->kw, end = PC__MIN((part + 1) * a->rows, s->n * s->oh);
    real *sum = a->sum + part * taps * s->c;
    memset(sum, 0, (size_t)(taps * s->c) * sizeof *sum);
    for (int64_t row = part * a->rows; row < end; row++) {
        const real *image = a->x + row / s->oh * s->h * s->w * s->c, *dy = a->dy + row * s->ow * s->c;
        const int64_t top = row % s->oh * s->sh - s->ph;
        int64_t from_row, end_row;
        pc__taps_within(top, s->h, s->dh, s->kh, &from_row, &end_row);
        for (int64_t c = 0; c < s->c; c += VECTORS * W)
            for (int64_t r = from_row; r < end_row; r++)
                for (int64_t k = 0; k < s->kw; k++)
                    tap_run(s, image + (top + r * s->dh) * s->w * s->c, dy, k, c, sum + (r * s->kw + k) * s->c);
    }
}

pc_status PC__R(depthwise_weight)(const pc__grouped *s, const void *x, const void *dy, void *dweight)
{
    pc__grouped whole = *s;
    const bool repeats = s->o != s->c;
    const int64_t taps = s->kh * s->kw, lines = s->n * s->oh, pixels = s->n * s->h * s->w;
    const int64_t work = PC__MAX(s->ow * s->o * taps, 1);
    sums a = {.s = &whole, .x = x, .dy = dy, .rows = PC__MAX((WORK + work - 1) / work, (lines + PARTS - 1) / PARTS)};
    const int64_t parts = (lines + a.rows - 1) / a.rows, size = round_up(parts * taps * s->o, W);
    whole.c = s->o;
    real *slab = pc__alloc_aligned((size_t)(size + (repeats ? pixels * s->o : 0)) * sizeof(real) + 1, 64);
    if (!slab)
        return PC_ERR_MEMORY;
    a.sum = slab;
    if (repeats) {
        PC__R(depthwise_repeat)(x, pixels, s->c, s->o / s->c, slab + size);
        a.x = slab + size;
    }
    pc__parallel(pc__threads(2 * lines * work), parts, part_run, &a);
    real *to = dweight;
    for (int64_t o = 0; o < s->o; o++)
        for (int64_t k = 0; k < taps; k++) {
            real sum = 0;
            for (int64_t p = 0; p < parts; p++)
                sum += slab[(p * taps + k) * s->o + o];
            to[o * taps + k] = sum;
        }
    pc__free(slab);
    return PC_OK;
}
