/* pool_backward.c: gradients of pooling over channels-last pictures. A task is an image, since windows may overlap. */
#include "cpu/level/pool.h"

/* Where an image's gradient is summed up, zero at first. */
static real *image_of(const pooling *p, int64_t n)
{
    const pc__pool *s = p->s;
    const int64_t image = s->h * s->w * s->c;
    real *to = s->half ? p->rooms + pc__thread() * p->size : (real *)p->to + n * image;
    memset(to, 0, (size_t)image * sizeof(real));
    return to;
}

static void max_image(void *context, int64_t n)
{
    const pooling *p = context;
    const pc__pool *s = p->s;
    const int64_t oh = pc__pool_oh(s), row = pc__pool_ow(s) * s->c, image = s->h * s->w * s->c;
    real *to = image_of(p, n);
    for (int64_t i = 0; i < oh; i++) {
        const int64_t at = (n * oh + i) * row;
        const real *from = take(p, at, row, to + image);
        for (int64_t j = 0; j < row; j += s->c)
            for (int64_t c = 0; c < s->c; c++)
                to[p->argmax[at + j + c] * s->c + c] += from[j + c];
    }
    if (s->half)
        give(p, n * image, image, to);
}

/* What a row of windows adds to each row under it. */
static void spread(const pc__pool *s, const real *dy, range h, real *restrict row)
{
    memset(row, 0, (size_t)(s->w * s->c) * sizeof *row);
    for (int64_t j = 0; j < pc__pool_ow(s); j++, dy += s->c) {
        const range w = inside(j, s->sw, s->kw, s->pw, s->w);
        const real scale = window_scale(s, h, w);
        for (int64_t k = w.from; k < w.to; k++)
            for (int64_t c = 0; c < s->c; c++)
                row[k * s->c + c] += dy[c] * scale;
    }
}

static void average_image(void *context, int64_t n)
{
    const pooling *p = context;
    const pc__pool *s = p->s;
    const int64_t oh = pc__pool_oh(s), out = pc__pool_ow(s) * s->c, size = s->w * s->c, image = s->h * size;
    real *dx = image_of(p, n), *row = p->rooms + (pc__thread() + 1) * p->size - size;
    for (int64_t i = 0; i < oh; i++) {
        const range h = inside(i, s->sh, s->kh, s->ph, s->h);
        spread(s, take(p, (n * oh + i) * out, out, dx + image), h, row);
        for (real *to = dx + h.from * size; to < dx + h.to * size; to += size)
            for (int64_t k = 0; k < size; k++)
                to[k] += row[k];
    }
    if (s->half)
        give(p, n * image, image, dx);
}

/* Room for an image of 16-bit numbers and a row of its gradient, and `more`. */
static pc_status all_images(pooling *p, int64_t more, pc__part_fn image)
{
    const pc__pool *s = p->s;
    return pool_run(p, (s->half ? (s->h * s->w + pc__pool_ow(s)) * s->c : 0) + more, s->n, image);
}

pc_status PC__R(max_pool2d_backward)(const pc__pool *s, const int32_t *argmax, const void *dy, void *dx)
{
    return all_images(&(pooling){.s = s, .from = dy, .to = dx, .argmax = (int32_t *)argmax}, 0, max_image);
}

pc_status PC__R(avg_pool2d_backward)(const pc__pool *s, const void *dy, void *dx)
{
    return all_images(&(pooling){.s = s, .from = dy, .to = dx}, s->w * s->c, average_image);
}
