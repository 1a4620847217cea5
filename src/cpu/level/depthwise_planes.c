/* depthwise_planes.c: convolutions of each channel alone with a stride of 1, of pictures that lie in C order: neighbouring
 * columns in vectors. The gradient of the input is the same with the kernel turned around. */
#include "cpu/level/depthwise.h"

#include "base/parallel.h"

enum { VECTORS = 4 };

typedef struct planes {
    const pc__grouped *s;
    const real *x, *weight, *bias; /* weight[c][kh][kw]; bias may be NULL */
    real *y;
    bool turned; /* the last tap first */
} planes;

/* A row of a plane of y, and the taps of it that lie on rows of x. */
typedef struct line {
    const real *x; /* the plane */
    const real *weight;
    int64_t step; /* from one tap's weight to the next: 1, or -1 where they are turned around */
    int64_t top, from, end;
    real bias;
} line;

/* `vectors` of y from column q on, whose windows lie within rows of x. */
INLINE void vectors_run(const pc__grouped *s, const line *l, int64_t q, real *y, const int vectors)
{
    vec sum[VECTORS];
    UNROLL for (int v = 0; v < vectors; v++) sum[v] = SPLAT(l->bias);
    for (int64_t r = l->from; r < l->end; r++) {
        const real *x = l->x + (l->top + r * s->dh) * s->w + q - s->pw, *weight = l->weight + r * s->kw * l->step;
        for (int64_t k = 0; k < s->kw; k++) {
            const vec by = SPLAT(weight[k * l->step]);
            UNROLL for (int v = 0; v < vectors; v++) sum[v] += LOAD(x + k * s->dw + v * W) * by;
        }
    }
    UNROLL for (int v = 0; v < vectors; v++) AT(y + q + v * W) = sum[v];
}

static void columns_run(const pc__grouped *s, const line *l, int64_t q, int64_t to, real *y)
{
    for (; q < to; q++) {
        int64_t from, end;
        real sum = l->bias;
        pc__taps_within(q - s->pw, s->w, s->dw, s->kw, &from, &end);
        for (int64_t r = l->from; r < l->end; r++)
            for (int64_t k = from; k < end; k++)
                sum += l->x[(l->top + r * s->dh) * s->w + q - s->pw + k * s->dw] * l->weight[(r * s->kw + k) * l->step];
        y[q] = sum;
    }
}

/* The columns in [first, last) have all their taps within x; the last vector of them may lie over the one before. */
static void line_run(const pc__grouped *s, const line *l, real *y)
{
    const int64_t first = PC__MIN(PC__MAX(s->pw, 0), s->ow), reach = (s->kw - 1) * s->dw;
    const int64_t last = PC__MAX(PC__MIN(s->w - reach + s->pw, s->ow), first);
    int64_t q = first;
    columns_run(s, l, 0, first, y);
    if (last - first < W) {
        columns_run(s, l, first, s->ow, y);
        return;
    }
    for (; q + VECTORS * W <= last; q += VECTORS * W)
        vectors_run(s, l, q, y, VECTORS);
    for (; q + W <= last; q += W)
        vectors_run(s, l, q, y, 1);
    if (q < last)
        vectors_run(s, l, last - W, y, 1);
    columns_run(s, l, last, s->ow, y);
}

static void plane_run(void *context, int64_t task)
{
    const planes *p = context;
    const pc__grouped *s = p->s;
    const int64_t channel = task % s->c, taps = s->kh * s->kw;
    line l = {.x = p->x + task * s->h * s->w,
              .weight = p->weight + channel * taps + (p->turned ? taps - 1 : 0),
              .step = p->turned ? -1 : 1,
              .bias = p->bias ? p->bias[channel] : 0};
    for (int64_t row = 0; row < s->oh; row++) {
        l.top = row - s->ph;
        pc__taps_within(l.top, s->h, s->dh, s->kh, &l.from, &l.end);
        line_run(s, &l, p->y + (task * s->oh + row) * s->ow);
    }
}

static void run(const planes *p)
{
    const pc__grouped *s = p->s;
    pc__parallel(pc__threads(2 * s->n * s->c * s->oh * s->ow * s->kh * s->kw), s->n * s->c, plane_run, (void *)p);
}

pc_status PC__R(planes)(const pc__grouped *s, const void *x, const void *weight, const void *bias, void *y)
{
    run(&(planes){.s = s, .x = x, .weight = weight, .bias = bias, .y = y});
    return PC_OK;
}

pc_status PC__R(planes_input)(const pc__grouped *s, const void *weight, const void *dy, void *dx)
{
    const pc__grouped t = PC__R(depthwise_turned)(s);
    run(&(planes){.s = &t, .x = dy, .weight = weight, .y = dx, .turned = true});
    return PC_OK;
}

/* --- of the weights --- */

/* The sum of x[i] * dy[i]. */
static real dot(const real *x, const real *dy, int64_t n)
{
    vec sum = {0};
    real all = 0;
    int64_t i = 0;
    for (; i + W <= n; i += W)
        sum += LOAD(x + i) * LOAD(dy + i);
    for (; i < n; i++)
        all += x[i] * dy[i];
    for (int lane = 0; lane < W; lane++)
        all += sum[lane];
    return all;
}

/* One tap over a plane. */
static real tap_of(const pc__grouped *s, const real *x, const real *dy, int64_t r, int64_t k)
{
    const int64_t down = r * s->dh - s->ph, right = k * s->dw - s->pw;
    const int64_t from = PC__MAX(-right, 0), end = PC__MIN(s->w - right, s->ow);
    real sum = 0;
    for (int64_t row = PC__MAX(-down, 0); row < PC__MIN(s->h - down, s->oh) && from < end; row++)
        sum += dot(x + (row + down) * s->w + right + from, dy + row * s->ow + from, end - from);
    return sum;
}

typedef struct weights {
    const pc__grouped *s;
    const real *x, *dy;
    real *to;
} weights;

static void channel_run(void *context, int64_t channel)
{
    const weights *a = context;
    const pc__grouped *s = a->s;
    real *to = a->to + channel * s->kh * s->kw;
    memset(to, 0, (size_t)(s->kh * s->kw) * sizeof *to);
    for (int64_t n = 0; n < s->n; n++) {
        const int64_t plane = n * s->c + channel;
        for (int64_t k = 0; k < s->kh * s->kw; k++)
            to[k] += tap_of(s, a->x + plane * s->h * s->w, a->dy + plane * s->oh * s->ow, k / s->kw, k % s->kw);
    }
}

pc_status PC__R(planes_weight)(const pc__grouped *s, const void *x, const void *dy, void *dweight)
{
    weights a = {s, x, dy, dweight};
    pc__parallel(pc__threads(2 * s->n * s->c * s->oh * s->ow * s->kh * s->kw), s->c, channel_run, &a);
    return PC_OK;
}
