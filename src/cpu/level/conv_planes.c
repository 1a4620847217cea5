/* conv_planes.c: forward convolution with neighbouring places in a vector, where few outputs would leave most of one empty.
 * A strip of a picture becomes planes: of each channel, and with a stride of each remainder of rows and columns, rows one
 * behind the other. So neighbours in y are neighbours there under each place of the kernel, over the ends of rows too: what
 * is computed there is dropped. Weights are read as they lie, pictures in either order. */
#include "cpu/level/conv.h"
#include "cpu/level/micro.h"
#include "cpu/level/turn.h"
#include "base/parallel.h"

enum {
    OUTPUTS = 24,          /* that are finished together */
    PLACES = 512,          /* of a strip, about */
    PLANES_MOST = 1 << 16, /* numbers of a strip's planes, if rows are short enough */
};

typedef struct planar {
    geometry g;
    const void *x;
    const real *weight, *bias; /* as they lie; o of them, or NULL */
    void *y;
    int64_t rows, strips;  /* of y in a strip; strips of an image */
    int64_t across, plane; /* numbers of a row, of a plane */
    int64_t run;           /* numbers that are computed of a plane, whole vectors */
    real *rooms;           /* of each thread: planes, results, results without the ends of rows or a row of x */
    int64_t planes, block, all;
} planar;

/* Columns of one row of x, from its first in steps of the stride, to a plane of each channel. `row`: of planes or [w][c]. */
static void spread_row(const planar *p, const real *row, int64_t step, int64_t channels, int64_t n, real *to)
{
    const pc__conv *s = p->g.s;
    const int64_t next = s->sh * s->sw * p->plane, size = sizeof(real);
    if (channels > 1)
        pc__turn((char *)to, next * size, (const char *)row, step * size, n, channels, sizeof(real));
    else if (step == 1)
        memcpy(to, row, (size_t)n * sizeof(real));
    else if (step == 2)
        for (int64_t i = 0; i < n; i++)
            to[i] = row[2 * i];
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = row[i * step];
}

/* A row of an image, of one channel or all, to its row of the planes of each remainder of columns. */
static void fill_row(const planar *p, const real *row, int64_t channels, real *to)
{
    const pc__conv *s = p->g.s;
    const int64_t step = s->x_planes ? 1 : s->c;
    for (int64_t q = 0; q < PC__MIN(s->sw, s->kw); q++, to += p->plane) {
        const int64_t from = PC__MAX((s->pw - q + s->sw - 1) / s->sw, 0);
        const int64_t end = PC__MIN((s->w + s->pw - q + s->sw - 1) / s->sw, p->across);
        if (from < end)
            spread_row(p, row + (from * s->sw + q - s->pw) * step, step * s->sw, channels, end - from, to + from);
    }
}

/* The planes under `rows` rows of y from row y0: of a channel where planes are read, else of all. */
static void fill(const planar *p, int64_t image, int64_t y0, int64_t rows, real *to, real *room)
{
    const geometry *g = &p->g;
    const pc__conv *s = g->s;
    const int64_t groups = s->x_planes ? s->c : PC__MIN(s->c, 1), together = s->x_planes ? 1 : s->c,
                  row = s->w * together;
    const int64_t top = y0 * s->sh - s->ph, first = PC__MIN(PC__MAX(top, 0), s->h);
    const int64_t end = PC__MAX(PC__MIN(top + (rows - 1) * s->sh + s->kh, s->h), first);
    if (g->padded)
        memset(to, 0, (size_t)p->planes * sizeof(real));
    for (int64_t c = 0; c < groups; c++)
        for (int64_t h = first; h < end; h++) {
            const int64_t r = h - top;
            const void *from = element(g, p->x, ((image * groups + c) * s->h + h) * row);
            if (r % s->sh >= s->kh) /* which no place of the kernel is over */
                continue;
            if (s->half)
                take_reals(g, room, from, row);
            fill_row(p, s->half ? room : from, together,
                     to + (c * s->sh + r % s->sh) * s->sw * p->plane + r / s->sh * p->across);
        }
}

/* Some outputs of a strip to block[output][run]: a tile for each remainder of the kernel's rows and columns. */
static void multiply(const planar *p, const real *planes, int64_t first, int64_t count, int64_t columns, real *block)
{
    const geometry *g = &p->g;
    const pc__conv *s = g->s;
    int vectors = TILE_VECTORS;
    while (vectors > 1 && count > tile_rows[vectors] && count <= tile_rows[vectors - 1])
        vectors--;
    for (int64_t j = 0; j < columns; j += vectors * W)
        for (int64_t r = 0; r < PC__MIN(s->sh, s->kh); r++)
            for (int64_t q = 0; q < PC__MIN(s->sw, s->kw); q++) {
                tile t = {.planes = s->c,
                          .segments = (s->kh - r + s->sh - 1) / s->sh,
                          .k = (s->kw - q + s->sw - 1) / s->sw,
                          .a = p->weight + first * g->out + (r * s->kw + q) * g->tap,
                          .a_row = g->out,
                          .a_k = s->sw * g->tap,
                          .a_segment = s->sh * s->kw * g->tap,
                          .a_plane = g->channel,
                          .b = planes + (r * s->sw + q) * p->plane + j,
                          .b_k = 1,
                          .b_segment = p->across,
                          .b_plane = s->sh * s->sw * p->plane,
                          .c = block + j,
                          .c_row = p->run,
                          .add = r + q > 0};
                tile_rows_run(&t, count, (int)PC__MIN((columns - j + W - 1) / W, vectors));
            }
}

/* Some outputs without the ends of rows, with bias and activation, to where they lie in y. */
static void finish(const planar *p, int64_t image, int64_t y0, int64_t rows, int64_t first, int64_t count,
                   const real *block, real *room)
{
    const geometry *g = &p->g;
    const pc__conv *s = g->s;
    const int64_t places = rows * g->yw, area = g->yh * g->yw;
    for (int64_t o = 0; o < count; o++) {
        real *to = room + o * places;
        const real bias = p->bias ? p->bias[first + o] : 0;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < g->yw; i++)
                to[r * g->yw + i] = block[o * p->run + r * p->across + i] + bias;
        activate(s->activation, to, places);
        if (s->y_planes)
            give_reals(g, (void *)element(g, p->y, (image * s->o + first + o) * area + y0 * g->yw), to, places);
        else if (s->half) /* 16-bit numbers take the first half of their room */
            give_reals(g, (char *)room + o * places * g->size, to, places);
    }
    if (!s->y_planes)
        pc__turn((char *)element(g, p->y, (image * area + y0 * g->yw) * s->o + first), s->o * g->size,
                 (const char *)room, places * g->size, count, places, (size_t)g->size);
}

static void planar_task(void *context, int64_t task)
{
    const planar *p = context;
    const geometry *g = &p->g;
    const int64_t image = task / p->strips, y0 = task % p->strips * p->rows, rows = PC__MIN(p->rows, g->yh - y0);
    real *planes = p->rooms + pc__thread() * p->all, *block = planes + p->planes, *room = block + p->block;
    fill(p, image, y0, rows, planes, room);
    for (int64_t o = 0; o < g->s->o; o += OUTPUTS) {
        const int64_t count = PC__MIN(OUTPUTS, g->s->o - o);
        multiply(p, planes, o, count, (rows - 1) * p->across + g->yw, block);
        finish(p, image, y0, rows, o, count, block, room);
    }
}

/* Sizes of strips, and of what a thread works in; lanes that are dropped read past the planes' end. */
static void cut(planar *p)
{
    const geometry *g = &p->g;
    const pc__conv *s = g->s;
    const int64_t each = s->c * s->sh * s->sw, together = s->x_planes || !s->half ? 1 : s->c,
                  more = (s->kh - 1) / s->sh;
    p->across = g->yw + (s->kw - 1) / s->sw;
    p->rows = PC__MIN(PLACES / p->across, PLANES_MOST / PC__MAX(each * p->across, 1) - more);
    p->rows = PC__MIN(PC__MAX(p->rows, more + 1), g->yh);
    p->strips = (g->yh + p->rows - 1) / p->rows;
    p->rows = (g->yh + p->strips - 1) / p->strips;
    p->plane = (p->rows + more) * p->across;
    p->run = round_up((p->rows - 1) * p->across + g->yw, W);
    p->planes = round_up(each * p->plane + TILE_WIDTH, W);
    p->block = OUTPUTS * p->run;
    p->all = p->planes + p->block + round_up(PC__MAX(OUTPUTS * p->rows * g->yw, s->w * together), W);
}

pc_status PC__R(conv2d_planar)(const pc__conv *s, const void *x, const void *weight, const void *bias, void *y)
{
    planar p = {.g = geometry_of(s), .x = x, .y = y, .weight = weight, .bias = bias};
    if (s->n * p.g.yh * p.g.yw * s->o == 0)
        return PC_OK;
    cut(&p);
    const int threads = pc__threads(2 * s->n * p.g.yh * p.g.yw * s->o * p.g.out);
    const int64_t weights = s->half ? round_up(s->o * p.g.out + s->o, W) : 0;
    real *slab = pc__alloc_aligned((size_t)(weights + threads * p.all) * sizeof(real), 64);
    if (!slab)
        return PC_ERR_MEMORY;
    p.rooms = slab + weights;
    if (s->half) {
        take_reals(&p.g, slab, weight, s->o * p.g.out);
        if (bias)
            take_reals(&p.g, slab + s->o * p.g.out, bias, s->o);
        p.weight = slab, p.bias = bias ? slab + s->o * p.g.out : NULL;
    }
    pc__parallel(threads, s->n * p.strips, planar_task, &p);
    pc__free(slab);
    return PC_OK;
}
