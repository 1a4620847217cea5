/* pool.c: maximum and average pooling over channels-last pictures, forward and backward. A task is a row of y going
 * forward and an image going backward, where windows may overlap. */
#include "cpu/level/compute.h"
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

static void max_row(void *context, int64_t row)
{
    const pooling *p = context;
    const pc__pool *s = p->s;
    const int64_t oh = pc__pool_oh(s), ow = pc__pool_ow(s), image = s->h * s->w * s->c;
    for (int64_t j = 0; j < ow; j++)
        max_window(s, (const real *)p->from + row / oh * image, inside(row % oh, s->sh, s->kh, s->ph, s->h),
                   inside(j, s->sw, s->kw, s->pw, s->w), (real *)p->to + (row * ow + j) * s->c,
                   p->argmax ? p->argmax + (row * ow + j) * s->c : NULL);
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
    const pooling *p = context;
    const pc__pool *s = p->s;
    const int64_t oh = pc__pool_oh(s), ow = pc__pool_ow(s), image = s->h * s->w * s->c;
    for (int64_t j = 0; j < ow; j++)
        average_window(s, (const real *)p->from + row / oh * image, inside(row % oh, s->sh, s->kh, s->ph, s->h),
                       inside(j, s->sw, s->kw, s->pw, s->w), (real *)p->to + (row * ow + j) * s->c);
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
