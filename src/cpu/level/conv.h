/* conv.h: what the forward and the backward convolution share: sizes, strips of padded input, windows. */
#ifndef PC__CONV_H
#define PC__CONV_H

#include "cpu/level/compute.h"
#include "cpu/level/real.h"
#include "tensor/half.h"

typedef struct geometry {
    const pc__conv *s;
    int64_t pool;   /* at least 1 */
    int64_t yh, yw; /* rows and columns written */
    int64_t run;    /* kw * c: contiguous elements of x under one row of the kernel */
    int64_t row;    /* elements in a row of padded input */
    bool padded;
    int64_t size;              /* bytes of an element of x and y */
    int64_t channel, tap, out; /* distances in weight from one input, place of the kernel, output to the next */
} geometry;

/* The convolution without a stride or pooling that leads from the gradient at y to that at x, with the kernel turned around. */
static inline pc__conv pc__conv_back(const pc__conv *s)
{
    return (pc__conv){.n = s->n,
                      .h = pc__conv_oh(s),
                      .w = pc__conv_ow(s),
                      .c = s->o,
                      .o = s->c,
                      .kh = s->kh,
                      .kw = s->kw,
                      .sh = 1,
                      .sw = 1,
                      .ph = s->kh - 1 - s->ph,
                      .pw = s->kw - 1 - s->pw,
                      .weights_last = s->weights_last,
                      .half = s->half,
                      .is_f16 = s->is_f16};
}

static inline geometry geometry_of(const pc__conv *s)
{
    geometry g = {.s = s, .pool = PC__MAX(s->pool, 1), .yh = pc__conv_yh(s), .yw = pc__conv_yw(s)};
    g.run = s->kw * s->c;
    g.row = (s->w + 2 * s->pw) * s->c;
    g.padded = s->ph || s->pw;
    g.size = s->half ? 2 : (int64_t)sizeof(real);
    g.out = s->kh * g.run;
    g.channel = s->weights_last ? 1 : s->kh * s->kw;
    g.tap = s->weights_last ? s->c : 1;
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

/* Element i of memory whose type the call says: 16-bit numbers or reals. */
static inline const void *element(const geometry *g, const void *of, int64_t i)
{
    return of ? (const char *)of + i * g->size : NULL;
}

/* conv_rows.c: to[0..n) = such elements, as reals, and back. */
#define take_reals PC__R(take_reals)
#define give_reals PC__R(give_reals)
void take_reals(const geometry *g, real *restrict to, const void *restrict from, int64_t n);
void give_reals(const geometry *g, void *restrict to, const real *restrict from, int64_t n);

/* values = the gradient before the activation whose values are y. */
#define before_activation PC__R(before_activation)
void before_activation(pc__activation activation, real *restrict values, const real *restrict y, int64_t n);

/* out = from, or the gradient before the activation whose values are y. */
#define copy_row PC__R(copy_row)
void copy_row(const geometry *g, const void *from, pc__activation activation, const void *y, int64_t n, real *out);

/* The same of many, on all cores. */
#define copy_all PC__R(copy_all)
void copy_all(const geometry *g, const void *from, pc__activation activation, const void *y, int64_t n, real *out);

/* Copy rows [first, first + rows) of an image, padded, to out[rows][g->row]; with an activation as copy_row. */
#define copy_padded PC__R(copy_padded)
void copy_padded(const geometry *g, const void *image, pc__activation activation, const void *y, int64_t first,
                 int64_t rows, real *out);

/* conv_pack.c: weights as [panel of TILE_WIDTH outputs][kh][kw][c][width of the panel], each panel of whole vectors; `back`:
 * of the convolution that leads from y to x, whose sizes `s` has. */
pc_status PC__R(conv2d_pack)(const pc__conv *s, const void *weight, bool back, real *packed);

/* conv_pairs.c: the same two for bfloat16 and the tile of pairs.h: packed[panel][kh][kw * c / 2, rounded up][width] are pairs,
 * and pictures stay as they are; y are values of a ReLU, or NULL. */
pc_status PC__K(conv2d_pack_pairs)(const pc__conv *s, const void *weight, bool back, uint32_t *packed);
void PC__K(copy_padded_pairs)(const geometry *g, const pc_bf16 *image, const pc_bf16 *y, int64_t first, int64_t rows,
                              pc_bf16 *out);
/* The n of dy, 0 where y does not let them through. */
void PC__K(copy_cut_pairs)(const pc_bf16 *dy, const pc_bf16 *y, int64_t n, pc_bf16 *out);

/* conv_planes.c: conv2d without pooling, of pictures in either order; dx from dy before the activation, channels last. */
pc_status PC__R(conv2d_planar)(const pc__conv *s, const void *x, const void *weight, const void *bias, void *y);
pc_status PC__R(conv2d_planar_input)(const pc__conv *s, const void *weight, const void *dy, void *dx);

/* Gradients of weights and, unless NULL, of the bias, of pictures in either order and with any activation, in float. */
pc_status PC__R(conv2d_planar_weights)(const pc__conv *s, const void *x, const void *y, const void *dy, void *dweight,
                                       void *dbias);

/* conv_windows.c: the windows of all places as rows, each in the order of the weights: taken from x; and dx from windows of reals. */
pc_status PC__R(take_windows)(const geometry *g, const void *x, void *to);
pc_status PC__R(add_windows)(const geometry *g, const real *from, void *dx);

/* conv_product.c: conv2d of what is channels last, and its gradient (dx and dweight may be NULL), where sizes say so. */
bool PC__R(conv2d_windows_lie)(const pc__conv *s); /* the pictures are the windows as they lie */
bool PC__R(conv2d_is_product)(const pc__conv *s);
bool PC__R(conv2d_weights_are_product)(const pc__conv *s);
bool PC__R(conv2d_input_is_product)(const pc__conv *s);
pc_status PC__R(conv2d_product)(const pc__conv *s, const void *x, const void *weight, const void *bias, void *y);
pc_status PC__R(conv2d_backward_product)(const pc__conv *s, const void *x, const void *weight, const void *y,
                                         const void *dy, void *dx, void *dweight);

/* conv.c: by tiles, of any sizes; and whether that is bfloat16 by pairs_narrow.c, where there are no gradients to cut. */
bool PC__R(conv2d_is_narrow)(const pc__conv *s);
pc_status PC__R(conv2d_tiles)(const pc__conv *s, const void *x, const void *weight, const void *bias, void *y,
                              uint8_t *argmax);

/* conv_order.c: conv2d and its gradient, of all taps. */
pc_status PC__R(conv2d_ordered)(const pc__conv *s, const void *x, const void *weight, const void *bias, void *y,
                                uint8_t *argmax);
pc_status PC__R(conv2d_backward_ordered)(const pc__conv *s, const void *x, const void *weight, const void *y,
                                         const uint8_t *argmax, const void *dy, void *dx, void *dweight, void *dbias);

/* The same of what is channels last. */
pc_status PC__R(conv2d_last)(const pc__conv *s, const void *x, const void *weight, const void *bias, void *y,
                             uint8_t *argmax);
pc_status PC__R(conv2d_backward_last)(const pc__conv *s, const void *x, const void *weight, const void *y,
                                      const uint8_t *argmax, const void *dy, void *dx, void *dweight, void *dbias);

/* The parts of the backward convolution: dweight and dbias (each may be NULL); dx of a convolution with stride 1, no
 * pooling and padding below the kernel's size. */
pc_status PC__R(conv2d_weights)(const pc__conv *s, const void *x, const void *y, const uint8_t *argmax, const void *dy,
                                void *dweight, void *dbias);
pc_status PC__R(conv2d_input_dense)(const pc__conv *s, const void *weight, const void *y, const void *dy, void *dx);

#endif
