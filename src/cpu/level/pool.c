/* pool.c: maximum and average pooling over channels-last pictures, forward and backward. A task is a row of y going
 * forward and an image going backward, where windows may overlap. Loops go over the channels of a window; where these are
 * fewer than some vectors, over the channels of neighbouring windows, for one place in all of them after the other. */
#include "cpu/level/compute.h"
#include "cpu/level/each.h"
#include "cpu/level/real.h"
#include "base/parallel.h"

/* The part of a window that lies inside the picture, along one axis. */
typedef struct range {
    int64_t from, to;
} range;

static range inside(int64_t out, int64_t stride, int64_t kernel, int64_t padding, int64_t size)
{
    const int64_t first = out * stride - padding;
    return (range){PC__MAX(first, 0), PC__MIN(first + kernel, size)};
}

/* y[c] = the maximum of one window, place[c] = where it is. */
static void max_window(const pc__pool *s, const real *image, range h, range w, real *restrict y,
                       int32_t *restrict place)
{
    for (int64_t c = 0; c < s->c; c++)
        y[c] = -INFINITY;
    for (int64_t c = 0; place && c < s->c; c++)
        place[c] = (int32_t)(h.from * s->w + w.from);
    for (int64_t i = h.from; i < h.to; i++)
        for (int64_t j = w.from; j < w.to; j++) {
            const int32_t here = (int32_t)(i * s->w + j);
            const real *restrict x = image + here * s->c;
            if (!place) {
                for (int64_t c = 0; c < s->c; c++)
                    y[c] = ((x[c] > y[c]) | (x[c] != x[c])) ? x[c] : y[c];
                continue;
            }
            for (int64_t c = 0; c < s->c; c++) {
                const bool more = (x[c] > y[c]) | (x[c] != x[c]);
                y[c] = more ? x[c] : y[c];
                place[c] = more ? here : place[c];
            }
        }
}

static real window_scale(const pc__pool *s, range h, range w)
{
    const int64_t area = s->exclude_padding ? (h.to - h.from) * (w.to - w.from) : s->kh * s->kw;
    return 1 / (real)PC__MAX(area, 1);
}

static void average_window(const pc__pool *s, const real *image, range h, range w, real *restrict y)
{
    const real scale = window_scale(s, h, w);
    for (int64_t c = 0; c < s->c; c++)
        y[c] = 0;
    for (int64_t i = h.from; i < h.to; i++)
        for (int64_t j = w.from; j < w.to; j++) {
            const real *restrict x = image + (i * s->w + j) * s->c;
            for (int64_t c = 0; c < s->c; c++)
                y[c] += x[c];
        }
    for (int64_t c = 0; c < s->c; c++)
        y[c] *= scale;
}

enum {
    FEW = 4 * PC__VECTOR_BYTES / (int)sizeof(real), /* channels that are too few for a loop */
    TOGETHER = 256,                                 /* elements of neighbouring windows */
    FIXED_MOST = 16                                 /* channels that stay in registers */
};

/* Windows [first, first + count) of a row of y, none of which is cut at its sides. */
typedef struct windows {
    const pc__pool *s;
    const real *image;
    range rows;
    int64_t first, count;
} windows;

/* One place of all windows, side by side: in x itself where windows are neighbours, else copied to `room`. */
static const real *taken(const windows *w, int64_t row, int64_t column, real *room)
{
    const pc__pool *s = w->s;
    const real *from = w->image + (row * s->w + w->first * s->sw - s->pw + column) * s->c;
    const int64_t size = sizeof(real), step = s->c * size;
    const bool by_channels = s->sw > 1 && s->c < W;
    for (int64_t c = 0; by_channels && c < s->c; c++)
        pc__move((char *)(room + c), step, (const char *)(from + c), s->sw * step, w->count, sizeof(real));
    for (int64_t i = 0; s->sw > 1 && !by_channels && i < w->count; i++)
        for (int64_t c = 0; c < s->c; c++)
            room[i * s->c + c] = from[i * s->sw * s->c + c];
    return s->sw > 1 ? room : from;
}

static inline __attribute__((always_inline)) void add(real *restrict sum, const real *restrict x, const int c)
{
    for (int k = 0; k < c; k++)
        sum[k] += x[k];
}

/* Not unrolled: gcc makes vectors of a loop of comparisons, but branches of single ones. */
static inline __attribute__((always_inline)) void greatest(real *restrict most, const real *restrict x, const int c)
{
#pragma GCC unroll 1
    for (int k = 0; k < c; k++)
        most[k] = ((x[k] > most[k]) | (x[k] != x[k])) ? x[k] : most[k];
}

/* Channels whose number the compiler knows stay in registers for all places of a window. */
static inline __attribute__((always_inline)) void windows_of(const windows *w, real *restrict y, const int c,
                                                             const bool average)
{
    const pc__pool *s = w->s;
    const real scale = average ? window_scale(s, w->rows, (range){0, s->kw}) : 1;
    for (int64_t i = 0; i < w->count; i++) {
        const real *restrict x = w->image + (w->rows.from * s->w + (w->first + i) * s->sw - s->pw) * c;
        real got[FIXED_MOST];
        for (int k = 0; k < c; k++)
            got[k] = average ? 0 : -INFINITY;
        for (int64_t row = w->rows.from; row < w->rows.to; row++, x += s->w * c)
            for (int64_t column = 0; column < s->kw; column++)
                average ? add(got, x + column * c, c) : greatest(got, x + column * c, c);
        for (int k = 0; k < c; k++)
            y[i * c + k] = average ? got[k] * scale : got[k];
    }
}

/* False: the number of channels is none of those, or they are doubles, for which these kernels would not pay. */
static bool fixed_windows(const windows *w, real *y, bool average)
{
    const int64_t c = sizeof(real) == sizeof(float) ? w->s->c : 0;
    if (c == 8)
        average ? windows_of(w, y, 8, true) : windows_of(w, y, 8, false);
    else if (c == 16)
        average ? windows_of(w, y, 16, true) : windows_of(w, y, 16, false);
    return c == 8 || c == 16;
}

static void max_windows(const windows *w, real *restrict y, int32_t *restrict place)
{
    const pc__pool *s = w->s;
    const int64_t n = w->count * s->c;
    real room[TOGETHER];
    int32_t corner[TOGETHER];
    for (int64_t i = 0; i < n; i++)
        y[i] = -INFINITY;
    for (int64_t i = 0; place && i < w->count; i++)
        for (int64_t c = 0; c < s->c; c++) {
            corner[i * s->c + c] = (int32_t)((w->first + i) * s->sw - s->pw);
            place[i * s->c + c] = (int32_t)(w->rows.from * s->w) + corner[i * s->c + c];
        }
    for (int64_t row = w->rows.from; row < w->rows.to; row++)
        for (int64_t column = 0; column < s->kw; column++) {
            const real *restrict x = taken(w, row, column, room);
            const int32_t here = (int32_t)(row * s->w + column);
            for (int64_t i = 0; place && i < n; i++) {
                const bool more = (x[i] > y[i]) | (x[i] != x[i]);
                place[i] = more ? corner[i] + here : place[i];
            }
            for (int64_t i = 0; i < n; i++)
                y[i] = ((x[i] > y[i]) | (x[i] != x[i])) ? x[i] : y[i];
        }
}

static void average_windows(const windows *w, real *restrict y)
{
    const pc__pool *s = w->s;
    const int64_t n = w->count * s->c;
    const real scale = window_scale(s, w->rows, (range){0, s->kw});
    real room[TOGETHER];
    for (int64_t i = 0; i < n; i++)
        y[i] = 0;
    for (int64_t row = w->rows.from; row < w->rows.to; row++)
        for (int64_t column = 0; column < s->kw; column++) {
            const real *restrict x = taken(w, row, column, room);
            for (int64_t i = 0; i < n; i++)
                y[i] += x[i];
        }
    for (int64_t i = 0; i < n; i++)
        y[i] *= scale;
}

static int threads_for(const pc__pool *s)
{
    return pc__threads(4 * s->n * pc__pool_oh(s) * pc__pool_ow(s) * s->kh * s->kw * s->c);
}

/* One call's shapes and memory, for its tasks. */
typedef struct pooling {
    const pc__pool *s;
    const void *from;
    void *to;
    int32_t *argmax;
} pooling;

/* Windows of a row of y, one by one, or those together that may be: the first of them, how many. */
static int64_t together(const pc__pool *s, int64_t at, int64_t ow)
{
    const int64_t inner = (s->w + s->pw - s->kw) / s->sw + 1; /* from here on they are cut at the right */
    if (s->c >= FEW || at * s->sw < s->pw || at >= inner)
        return 1;
    return PC__MIN(PC__MIN(inner, ow) - at, PC__MAX(TOGETHER / s->c, 1));
}

static void pool_row(const pooling *p, int64_t row, bool average)
{
    const pc__pool *s = p->s;
    const int64_t oh = pc__pool_oh(s), ow = pc__pool_ow(s);
    const real *image = (const real *)p->from + row / oh * s->h * s->w * s->c;
    const range h = inside(row % oh, s->sh, s->kh, s->ph, s->h);
    for (int64_t j = 0, count; j < ow; j += count) {
        real *y = (real *)p->to + (row * ow + j) * s->c;
        int32_t *place = p->argmax ? p->argmax + (row * ow + j) * s->c : NULL;
        count = together(s, j, ow);
        const range w = inside(j, s->sw, s->kw, s->pw, s->w);
        const windows some = {s, image, h, j, count};
        if (count > 1 && !place && fixed_windows(&some, y, average))
            continue;
        if (average && count > 1)
            average_windows(&some, y);
        else if (average)
            average_window(s, image, h, w, y);
        else if (count > 1)
            max_windows(&some, y, place);
        else
            max_window(s, image, h, w, y, place);
    }
}

static void max_row(void *context, int64_t row)
{
    pool_row(context, row, false);
}

pc_status PC__R(max_pool2d)(const pc__pool *s, const void *x, void *y, int32_t *argmax)
{
    pc__parallel(threads_for(s), s->n * pc__pool_oh(s), max_row, &(pooling){s, x, y, argmax});
    return PC_OK;
}

static void max_image_backward(void *context, int64_t n)
{
    const pooling *p = context;
    const pc__pool *s = p->s;
    const int64_t out = pc__pool_oh(s) * pc__pool_ow(s), image = s->h * s->w * s->c;
    real *to = (real *)p->to + n * image;
    const real *from = (const real *)p->from + n * out * s->c;
    memset(to, 0, (size_t)image * sizeof(real));
    for (int64_t i = 0; i < out; i++)
        for (int64_t c = 0; c < s->c; c++)
            to[p->argmax[(n * out + i) * s->c + c] * s->c + c] += from[i * s->c + c];
}

pc_status PC__R(max_pool2d_backward)(const pc__pool *s, const int32_t *argmax, const void *dy, void *dx)
{
    pc__parallel(threads_for(s), s->n, max_image_backward, &(pooling){s, dy, dx, (int32_t *)argmax});
    return PC_OK;
}

static void average_row(void *context, int64_t row)
{
    pool_row(context, row, true);
}

pc_status PC__R(avg_pool2d)(const pc__pool *s, const void *x, void *y)
{
    pc__parallel(threads_for(s), s->n * pc__pool_oh(s), average_row, &(pooling){.s = s, .from = x, .to = y});
    return PC_OK;
}

static void average_image_backward(void *context, int64_t n)
{
    const pooling *p = context;
    const pc__pool *s = p->s;
    const int64_t oh = pc__pool_oh(s), ow = pc__pool_ow(s);
    const real *dy = (const real *)p->from + n * oh * ow * s->c;
    real *dx = (real *)p->to + n * s->h * s->w * s->c;
    memset(dx, 0, (size_t)(s->h * s->w * s->c) * sizeof(real));
    for (int64_t i = 0; i < oh; i++)
        for (int64_t j = 0; j < ow; j++, dy += s->c) {
            const range h = inside(i, s->sh, s->kh, s->ph, s->h), w = inside(j, s->sw, s->kw, s->pw, s->w);
            const real scale = window_scale(s, h, w);
            for (int64_t at = h.from * s->w; at < h.to * s->w; at += s->w)
                for (int64_t k = at + w.from; k < at + w.to; k++)
                    for (int64_t c = 0; c < s->c; c++)
                        dx[k * s->c + c] += dy[c] * scale;
        }
}

pc_status PC__R(avg_pool2d_backward)(const pc__pool *s, const void *dy, void *dx)
{
    pc__parallel(threads_for(s), s->n, average_image_backward, &(pooling){.s = s, .from = dy, .to = dx});
    return PC_OK;
}
