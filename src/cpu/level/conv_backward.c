/* conv_backward.c: the backward convolution, and the gradient of its input from the places that carry any gradient:
 * for each of them, the weights of its output channel are added under it. */
#include "cpu/level/conv.h"
#include "cpu/level/gather.h"
#include "cpu/level/pairs.h"
#include "base/parallel.h"
#include "ops/conv2d.h"

#define WEIGHT_BYTES 32768 /* weights that stay in the first-level cache */
#define DENSE 2            /* how much less than a product of a tile one of the gather way gets done */

typedef struct backward {
    geometry g;
    const void *y, *dy;
    const uint8_t *argmax;
    int64_t width;  /* g.run rounded up to vectors */
    int64_t *place; /* place_offset of each place in a window */
    bool copying;   /* dx is made in a padded copy that may be written past its end */
    real *weights;  /* [kh / group][o][group][width] */
    int64_t group;  /* rows of the kernel that dx is made from at once */
} backward;

/* Items of one pixel of y, grouped by place: items[place][o], counts[place]; offsets into the packed weights. With
 * up to four places the counts are 16-bit fields of one register, else every item would wait for a store. */
static void list_outputs(const backward *b, const real *dy, const uint8_t *argmax, item *items, int64_t *counts)
{
    const int64_t outputs = b->g.s->o, places = b->g.pool * b->g.pool, step = b->group * b->width;
    if (places <= 4 && outputs <= UINT16_MAX) {
        uint64_t fields = 0;
        for (int64_t o = 0; o < outputs; o++) {
            const int64_t place = argmax ? argmax[o] : 0, shift = 16 * place;
            item *to = items + place * outputs + (fields >> shift & UINT16_MAX);
            to->weight = dy[o];
            to->offset = (pc__lane_int)(o * step);
            fields += (uint64_t)(dy[o] != 0) << shift;
        }
        for (int64_t q = 0; q < places; q++)
            counts[q] = fields >> 16 * q & UINT16_MAX;
        return;
    }
    memset(counts, 0, (size_t)places * sizeof(*counts));
    for (int64_t o = 0; o < outputs; o++) {
        const int64_t place = argmax ? argmax[o] : 0;
        items[place * outputs + counts[place]] = (item){dy[o], (pc__lane_int)(o * step)};
        counts[place] += dy[o] != 0;
    }
}

/* dx of one image into to[padded rows][g->row], which is zero at first. */
static void image_backward(const backward *b, int64_t image, real *dy, item *items, int64_t *counts, real *to)
{
    const geometry *g = &b->g;
    const pc__conv *s = g->s;
    const int64_t places = g->pool * g->pool, list = places * s->o;
    for (int64_t y = 0; y < g->yh; y++) {
        const int64_t at = (image * g->yh + y) * g->yw * s->o;
        copy_row(g, element(g, b->dy, at), s->activation, element(g, b->y, at), g->yw * s->o, dy);
        for (int64_t i = 0; i < g->yw; i++)
            list_outputs(b, dy + i * s->o, b->argmax ? b->argmax + at + i * s->o : NULL, items + i * list,
                         counts + i * places);
        for (int64_t kh = 0; kh < s->kh; kh += b->group) {
            real *row = to + (first_input_row(g, y) + kh) * g->row;
            const gather_shape shape = gather_shape_of(PC__MIN(b->group, s->kh - kh), b->width / W);
            for (int64_t i = 0; i < g->yw; i++, row += g->pool * s->sw * s->c)
                for (int64_t q = 0; q < places; q++) {
                    gather sum = {.items = items + i * list + q * s->o,
                                  .count = counts[i * places + q],
                                  .from = b->weights + kh * s->o * b->width,
                                  .from_row = b->width,
                                  .to = row + b->place[q],
                                  .to_row = g->row};
                    if (sum.count)
                        gather_all(sum, &shape);
                }
        }
    }
}

/* weights[kh / group][o][group][width] from an output's weights, the ends of rows zero; `room` for those of one. */
static void pack_rows(const backward *b, const void *weight, real *room)
{
    const geometry *g = &b->g;
    const pc__conv *s = g->s;
    memset(b->weights, 0, (size_t)(round_up(s->kh, b->group) * s->o * b->width) * sizeof(real));
    for (int64_t o = 0; o < s->o; o++) {
        take_reals(g, room, element(g, weight, o * g->out), g->out);
        for (int64_t kh = 0; kh < s->kh; kh++) {
            real *row = b->weights + ((kh / b->group * s->o + o) * b->group + kh % b->group) * b->width;
            for (int64_t kw = 0; kw < s->kw; kw++)
                for (int64_t c = 0; c < s->c; c++)
                    row[kw * s->c + c] = room[c * g->channel + (kh * s->kw + kw) * g->tap];
        }
    }
}

/* Take the inner part of a padded image. */
static void copy_inner(const geometry *g, const real *padded, void *image)
{
    const pc__conv *s = g->s;
    const int64_t inner = s->w * s->c;
    for (int64_t r = 0; r < s->h; r++)
        give_reals(g, (char *)image + r * inner * g->size, padded + (r + s->ph) * g->row + s->pw * s->c, inner);
}

/* The memory of the tasks, one image each: per thread `mine` bytes, cut into a row of gradients, the padded picture,
 * the list of items and their counts. */
typedef struct inputs {
    backward *b;
    char *dx, *rooms;
    int64_t mine, row, padded, items;
} inputs;

static void image_task(void *context, int64_t image)
{
    const inputs *in = context;
    const geometry *g = &in->b->g;
    const int64_t size = g->s->h * g->s->w * g->s->c;
    char *own = in->rooms + pc__thread() * in->mine;
    real *to = in->padded ? (real *)(own + in->row) : (real *)in->dx + image * size;
    item *list = (item *)(own + in->row + round_up(in->padded * (int64_t)sizeof(real), 64));
    int64_t *count = (int64_t *)((char *)list + round_up(in->items * (int64_t)sizeof(item), 64));
    memset(to, 0, (size_t)(in->padded ? in->padded : size) * sizeof(real));
    image_backward(in->b, image, (real *)own, list, count, to);
    if (in->padded)
        copy_inner(g, to, in->dx + image * size * g->size);
}

static pc_status input_backward(backward *b, const void *weight, void *dx)
{
    const geometry *g = &b->g;
    const pc__conv *s = g->s;
    const int64_t places = g->pool * g->pool;
    const bool fits = s->kh * s->o * b->width * (int64_t)sizeof(real) <= WEIGHT_BYTES;
    b->group = fits ? PC__MAX(s->kh, 1) : 1;
    const int threads = pc__threads(2 * s->n * g->yh * g->yw * s->o * s->kh * b->width);
    const int64_t weights = round_up(s->kh, b->group) * s->o * b->width;
    inputs in = {.b = b, .dx = dx};
    in.padded = b->copying ? (s->h + 2 * s->ph) * g->row + b->width : 0;
    in.items = g->yw * places * s->o + 1;
    in.row = round_up(g->yw * s->o * (int64_t)sizeof(real), 64);
    in.mine = in.row + round_up(in.padded * (int64_t)sizeof(real), 64) +
              round_up(in.items * (int64_t)sizeof(item), 64) + round_up(g->yw * places * (int64_t)sizeof(int64_t), 64);
    const int64_t shared = round_up((weights + g->out) * (int64_t)sizeof(real), 64);
    char *slab = pc__alloc_aligned((size_t)(shared + threads * in.mine), 64);
    if (!slab)
        return PC_ERR_MEMORY;
    b->weights = (real *)slab;
    in.rooms = slab + shared;
    pack_rows(b, weight, b->weights + weights);
    pc__parallel(threads, s->n, image_task, &in);
    pc__free(slab);
    return PC_OK;
}

/* Few channels, whose dx has neighbouring places in a vector (planar.h). A convolution that leads back has a product for each
 * column of x, where the gather way has one for each of y; both leave out rows of the kernel that lie beside. */
static bool leads_back(const pc__conv *s)
{
    return s->sh == 1 && s->sw == 1 && s->ph < s->kh && s->pw < s->kw;
}

static bool is_planar(const pc__conv *s)
{
    return leads_back(s) && (s->activation == PC__ACT_NONE || !s->half) &&
           pc__conv2d_is_planar(s->half && !s->is_f16 ? PC_BF16 : PC_F32, s->c, s->w, s->kw, 1, s->pool);
}

/* A ReLU leaves 16-bit gradients as they are or takes them away, so that nothing is rounded before the product of pairs. */
static bool is_cut_for_registers(const pc__conv *s)
{
    pc__conv inner = *s;
    inner.activation = PC__ACT_NONE;
    return !s->is_f16 && s->activation == PC__ACT_RELU && pair_tiles_there() &&
           PC__R(conv2d_weights_are_product)(&inner);
}

/* Whether the gradient before the activation is made once for all: planes take no other, and weights of outputs that are no whole
 * vectors read it as it lies. */
static bool is_cut_first(const pc__conv *s, bool input, bool weights)
{
    if (s->activation == PC__ACT_NONE || s->pool > 1)
        return false;
    if (s->half)
        return weights && is_cut_for_registers(s);
    return (input && is_planar(s)) || (weights && s->o % W != 0);
}

/* The same of a copy of dy, cut by the activation whose values y are. */
static pc_status backward_cut(const pc__conv *s, const void *x, const void *weight, const void *y, const void *dy,
                              void *dx, void *dweight, void *dbias)
{
    const geometry g = geometry_of(s);
    const int64_t count = s->n * g.yh * g.yw * s->o;
    char *cut = pc__alloc_aligned((size_t)(count * g.size + 1), 64);
    if (!cut)
        return PC_ERR_MEMORY;
#ifndef PC__DOUBLE
    if (s->half)
        PC__K(copy_cut_pairs)(dy, y, count, (pc_bf16 *)(void *)cut);
    else
#endif
        copy_all(&g, dy, s->activation, y, count, (real *)(void *)cut);
    pc__conv inner = *s;
    inner.activation = PC__ACT_NONE;
    const pc_status status = PC__R(conv2d_backward_last)(&inner, x, weight, NULL, NULL, cut, dx, dweight, dbias);
    pc__free(cut);
    return status;
}

pc_status PC__R(conv2d_backward_last)(const pc__conv *s, const void *x, const void *weight, const void *y,
                                      const uint8_t *argmax, const void *dy, void *dx, void *dweight, void *dbias)
{
    int64_t place[256];
    backward b = {.g = geometry_of(s), .y = y, .dy = dy, .place = place};
    const bool product = dweight && PC__R(conv2d_weights_are_product)(s);
    const bool both = dx && PC__R(conv2d_input_is_product)(s);
    if (is_cut_first(s, dx && !both, dweight && !product))
        return backward_cut(s, x, weight, y, dy, dx, dweight, dbias);
    if (dbias || (dweight && !product))
        PC__TRY(PC__R(conv2d_weights)(s, x, y, argmax, dy, product ? NULL : dweight, dbias));
    if (product || both)
        PC__TRY(PC__R(conv2d_backward_product)(s, x, weight, y, dy, both ? dx : NULL, product ? dweight : NULL));
    if (!dx || both)
        return PC_OK;
    if (is_planar(s))
        return PC__R(conv2d_planar_input)(s, weight, dy, dx);
    const bool pairs = s->half && !s->is_f16 && pc__has_pairs(); /* twice as fast */
    if (b.g.pool == 1 && leads_back(s) && (pairs ? 2 : 1) * DENSE * b.g.yw >= s->w)
        return PC__R(conv2d_input_dense)(s, weight, y, dy, dx);
    b.argmax = b.g.pool > 1 ? argmax : NULL;
    b.width = round_up(b.g.run, W);
    b.copying = b.g.padded || s->half || b.width != b.g.run;
    for (int64_t q = 0; q < b.g.pool * b.g.pool; q++)
        place[q] = place_offset(&b.g, q);
    return input_backward(&b, weight, dx);
}
