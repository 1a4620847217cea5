/* conv.c: forward convolution with bias, activation and max pooling in one pass: rows of output come from the tile
 * kernel into a block in the first-level cache, and only what is left after pooling goes to memory. */
#include "cpu/level/conv.h"
#include "cpu/level/micro.h"
#include "cpu/level/pairs.h"
#include "base/parallel.h"

#define BLOCK_PIXELS 128  /* pixels of output that are kept before they are pooled and written */
#define TASK_WORK 4000000 /* floating-point operations that make a task worth its scheduling */
#define TASKS 16          /* fewer leave threads without work */

/* The whole call: sizes, and weights as packed[panel of TILE_WIDTH outputs][kh][kw][c][width of the panel], or pairs. */
typedef struct forward {
    geometry g;
    const void *x;
    bool pairs;                /* by the tile of pairs.h */
    pair_narrow narrow;        /* pairs_narrow.c, where `together` is above 0 */
    int64_t depth, size;       /* rows of packed weights; bytes of an element of what the tile reads */
    const real *packed, *bias; /* bias[o rounded up to vectors] */
    pc__activation before;     /* x is a gradient behind this activation, saved its values */
    const void *saved;
    void *y;
    uint8_t *argmax;
    int64_t strip, strips; /* rows of y in a task, tasks in an image */
    bool biased;           /* bias is not all zero, */
    bool infinite;         /* and has numbers that are not finite */
    bool copying;          /* input goes through a padded copy */
    int64_t segment;       /* columns of the convolution that are worked on at once, a multiple of pool */
} forward;

/* The maximum over pool x pool pixels of block[pool][row / width][width], and its place. NaN counts as largest. */
INLINE vec pool_vector(const real *block, int64_t row, const int pool, const int width, lanes *place)
{
    vec most = LOAD(block);
    *place = (lanes){0};
    UNROLL for (int q = 1; q < pool * pool; q++)
    {
        const vec value = LOAD(block + q / pool * row + q % pool * width);
        const lanes more = (value > most) | (value != value);
        most = choose(more, value, most);
        *place = (more & q) | (~more & *place);
    }
    return most;
}

/* Whether pixels wait in the front of the block: 16-bit numbers, and such that end within a vector, which written whole is
 * overwritten by the next. */
static bool is_staged(const forward *f, int64_t count)
{
    return f->g.s->half || (count % W && count == f->g.s->o);
}

/* Pool (activations are monotone, so that they may follow), add the bias, activate, and write `pixels` pixels. */
INLINE void write_as(const forward *f, const int pool, const pc__activation activation, real *block, int64_t row,
                     int64_t pixels, int64_t first, const int width, int64_t at)
{
    const int64_t o = f->g.s->o, count = PC__MIN(width, o - first);
    const bool staged = is_staged(f, count);
    const int64_t step = staged ? count : o;
    const real *from = block;
    real *to = staged ? block : (real *)f->y + at;
    for (int64_t i = 0; i < pixels; i++, from += pool * width) {
        for (int64_t j = 0; j < count; j += W) {
            lanes place;
            vec value = pool_vector(from + j, row, pool, width, &place) + LOAD(f->bias + first + j);
            if (activation == PC__ACT_RELU)
                value = where(~(value < 0), value);
            store_some(value, to + i * step + j, staged ? W : count - j);
            if (pool > 1 && f->argmax)
                store_bytes(place, f->argmax + at + i * o + j, count - j);
        }
        if (activation > PC__ACT_RELU && !staged)
            activate(activation, to + i * step, count);
    }
    if (activation > PC__ACT_RELU && staged)
        activate(activation, to, pixels * count);
}

/* The front of the block to pixels of y. */
static void give_pixels(const forward *f, const real *block, int64_t pixels, int64_t count, int64_t at)
{
    const int64_t o = f->g.s->o;
    if (count == o)
        count *= pixels, pixels = 1;
#ifndef PC__DOUBLE
    for (int64_t i = 0; f->pairs && i < pixels; i++)
        pair_store((pc_bf16 *)f->y + at + i * o, block + i * count, count);
#endif
    for (int64_t i = 0; !f->pairs && i < pixels; i++)
        give_reals(&f->g, (void *)element(&f->g, f->y, at + i * o), block + i * count, count);
}

/* The same without a pool for pixels that wait in the block: of `width` sums each, `count` of which are left. */
INLINE void finish_as(const forward *f, const bool relu, real *block, int64_t pixels, int64_t first, int64_t width,
                      int64_t count)
{
    real *to = block;
    for (int64_t i = 0; i < pixels; i++, block += width, to += count)
        for (int64_t j = 0; j < width; j += W) {
            const vec value = LOAD(block + j) + LOAD(f->bias + first + j);
            AT(to + j) = relu ? where(~(value < 0), value) : value;
        }
}

static void finish_block(const forward *f, real *block, int64_t pixels, int64_t first, int64_t width)
{
    const pc__activation activation = f->g.s->activation;
    const int64_t count = PC__MIN(width, f->g.s->o - first);
    if (activation == PC__ACT_RELU)
        finish_as(f, true, block, pixels, first, width, count);
    else if (f->biased || count < width)
        finish_as(f, false, block, pixels, first, width, count);
    if (activation > PC__ACT_RELU)
        activate(activation, block, pixels * count);
}

/* A sum that is the other infinity than its bias makes no number, and the greatest sum of a window would hide it. Behind
 * this it is what adding such a bias makes it, and stays so where that is added once more. */
static void add_infinite(const forward *f, real *block, int64_t row, int64_t pixels, int64_t first, int width)
{
    const int64_t count = PC__MIN(width, f->g.s->o - first);
    for (int64_t j = 0; j < count; j++) {
        const real bias = f->bias[first + j];
        for (int64_t i = 0; bias - bias != 0 && i < f->g.pool * f->g.pool * pixels; i++)
            block[i / (f->g.pool * pixels) * row + i % (f->g.pool * pixels) * width + j] += bias;
    }
}

static void write_pixels(const forward *f, real *block, int64_t row, int64_t pixels, int64_t first, int width,
                         int64_t at)
{
    const pc__activation activation = f->g.s->activation;
    if (f->infinite && f->g.pool > 1)
        add_infinite(f, block, row, pixels, first, width);
    if (f->g.pool == 1 && is_staged(f, PC__MIN(width, f->g.s->o - first)))
        finish_block(f, block, pixels, first, width);
    else if (f->g.pool == 1)
        write_as(f, 1, activation, block, row, pixels, first, width, at);
    else if (f->g.pool == 2 && activation == PC__ACT_RELU)
        write_as(f, 2, PC__ACT_RELU, block, row, pixels, first, width, at);
    else
        write_as(f, (int)f->g.pool, activation, block, row, pixels, first, width, at);
    const int64_t count = PC__MIN(width, f->g.s->o - first);
    if (is_staged(f, count))
        give_pixels(f, block, pixels, count, at);
}

/* What follows a product that went straight to y, panel by panel. Beyond the outputs the bias is zero. */
static void finish_pixels(const forward *f, int64_t pixels, int64_t first, int64_t count, int64_t at)
{
    const pc__conv *s = f->g.s;
    if (!f->biased && s->activation == PC__ACT_NONE)
        return;
    real *y = (real *)f->y + at;
    if (count == s->o && count % W) { /* W pixels at once are whole vectors */
        real bias[W * TILE_WIDTH];
        for (int64_t i = 0; i < PC__MIN(W, pixels); i++)
            copy_some(bias + i * count, f->bias, count);
        for (; pixels >= W; pixels -= W, y += W * count) {
            for (int64_t j = 0; j < W * count; j += W)
                AT(y + j) += LOAD(bias + j);
            activate(s->activation, y, W * count);
        }
    }
    for (; pixels > 0; pixels--, y += s->o) {
        for (int64_t j = 0; j < count; j += W)
            AT(y + j) += LOAD(f->bias + first + j);
        activate(s->activation, y, count);
    }
}

/* Rows of the kernel that lie on the picture, for row `row` of the convolution. */
static void find_rows(const pc__conv *s, int64_t row, int64_t *from, int64_t *rows)
{
    const int64_t above = s->ph - row * s->sh, end = PC__MIN(s->kh, s->h + above);
    *from = PC__MAX(above, 0);
    *rows = PC__MAX(end - *from, 0);
}

#ifndef PC__DOUBLE
/* pixels of row `row` of y, of few outputs. */
static void narrow_run(const forward *f, const char *input, int64_t row, int64_t pixels, int64_t at)
{
    int64_t from;
    pair_narrow n = f->narrow;
    find_rows(f->g.s, row, &from, &n.segments);
    n.b += from * ((n.k + 1) / 2) * W;
    pair_narrow_run(&n, (const pc_bf16 *)(const void *)input + from * n.a_segment, (pc_bf16 *)f->y + at, pixels);
}
#endif

/* pixels x vectors of a row of the convolution to c, from padded input: without the rows of the kernel that lie on padding. */
static void multiply(const forward *f, const char *input, const real *packed, int64_t row, int64_t pixels, int vectors,
                     real *c, int64_t c_row)
{
    const geometry *g = &f->g;
    const pc__conv *s = g->s;
    const int64_t width = vectors * W, step = f->depth / s->kh * width;
    int64_t from, rows;
    find_rows(s, row, &from, &rows);
    input += from * g->row * f->size;
#ifndef PC__DOUBLE
    if (f->pairs) {
        pair_tile t = {.segments = rows,
                       .k = g->run,
                       .a = (const pc_bf16 *)(const void *)input,
                       .a_row = s->sw * s->c,
                       .a_segment = g->row,
                       .b = (const uint32_t *)(const void *)packed + from * step,
                       .b_k = width,
                       .b_segment = step,
                       .c = c,
                       .c_row = c_row};
        pair_rows_run(&t, pixels, vectors);
        return;
    }
#endif
    tile t = {.planes = 1,
              .segments = rows,
              .k = g->run,
              .a = (const real *)(const void *)input,
              .a_row = s->sw * s->c,
              .a_k = 1,
              .a_segment = g->row,
              .b = packed + from * step,
              .b_k = width,
              .b_segment = step,
              .c = c,
              .c_row = c_row};
    tile_rows_run(&t, pixels, vectors);
}

/* Pixels whose whole vectors may go to y at once: where a panel is all outputs, what is written beyond a pixel is overwritten
 * by the next ones. */
static int64_t straight_pixels(const forward *f, int64_t pixels, int64_t count, int64_t width)
{
    const pc__conv *s = f->g.s;
    if (f->g.pool > 1 || s->half || (count < width && count != s->o))
        return 0;
    if (count < width && f->depth > pixels) /* a tile of the last ones alone would cost more than to go by the block */
        return 0;
    return PC__MAX(pixels - (width - 1) / count, 0);
}

/* A segment of row `y` of y for a panel of outputs. `input` is padded input at the segment's first place. */
static void segment_run(const forward *f, const char *input, const real *packed, int64_t first, int64_t y,
                        int64_t pixels, int64_t at, real *block)
{
    const geometry *g = &f->g;
    const pc__conv *s = g->s;
    const int64_t count = PC__MIN(TILE_WIDTH, s->o - first);
    const int vectors = (int)((count + W - 1) / W), width = vectors * W;
    const int64_t straight = straight_pixels(f, pixels, count, width);
    if (straight > 0) {
        multiply(f, input, packed, y, straight, vectors, (real *)f->y + at, s->o);
        finish_pixels(f, straight, first, count, at);
    }
    if (straight == pixels)
        return;
    input += straight * s->sw * s->c * f->size, at += straight * s->o, pixels -= straight;
    for (int64_t q = 0; q < g->pool; q++)
        multiply(f, input + q * s->sh * g->row * f->size, packed, y * g->pool + q, pixels, vectors,
                 block + q * pixels * width, width);
    write_pixels(f, block, pixels * width, pixels / g->pool, first, width, at);
}

/* One row of y: all panels of outputs, segment by segment. */
static void row_run(const forward *f, const char *input, int64_t image, int64_t y, real *block)
{
    const geometry *g = &f->g;
    const pc__conv *s = g->s;
    const real *packed = f->packed;
#ifndef PC__DOUBLE
    if (f->narrow.together > 0) {
        narrow_run(f, input, y, g->yw, (image * g->yh + y) * g->yw * s->o);
        return;
    }
#endif
    for (int64_t first = 0; first < s->o; first += TILE_WIDTH) {
        for (int64_t column = 0; column < g->yw * g->pool; column += f->segment) {
            const int64_t pixels = PC__MIN(f->segment, g->yw * g->pool - column);
            const int64_t at = ((image * g->yh + y) * g->yw + column / g->pool) * s->o + first;
            segment_run(f, input + column * s->sw * s->c * f->size, packed, first, y, pixels, at, block);
        }
        packed += f->depth * round_up(PC__MIN(TILE_WIDTH, s->o - first), W);
    }
}

static void strip_run(const forward *f, int64_t task, real *block, real *padded)
{
    const geometry *g = &f->g;
    const int64_t image = task / f->strips, y0 = task % f->strips * f->strip, rows = PC__MIN(f->strip, g->yh - y0);
    const int64_t at = image * g->s->h * g->s->w * g->s->c;
    const char *input = (const char *)padded;
    if (!f->copying)
        input = element(g, f->x, at + first_input_row(g, y0) * g->row);
    else if (f->pairs)
        PC__K(copy_padded_pairs)
    (g, element(g, f->x, at), element(g, f->saved, at), first_input_row(g, y0), input_rows(g, rows),
     (pc_bf16 *)(void *)padded);
    else copy_padded(g, element(g, f->x, at), f->before, element(g, f->saved, at), first_input_row(g, y0),
                     input_rows(g, rows), padded);
#ifndef PC__DOUBLE
    if (f->narrow.together > 0 && g->s->kh * g->s->kw * g->s->sh * g->s->sw == 1 && !g->padded) { /* rows are one */
        narrow_run(f, input, y0, rows * g->yw, (image * g->yh + y0) * g->yw * g->s->o);
        return;
    }
#endif
    for (int64_t y = 0; y < rows; y++)
        row_run(f, input + first_input_row(g, y) * g->row * f->size, image, y0 + y, block);
}

typedef struct strips {
    const forward *f;
    real *scratch; /* per thread `block` values and `padded` more */
    int64_t block, padded;
} strips;

static void strip_task(void *context, int64_t task)
{
    const strips *s = context;
    real *mine = s->scratch + pc__thread() * (s->block + s->padded);
    strip_run(s->f, task, mine, mine + s->block);
}

/* Several places share a vector, or there is so little to add up that the way through a block would take longer. */
bool PC__R(conv2d_is_narrow)(const pc__conv *s)
{
    enum { FEW_PAIRS = 8 };
#ifndef PC__DOUBLE
    if (s->half && !s->is_f16 && s->o <= W && s->pool <= 1 && s->activation <= PC__ACT_RELU && pc__has_pairs()) {
        const int64_t together = pair_narrow_together(s->kw * s->c, s->sw * s->c, s->o);
        return together > 1 || (together == 1 && s->kh * (s->kw * s->c + 1) / 2 <= FEW_PAIRS);
    }
#endif
    (void)s;
    return false;
}

/* Everything after the sizes. */
static pc_status run(forward *f, const void *weight, bool back, const void *bias)
{
    enum { AROUND = 4 };
    const geometry *g = &f->g;
    const pc__conv *s = g->s;
    const int64_t outputs = round_up(s->o, W), depth = s->kh * g->run;
    f->pairs = s->half && !s->is_f16 && f->before <= PC__ACT_RELU && pc__has_pairs();
#ifndef PC__DOUBLE
    if (f->pairs && PC__R(conv2d_is_narrow)(s))
        f->narrow = (pair_narrow){.segments = s->kh,
                                  .k = g->run,
                                  .a_row = s->sw * s->c,
                                  .a_segment = g->row,
                                  .outputs = s->o,
                                  .together = pair_narrow_together(g->run, s->sw * s->c, s->o),
                                  .relu = s->activation == PC__ACT_RELU};
#endif
    f->depth = f->pairs ? s->kh * ((g->run + 1) / 2) : depth;
    f->size = f->pairs ? 2 : (int64_t)sizeof(real);
    const int64_t row_work = 2 * g->yw * g->pool * g->pool * s->o * depth;
    f->biased = bias;
    f->copying = g->padded || (s->half && !f->pairs) || f->before != PC__ACT_NONE;
    f->strip = PC__MIN(PC__MAX(TASK_WORK / PC__MAX(row_work, 1), 1), g->yh);
    if (f->copying) /* rows above and below are copied by both neighbours */
        f->strip = PC__MIN(PC__MAX(f->strip, PC__MIN(4 * s->kh, s->n * g->yh / TASKS)), g->yh);
    f->strips = (g->yh + f->strip - 1) / f->strip;
    f->segment = PC__MAX(BLOCK_PIXELS / g->pool / g->pool, 1) * g->pool;
    /* Few outputs take a vector, and few numbers to add up no less than what is around them. */
    const int threads = pc__threads(2 * s->n * g->yh * g->yw * g->pool * g->pool * outputs * (depth + AROUND));
    const int64_t block = g->pool * f->segment * TILE_WIDTH;
    const int64_t padded = f->copying ? round_up(input_rows(g, f->strip) * g->row, W) : 0;
    const int64_t room = outputs + depth * outputs + threads * (block + padded);
    real *slab = pc__alloc_aligned((size_t)room * sizeof(real), 64);
    if (!slab)
        return PC_ERR_MEMORY;
    real *packed = slab + outputs, *scratch = packed + depth * outputs;
    memset(slab, 0, (size_t)outputs * sizeof(real));
    if (bias)
        take_reals(g, slab, bias, s->o);
    for (int64_t i = 0; i < s->o; i++)
        f->infinite |= slab[i] - slab[i] != 0;
    f->bias = slab, f->packed = packed;
    f->narrow.bias = (const float *)(const void *)slab, f->narrow.b = (const uint32_t *)(const void *)packed;
    const pc_status status = f->pairs ? PC__K(conv2d_pack_pairs)(s, weight, back, (uint32_t *)(void *)packed)
                                      : PC__R(conv2d_pack)(s, weight, back, packed);
#ifndef PC__DOUBLE
    if (status == PC_OK && f->narrow.together > 0)
        pair_narrow_spread(&f->narrow, (uint32_t *)(void *)packed, (uint32_t *)(void *)slab);
#endif
    if (status == PC_OK)
        pc__parallel(threads, s->n * f->strips, strip_task, &(strips){f, scratch, block, padded});
    pc__free(slab);
    return status;
}

pc_status PC__R(conv2d_tiles)(const pc__conv *s, const void *x, const void *weight, const void *bias, void *y,
                              uint8_t *argmax)
{
    forward f = {.g = geometry_of(s), .x = x, .y = y};
    f.argmax = f.g.pool > 1 ? argmax : NULL;
    return s->n * f.g.yh * f.g.yw * s->o > 0 ? run(&f, weight, false, bias) : PC_OK;
}

pc_status PC__R(conv2d_last)(const pc__conv *s, const void *x, const void *weight, const void *bias, void *y,
                             uint8_t *argmax)
{
    return PC__R(conv2d_is_product)(s) ? PC__R(conv2d_product)(s, x, weight, bias, y)
                                       : PC__R(conv2d_tiles)(s, x, weight, bias, y, argmax);
}

pc_status PC__R(conv2d_input_dense)(const pc__conv *s, const void *weight, const void *y, const void *dy, void *dx)
{
    const pc__conv back = pc__conv_back(s);
    forward f = {.g = geometry_of(&back), .x = dy, .y = dx, .before = s->activation};
    f.saved = s->activation == PC__ACT_NONE ? NULL : y;
    return s->n * s->h * s->w * s->c > 0 ? run(&f, weight, true, NULL) : PC_OK;
}
