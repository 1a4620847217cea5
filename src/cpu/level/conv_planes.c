/* conv_planes.c: convolutions forward and back to the pictures by planes (planar.h). */
#include "cpu/level/depthwise.h"
#include "cpu/level/micro.h"
#include "cpu/level/planar.h"
#include "cpu/level/turn.h"
#include "base/parallel.h"

typedef struct planar {
    const pc__grouped *s;
    geometry g;
    planar_side in;
    bool back, out_planes;
    const real *weight, *bias; /* as they lie; of each output, or NULL */
    void *y;
    int64_t from, to;                 /* channels that a group reads and makes */
    int64_t next_from, next_to;       /* in weight, from one of these to the next, */
    int64_t tap, next_group;          /* one tap, one group */
    int64_t groups, blocks;           /* that are done together; how many such blocks */
    int64_t outputs;                  /* of a block that are finished together */
    int64_t rows, strips, run;        /* of each lot in a strip; numbers that are computed of a plane, whole vectors */
    int64_t planes, block, room, all; /* reals of each */
    real *rooms;                      /* of each thread: planes, results, results without the ends of rows or a row */
} planar;

/* As many vectors of columns as leave most rows to a tile, if it is full then. */
static int vectors_for(int64_t rows)
{
    int vectors = TILE_VECTORS;
    while (vectors > 1 && rows > tile_rows[vectors] && rows <= tile_rows[vectors - 1])
        vectors--;
    return vectors;
}

#ifndef PC__DOUBLE
enum { ALONE = 8 }; /* vectors of a row that is made alone: as many sums as keep the multipliers busy */

/* A tile of one row and one plane. */
INLINE void alone_run(const tile *t, const int vectors)
{
    vec sum[ALONE];
    UNROLL for (int v = 0; v < vectors; v++) sum[v] = t->add ? (vec)LOAD(t->c + v * W) : (vec){0};
    for (int64_t s = 0; s < t->segments; s++) {
        const real *a = t->a + s * t->a_segment, *b = t->b + s * t->b_segment;
        for (int64_t k = t->k; k > 0; k--, a += t->a_k, b += t->b_k)
            UNROLL for (int v = 0; v < vectors; v++) sum[v] += *a * LOAD(b + v * W);
    }
    UNROLL for (int v = 0; v < vectors; v++) AT(t->c + v * W) = sum[v];
}

/* Any number of columns, in tiles of about the same width. */
static void alone_columns(tile *t, int64_t columns)
{
    const int64_t all = (columns + W - 1) / W, tiles = (all + ALONE - 1) / ALONE;
    for (int64_t done = 0, i = 0, many; i < tiles; i++, done += many, t->b += many * W, t->c += many * W) {
        many = all * (i + 1) / tiles - done;
        switch (many) {
        case 1:
            alone_run(t, 1);
            break;
        case 2:
            alone_run(t, 2);
            break;
        case 3:
            alone_run(t, 3);
            break;
        case 4:
            alone_run(t, 4);
            break;
        case 5:
            alone_run(t, 5);
            break;
        case 6:
            alone_run(t, 6);
            break;
        case 7:
            alone_run(t, 7);
            break;
        default:
            alone_run(t, ALONE);
        }
    }
}

#endif

/* Some taps of some outputs of a block of groups, group by group. */
static void multiply_taps(const planar *p, tile *t, const real *weight, const real *planes, int64_t group,
                          int64_t first, int64_t count, int64_t columns, real *block)
{
    const int64_t next = planar_numbers(&p->in);
    weight += (group + first / p->to) * p->next_group + first % p->to * p->next_to;
    planes += first / p->to * p->from * next;
    int64_t n = PC__MIN(p->to - first % p->to, count);
    for (; count > 0; planes += p->from * next, weight += p->next_group, block += n * p->run, count -= n) {
        n = PC__MIN(n, count);
#ifndef PC__DOUBLE
        if (n == 1 && t->planes == 1) {
            t->a = weight, t->b = planes, t->c = block;
            alone_columns(t, columns);
            continue;
        }
#endif
        const int vectors = vectors_for(n);
        for (int64_t j = 0; j < columns; j += vectors * W) {
            const int many = (int)PC__MIN((columns - j + W - 1) / W, vectors);
            t->a = weight, t->b = planes + j, t->c = block + j;
            if (n <= tile_rows[many])
                tile_functions[many][n](t);
            else
                tile_rows_run(t, n, many);
        }
    }
}

/* Some outputs of a block of groups, of one lot, to block[output][run]: a tile for each class of the kernel's rows and columns. */
static void multiply(const planar *p, const real *planes, int64_t group, int64_t first, int64_t count, int64_t down,
                     int64_t right, int64_t columns, real *block)
{
    bool add = false;
    planar_taps h, w;
    for (int64_t i = 0; planar_taps_at(&p->in.down, down, i, &h); i++)
        for (int64_t k = 0; planar_taps_at(&p->in.right, right, k, &w); k++, add = true) {
            tile t = {.planes = p->from,
                      .segments = h.count,
                      .k = w.count,
                      .a_row = p->next_to,
                      .a_k = w.step * p->tap,
                      .a_segment = h.step * p->s->kw * p->tap,
                      .a_plane = p->next_from,
                      .b_k = w.next,
                      .b_segment = h.next * p->in.across,
                      .b_plane = planar_numbers(&p->in),
                      .c_row = p->run,
                      .add = add};
            multiply_taps(p, &t, p->weight + (h.first * p->s->kw + w.first) * p->tap,
                          planes + (h.lot * p->in.right.lots + w.lot) * p->in.plane + h.at * p->in.across + w.at, group,
                          first, count, columns, block);
        }
    if (!add)
        memset(block, 0, (size_t)(count * p->run) * sizeof *block);
}

/* Bias and activation of one output. */
static void finish_lot(const planar *p, int64_t output, real *block)
{
    if (p->bias) {
        const vec bias = SPLAT(p->bias[output]);
        for (int64_t i = 0; i < p->run; i += W)
            AT(block + i) = LOAD(block + i) + bias;
    }
    activate(p->s->activation, block, p->run);
}

/* to[2 * i] = even[i], to[2 * i + 1] = odd[i] for `n` numbers in all. */
static void interleave(real *restrict to, const real *restrict even, const real *restrict odd, int64_t n)
{
    for (int64_t i = 0; i < n / 2; i++)
        to[2 * i] = even[i], to[2 * i + 1] = odd[i];
    if (n % 2)
        to[n - 1] = even[n / 2];
}

/* The lots of one output that make rows `down` of y, `next` numbers apart, without the ends of rows, to rows of places. */
static void gather(const planar *p, int64_t row, int64_t rows, int64_t down, const real *block, int64_t next, real *to)
{
    const planar_axis *h = &p->in.down, *w = &p->in.right;
    const int64_t step = w->out_lots, end = PC__MIN((row + rows) * h->out_lots, h->out);
    to += down * w->out;
    if (h->out_lots == 1 && step == 1) {
        planar_copy(block, p->in.across, to, w->out, end - row, w->out);
        return;
    }
    for (int64_t r = row * h->out_lots + down; r < end;
         r += h->out_lots, block += p->in.across, to += h->out_lots * w->out)
        if (step == 2)
            interleave(to, block, block + next, w->out);
        else
            for (int64_t right = 0; right < PC__MIN(step, w->out); right++)
                for (int64_t i = 0; i < (w->out - right + step - 1) / step; i++)
                    to[right + i * step] = block[right * next + i];
}

/* A strip of some outputs to where they lie in y. */
static void finish(const planar *p, int64_t image, int64_t first, int64_t count, int64_t row, int64_t rows, real *block,
                   real *room)
{
    const geometry *g = &p->g;
    const planar_axis *h = &p->in.down, *w = &p->in.right;
    const int64_t all = p->s->groups * p->to, area = h->out * w->out, top = row * h->out_lots;
    const int64_t places = PC__MIN(rows * h->out_lots, h->out - top) * w->out;
    for (int64_t o = 0; o < count; o++) {
        char *y = (char *)p->y + ((image * all + first + o) * area + top * w->out) * g->size;
        real *to = p->out_planes && !p->s->half ? (real *)(void *)y : room + (o + p->s->half) * places;
        for (int64_t down = 0; down < h->out_lots; down++) {
            real *lots = block + (down * w->out_lots * p->outputs + o) * p->run;
            for (int64_t right = 0; right < w->out_lots; right++)
                finish_lot(p, first + o, lots + right * p->outputs * p->run);
            gather(p, row, rows, down, lots, p->outputs * p->run, to);
        }
        if (p->s->half) /* in front of the numbers that they are made of */
            give_reals(g, p->out_planes ? y : (char *)room + o * places * g->size, to, places);
    }
    if (!p->out_planes)
        pc__turn((char *)p->y + ((image * area + top * w->out) * all + first) * g->size, all * g->size,
                 (const char *)room, places * g->size, count, places, (size_t)g->size);
}

static void strip_task(void *context, int64_t task)
{
    const planar *p = context;
    const planar_axis *h = &p->in.down, *w = &p->in.right;
    const int64_t strip = task % p->strips, group = task / p->strips % p->blocks * p->groups,
                  image = task / p->strips / p->blocks;
    const int64_t row = strip * p->rows, rows = PC__MIN(p->rows, h->made - row);
    const int64_t groups = PC__MIN(p->groups, p->s->groups - group), columns = (rows - 1) * p->in.across + w->made;
    real *planes = p->rooms + pc__thread() * p->all, *block = planes + p->planes, *room = block + p->block;
    planar_fill(&p->g, &p->in, image, group * p->from, groups * p->from, row, rows + h->reach, planes, room);
    for (int64_t o = 0, count; o < groups * p->to; o += count) {
        count = PC__MIN(p->outputs, groups * p->to - o);
        for (int64_t lot = 0; lot < h->out_lots * w->out_lots; lot++)
            multiply(p, planes, group, o, count, lot / w->out_lots, lot % w->out_lots, columns,
                     block + lot * p->outputs * p->run);
        finish(p, image, group * p->to + o, count, row, rows, block, room);
    }
}

/* Sizes of strips, and of what a thread works in; lanes that are dropped read past the planes' end. */
static void cut(planar *p)
{
    const planar_axis *h = &p->in.down, *w = &p->in.right;
    const int64_t lots = h->out_lots * w->out_lots, each = p->from * h->lots * w->lots;
    p->in.across = w->made + w->reach;
    p->groups = PC__MAX(PC__MIN(PLANAR_OUTPUTS / p->to, p->s->groups), 1);
    if (p->in.planes && p->out_planes) /* which gain nothing side by side */
        p->groups = PC__MAX(PC__MIN(p->groups, PLANAR_PLANES_CLOSE / 2 / PC__MAX(each * h->made * p->in.across, 1)), 1);
    p->blocks = (p->s->groups + p->groups - 1) / p->groups;
    p->outputs = PC__MIN(p->groups * p->to, p->groups > 1 ? PLANAR_OUTPUTS / p->to * p->to : PLANAR_OUTPUTS);
    const int64_t places =
        PC__MAX(PLANAR_PLACES, PC__MIN(8 * PLANAR_PLACES, PLANAR_PLANES_CLOSE / (p->outputs * lots)));
    p->rows = planar_rows(h, p->in.across, each * p->groups, places, PLANAR_PLANES_MOST);
    p->strips = (h->made + p->rows - 1) / p->rows;
    p->rows = (h->made + p->strips - 1) / p->strips;
    p->in.plane = (p->rows + h->reach) * p->in.across;
    p->run = round_up((p->rows - 1) * p->in.across + w->made, W);
    p->planes = round_up(each * p->groups * p->in.plane + TILE_WIDTH, W);
    p->block = lots * p->outputs * p->run;
    p->room = round_up(PC__MAX((p->outputs + p->s->half) * p->rows * h->out_lots * w->out,
                               planar_room(&p->in, p->groups * p->from, p->rows + h->reach)),
                       W);
    p->all = p->planes + p->block + p->room;
}

static pc_status run(planar *p, const void *x, const void *weight, const void *bias)
{
    const pc__grouped *s = p->s;
    const pc__conv kind = planar_kind(s);
    const bool back = p->back;
    const int64_t taps = s->kh * s->kw, c = s->c / s->groups, o = s->o / s->groups;
    p->g = (geometry){.s = &kind, .size = s->half ? 2 : (int64_t)sizeof(real)};
    p->in = (planar_side){.data = x,
                          .planes = back ? s->y_planes || s->o == 1 : s->x_planes || s->c == 1,
                          .channels = back ? s->o : s->c,
                          .down = planar_axis_of(s->h, s->oh, s->kh, s->sh, s->ph, s->dh, back),
                          .right = planar_axis_of(s->w, s->ow, s->kw, s->sw, s->pw, s->dw, back)};
    p->out_planes = back ? s->x_planes : s->y_planes;
    p->from = back ? o : c, p->to = back ? c : o;
    const int64_t channel = s->weights_last ? 1 : taps;
    p->next_from = back ? c * taps : channel, p->next_to = back ? channel : c * taps;
    p->tap = s->weights_last ? c : 1, p->next_group = o * c * taps;
    if (s->n * p->to * p->in.down.out * p->in.right.out == 0)
        return PC_OK;
    cut(p);
    const int threads = pc__threads(2 * s->n * s->oh * s->ow * s->o * c * taps);
    const int64_t weights = s->half ? round_up(s->o * c * taps + s->o, W) : 0, rooms = threads * p->all;
    real *slab = pc__alloc_aligned((size_t)(weights + rooms) * sizeof(real), 64);
    if (!slab)
        return PC_ERR_MEMORY;
    p->rooms = slab + weights;
    for (int i = 0; i < threads; i++)
        memset(p->rooms + i * p->all, 0, (size_t)p->planes * sizeof(real));
    p->weight = weight, p->bias = bias;
    if (s->half) {
        take_reals(&p->g, slab, weight, s->o * c * taps);
        if (bias)
            take_reals(&p->g, slab + s->o * c * taps, bias, s->o);
        p->weight = slab, p->bias = bias ? slab + s->o * c * taps : NULL;
    }
    pc__parallel(threads, s->n * p->strips * p->blocks, strip_task, p);
    pc__free(slab);
    return PC_OK;
}

pc_status PC__R(planes)(const pc__grouped *s, const void *x, const void *weight, const void *bias, void *y)
{
#ifndef PC__DOUBLE
    if (pc__depthwise_turns(s, false))
        return PC__R(depthwise_turned_run)(s, x, weight, false, bias, y);
#endif
    return run(&(planar){.s = s, .y = y}, x, weight, bias);
}

pc_status PC__R(planes_input)(const pc__grouped *s, const void *weight, const void *dy, void *dx)
{
#ifndef PC__DOUBLE
    if (pc__depthwise_turns(s, true)) {
        const pc__grouped t = PC__R(depthwise_turned)(s);
        return PC__R(depthwise_turned_run)(&t, dy, weight, true, NULL, dx);
    }
#endif
    return run(&(planar){.s = s, .y = dx, .back = true}, dy, weight, NULL);
}

static pc__grouped whole(const pc__conv *s)
{
    return (pc__grouped){.n = s->n,
                         .h = s->h,
                         .w = s->w,
                         .c = s->c,
                         .o = s->o,
                         .kh = s->kh,
                         .kw = s->kw,
                         .oh = pc__conv_oh(s),
                         .ow = pc__conv_ow(s),
                         .sh = s->sh,
                         .sw = s->sw,
                         .ph = s->ph,
                         .pw = s->pw,
                         .dh = 1,
                         .dw = 1,
                         .groups = 1,
                         .half = s->half,
                         .is_f16 = s->is_f16,
                         .x_planes = s->x_planes,
                         .y_planes = s->y_planes,
                         .weights_last = s->weights_last,
                         .activation = s->activation};
}

pc_status PC__R(conv2d_planar)(const pc__conv *s, const void *x, const void *weight, const void *bias, void *y)
{
    const pc__grouped all = whole(s);
    return PC__R(planes)(&all, x, weight, bias, y);
}

pc_status PC__R(conv2d_planar_input)(const pc__conv *s, const void *weight, const void *dy, void *dx)
{
    pc__grouped all = whole(s);
    all.x_planes = all.y_planes = false;
    all.activation = PC__ACT_NONE;
    return PC__R(planes_input)(&all, weight, dy, dx);
}

#ifndef PC__DOUBLE
pc_status PC__R(conv2d_planar_weights)(const pc__conv *s, const void *x, const void *y, const void *dy, void *dweight,
                                       void *dbias)
{
    const pc__grouped all = whole(s);
    return PC__R(planes_weights)(&all, x, y, dy, dweight, dbias);
}
#endif
