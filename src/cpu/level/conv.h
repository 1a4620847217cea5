/* conv.h: what the forward and the backward convolution share: sizes, strips of padded input, windows. */
#ifndef PC__CONV_H
#define PC__CONV_H

#include "cpu/level/compute.h"
#include "cpu/level/real.h"

typedef struct geometry {
    const pc__conv *s;
    int64_t pool;   /* at least 1 */
    int64_t yh, yw; /* rows and columns written */
    int64_t run;    /* kw * c: contiguous elements of x under one row of the kernel */
    int64_t row;    /* elements in a row of padded input */
    bool padded;
} geometry;

static inline geometry geometry_of(const pc__conv *s)
{
    geometry g = {.s = s, .pool = PC__MAX(s->pool, 1), .yh = pc__conv_yh(s), .yw = pc__conv_yw(s)};
    g.run = s->kw * s->c;
    g.row = (s->w + 2 * s->pw) * s->c;
    g.padded = s->ph || s->pw;
    return g;
}

/* Rows of padded input under `rows` rows of y, and the first of them for row `y`. */
static inline int64_t input_rows(const geometry *g, int64_t rows)
{
    return (rows * g->pool - 1) * g->s->sh + g->s->kh;
}

static inline int64_t first_input_row(const geometry *g, int64_t y)
{
    return y * g->pool * g->s->sh;
}

/* Distance in padded input from a window's first place to place q (row * pool + column) of it. */
static inline int64_t place_offset(const geometry *g, int64_t q)
{
    return q / g->pool * g->s->sh * g->row + q % g->pool * g->s->sw * g->s->c;
}

/* out = from, or the gradient before the activation whose values are y. */
static inline void copy_row(const real *restrict from, pc__activation activation, const real *restrict y, int64_t n,
                            real *restrict out)
{
    switch (activation) {
    case PC__ACT_NONE:
        memcpy(out, from, (size_t)n * sizeof(real));
        break;
    case PC__ACT_RELU:
        for (int64_t i = 0; i < n; i++)
            out[i] = y[i] <= 0 ? 0 : from[i];
        break;
    case PC__ACT_SIGMOID:
        for (int64_t i = 0; i < n; i++)
            out[i] = from[i] * y[i] * (1 - y[i]);
        break;
    case PC__ACT_TANH:
        for (int64_t i = 0; i < n; i++)
            out[i] = from[i] * (1 - y[i] * y[i]);
        break;
    }
}

/* Copy rows [first, first + rows) of an image, padded, to out[rows][g->row]; with an activation as copy_row. */
static inline void copy_padded(const geometry *g, const real *image, pc__activation activation, const real *y,
                               int64_t first, int64_t rows, real *out)
{
    const pc__conv *s = g->s;
    const int64_t side = s->pw * s->c, inner = s->w * s->c;
    for (int64_t r = 0; r < rows; r++, out += g->row) {
        const int64_t from = first + r - s->ph;
        if (from < 0 || from >= s->h) {
            memset(out, 0, (size_t)g->row * sizeof(real));
            continue;
        }
        memset(out, 0, (size_t)side * sizeof(real));
        copy_row(image + from * inner, activation, y ? y + from * inner : NULL, inner, out + side);
        memset(out + side + inner, 0, (size_t)side * sizeof(real));
    }
}

/* The parts of the backward convolution: dweight and dbias (each may be NULL); dx of a convolution with stride 1, no
 * pooling and padding below the kernel's size. */
pc_status PC__R(conv2d_weights)(const pc__conv *s, const real *x, const real *y, const uint8_t *argmax, const real *dy,
                                real *dweight, real *dbias);
pc_status PC__R(conv2d_input_dense)(const pc__conv *s, const real *weight, const real *y, const real *dy, real *dx);

#endif
