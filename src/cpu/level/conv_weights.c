/* conv_weights.c: weight and bias gradients of the fused convolution. Two ways, chosen by sizes alone: dense() spreads
 * the gradient over the unpooled output and multiplies it all; sparse() lists, for each output channel, the places
 * that carry any gradient (one of pool x pool at most, and none that a ReLU cut) and gathers the input under them. */
#include "cpu/level/conv.h"
#include "cpu/level/gather.h"
#include "cpu/level/micro.h"
#include "cpu/level/turn.h"
#include "base/parallel.h"

#define INPUT_BYTES 24576    /* input rows under a strip of y, which should stay in the first-level cache */
#define GRADIENT_BYTES 24576 /* the gradient spread over a strip, likewise */
#define LISTED_OUTPUTS 16    /* output channels that are listed together: a cache line of dy */
#define LISTED_BYTES 16384   /* their items under a strip */
#define SUMS_WANTED 131072   /* elements of the sums of all chunks, between the limits below */
#define TASKS_LEAST 16
#define CHUNKS_MOST 32

typedef struct weights {
    geometry g;
    const void *x;
    const real *y, *dy;
    int64_t pixel; /* distance of pixels of y and dy */
    const uint8_t *argmax;
    bool dense;
    bool copying;           /* input goes through a padded copy that may be read past its end */
    int64_t outputs;        /* of a task */
    int64_t tasks;          /* for each chunk */
    int64_t strip;          /* rows of y worked on at once */
    int64_t chunks, images; /* of a chunk */
    int64_t width;          /* sparse: g.run rounded up to vectors */
    gather_shape shape;
    int64_t size; /* elements of one task's sums */
    real *sums;   /* [chunk][task], dense: [kh][run][outputs], sparse: [outputs][kh][width] */
    real *bias;   /* [chunk][task][outputs] */
} weights;

/* What a thread works in. */
typedef struct room {
    real *input;    /* copy of the input under a strip */
    real *gradient; /* dense: [rows * pool][yw * pool][outputs] */
    real *dy, *y;   /* 16-bit: taken from under a strip, [rows * yw][outputs] */
    real *weight;   /* sparse: [rows * yw][outputs], with its offset */
    pc__lane_int *offset;
    item *list; /* those of one output that are not zero */
} room;

/* The gradient behind a vector of outputs of one pixel, before the activation; `left` of them are there. */
INLINE vec gradient_at(const weights *w, const pc__activation activation, int64_t at, int64_t left)
{
    const vec dy = load_some(w->dy + at, left);
    return activation == PC__ACT_NONE ? dy : vector_gradient(activation, dy, load_some(w->y + at, left));
}

/* The gradient of a pixel to the places of its window, of which all but the maximum's become zero. */
INLINE void spread_pixel(const weights *w, const int pool, vec value, int64_t at, int64_t left, real *to)
{
    const int64_t right = w->outputs, down = w->g.yw * w->g.pool * w->outputs;
    if (pool == 1) {
        AT(to) = value;
    } else if (pool == 2) {
        const lanes place = load_bytes(w->argmax + at, left);
        AT(to) = where(place == 0, value);
        AT(to + right) = where(place == 1, value);
        AT(to + down) = where(place == 2, value);
        AT(to + down + right) = where(place == 3, value);
    } else {
        for (int64_t q = 0; q < w->g.pool * w->g.pool; q++)
            AT(to + q / w->g.pool * down + q % w->g.pool * right) = (vec){0};
        for (int64_t j = 0; j < PC__MIN(left, W); j++) {
            const int64_t q = w->argmax[at + j];
            to[q / w->g.pool * down + q % w->g.pool * right + j] = value[j];
        }
    }
}

INLINE void spread_as(const weights *w, const pc__activation activation, const int pool, int64_t at, int64_t count,
                      real *to, real *bias)
{
    for (int64_t j = 0; j < count; j += W) {
        vec sum = LOAD(bias + j);
        for (int64_t i = 0; i < w->g.yw; i++) {
            const int64_t from = at + i * w->pixel + j;
            const vec value = gradient_at(w, activation, from, count - j);
            spread_pixel(w, pool, value, from, count - j, to + i * w->g.pool * w->outputs + j);
            sum += value;
        }
        AT(bias + j) = sum;
    }
}

/* A row of y, from output `at`, spread over `pool` rows of the gradient; bias gets its sum. */
static void spread(const weights *w, int64_t at, int64_t count, real *to, real *bias)
{
    const pc__activation activation = w->g.s->activation;
    if (w->g.pool == 2 && activation == PC__ACT_RELU)
        spread_as(w, PC__ACT_RELU, 2, at, count, to, bias);
    else if (w->g.pool == 1)
        spread_as(w, activation, 1, at, count, to, bias);
    else
        spread_as(w, activation, 0, at, count, to, bias);
}

/* bias += the sum of `pixels` pixels of dy, whole vectors. */
static void add_rows(const weights *w, int64_t at, int64_t pixels, int64_t count, real *bias)
{
    for (int64_t j = 0; j < count; j += W) {
        vec sum = LOAD(bias + j);
        for (int64_t i = 0; i < pixels; i++)
            sum += LOAD(w->dy + at + i * w->pixel + j);
        AT(bias + j) = sum;
    }
}

/* Of `rows` rows of the convolution from row `y`, those under which row kh of the kernel lies on the picture, not on padding. */
static void rows_inside(const pc__conv *s, int64_t y, int64_t rows, int64_t kh, int64_t *from, int64_t *end)
{
    const int64_t above = PC__MAX(s->ph - kh, 0), below = s->h + s->ph - kh;
    *from = PC__MIN(PC__MAX((above + s->sh - 1) / s->sh - y, 0), rows);
    *end = PC__MAX(PC__MIN((below + s->sh - 1) / s->sh - y, rows), *from);
}

/* dy is read where it lies, whole vectors, whose lanes behind the outputs are the next pixel's and come to nothing. Not where there is
 * none behind it; rows that were taken from 16 bits have room. */
static bool is_straight(const weights *w, int64_t at, int64_t rows, int64_t count)
{
    const pc__conv *s = w->g.s;
    const int64_t end = at + rows * w->g.yw * w->pixel, all = s->n * w->g.yh * w->g.yw * s->o;
    return w->g.pool == 1 && s->activation == PC__ACT_NONE && (s->half || count % W == 0 || end + W <= all);
}

/* A strip of an image from row `y` times the gradient spread over it, for outputs [o, o + count). */
static void dense_strip(const weights *w, const room *r, const real *input, int64_t y, int64_t at, int64_t rows,
                        int64_t count, real *sums, real *bias)
{
    const geometry *g = &w->g;
    const pc__conv *s = g->s;
    const int64_t pixels = g->yw * g->pool, step = g->pool * pixels * w->outputs;
    const int vectors = (int)((count + W - 1) / W);
    const bool straight = is_straight(w, at, rows, count);
    if (straight)
        add_rows(w, at, rows * g->yw, count, bias);
    for (int64_t i = 0; !straight && i < rows; i++)
        spread(w, at + i * g->yw * w->pixel, count, r->gradient + i * step, bias);
    const int64_t pixel = straight ? w->pixel : w->outputs;
    for (int64_t kh = 0; sums && kh < s->kh; kh++) {
        int64_t from, end;
        rows_inside(s, y * g->pool, rows * g->pool, kh, &from, &end);
        tile t = {.planes = 1,
                  .segments = end - from,
                  .k = pixels,
                  .a = input + (from * s->sh + kh) * g->row,
                  .a_row = 1,
                  .a_k = s->sw * s->c,
                  .a_segment = s->sh * g->row,
                  .b = (straight ? w->dy + at : r->gradient) + from * pixels * pixel,
                  .b_k = pixel,
                  .b_segment = pixels * pixel,
                  .c = sums + kh * g->run * w->outputs,
                  .c_row = w->outputs,
                  .add = true};
        tile_rows_run(&t, g->run, vectors);
    }
}

/* Weight and offset of every output of a block for a row of y, side by side: [pixel][outputs]. */
INLINE void stage_as(const weights *w, const pc__activation activation, const int pool, int64_t at, int64_t row,
                     int64_t count, real *weight, pc__lane_int *offset, real *bias)
{
    const geometry *g = &w->g;
    const pc__lane_int right = (pc__lane_int)(g->s->sw * g->s->c), down = (pc__lane_int)(g->s->sh * g->row);
    const pc__lane_int first = (pc__lane_int)(first_input_row(g, row) * g->row), next = (pc__lane_int)g->pool * right;
    for (int64_t j = 0; j < count; j += W) {
        vec sum = LOAD(bias + j);
        for (int64_t i = 0; i < g->yw; i++) {
            const int64_t from = at + i * g->s->o + j, to = i * w->outputs + j;
            const pc__lane_int corner = first + (pc__lane_int)i * next;
            const vec value = gradient_at(w, activation, from, count - j);
            const lanes place = load_bytes(w->argmax + from, count - j);
            AT(weight + to) = value;
            sum += value;
            if (pool == 2)
                *(lanes_in_memory *)(offset + to) = corner + (place >> 1) * down + (place & 1) * right;
            else
                for (int lane = 0; lane < W; lane++)
                    offset[to + lane] = corner + (pc__lane_int)place_offset(g, place[lane]);
        }
        AT(bias + j) = sum;
    }
}

static void stage(const weights *w, const room *r, int64_t at, int64_t rows, int64_t count, real *bias)
{
    const int64_t step = w->g.yw * w->outputs;
    for (int64_t i = 0; i < rows; i++, at += w->g.yw * w->g.s->o)
        if (w->g.pool == 2 && w->g.s->activation == PC__ACT_RELU)
            stage_as(w, PC__ACT_RELU, 2, at, i, count, r->weight + i * step, r->offset + i * step, bias);
        else
            stage_as(w, w->g.s->activation, 0, at, i, count, r->weight + i * step, r->offset + i * step, bias);
}

/* The items of one output that are not zero. */
static int64_t list_output(const real *weight, const pc__lane_int *offset, int64_t pixels, int64_t outputs, item *list)
{
    int64_t n = 0;
    for (int64_t i = 0; i < pixels; i++, weight += outputs, offset += outputs) {
        list[n].weight = *weight;
        list[n].offset = *offset;
        n += *weight != 0;
    }
    return n;
}

static void sparse_strip(const weights *w, const room *r, const real *input, int64_t at, int64_t rows, int64_t count,
                         real *sums, real *bias)
{
    const geometry *g = &w->g;
    const int64_t pixels = rows * g->yw;
    stage(w, r, at, rows, count, bias);
    for (int64_t j = 0; sums && j < count; j++) {
        gather sum = {.items = r->list,
                      .from = input,
                      .from_row = g->row,
                      .to = sums + j * g->s->kh * w->width,
                      .to_row = w->width};
        sum.count = list_output(r->weight + j, r->offset + j, pixels, w->outputs, r->list);
        gather_all(sum, &w->shape);
    }
}

/* One strip of an image, from row y, for outputs [o, o + count). */
static void strip_run(const weights *w, const room *r, int64_t image, int64_t y, int64_t o, int64_t count, real *sums,
                      real *bias)
{
    const geometry *g = &w->g;
    const pc__conv *s = g->s;
    const int64_t rows = PC__MIN(w->strip, g->yh - y), at = (image * g->yh + y) * g->yw * s->o + o;
    const int64_t start = image * s->h * s->w * s->c;
    const real *input = r->input;
    if (sums && w->copying)
        copy_padded(g, element(g, w->x, start), PC__ACT_NONE, NULL, first_input_row(g, y), input_rows(g, rows),
                    r->input);
    else
        input = (const real *)w->x + start + first_input_row(g, y) * g->row;
    if (s->half) {
        weights taken = *w;
        for (int64_t i = 0; i < rows * g->yw; i++) {
            take_reals(g, r->dy + i * w->pixel, element(g, w->dy, at + i * s->o), count);
            if (s->activation != PC__ACT_NONE)
                take_reals(g, r->y + i * w->pixel, element(g, w->y, at + i * s->o), count);
        }
        taken.dy = r->dy, taken.y = r->y;
        dense_strip(&taken, r, input, y, 0, rows, count, sums, bias);
    } else if (w->dense) {
        dense_strip(w, r, input, y, at, rows, count, sums, bias);
    } else {
        sparse_strip(w, r, input, at, rows, count, sums, bias);
    }
}

/* Sums of one chunk of images for one block of outputs. */
static void task_run(const weights *w, int64_t task, const room *r)
{
    const int64_t o = task % w->tasks * w->outputs, count = PC__MIN(w->outputs, w->g.s->o - o);
    const int64_t from = task / w->tasks * w->images, to = PC__MIN(from + w->images, w->g.s->n);
    real *sums = w->sums ? w->sums + task * w->size : NULL, *bias = w->bias + task * w->outputs;
    memset(bias, 0, (size_t)w->outputs * sizeof(real));
    if (sums)
        memset(sums, 0, (size_t)w->size * sizeof(real));
    for (int64_t image = from; image < to; image++)
        for (int64_t y = 0; y < w->g.yh; y += w->strip)
            strip_run(w, r, image, y, o, count, sums, bias);
}

/* The sums of all chunks of one task to those of its first, always in the order of the chunks. */
static void add_chunks(const weights *w, int64_t task)
{
    for (int64_t c = 1; c < w->chunks; c++) {
        const int64_t at = c * w->tasks + task;
        for (int64_t i = 0; i < w->outputs; i++)
            w->bias[task * w->outputs + i] += w->bias[at * w->outputs + i];
        for (int64_t i = 0; w->sums && i < w->size; i += W)
            AT(w->sums + task * w->size + i) += LOAD(w->sums + at * w->size + i);
    }
}

/* The gradient of one output's weights, [kh][kw][c] at `from` and then in their order. */
static void give_weights(const weights *w, const real *from, real *space, void *to)
{
    const geometry *g = &w->g;
    const pc__conv *s = g->s;
    const int64_t size = sizeof(real), area = s->kh * s->kw;
    if (!s->weights_last)
        pc__turn((char *)space, area * size, (const char *)from, s->c * size, area, s->c, sizeof(real));
    give_reals(g, to, s->weights_last ? from : space, g->out);
}

/* dweight and dbias of a task's outputs; there is space for the weights of all of them, and of one. */
static void reduce(const weights *w, int64_t task, real *space, void *dweight, void *dbias)
{
    const geometry *g = &w->g;
    const int64_t first = task * w->outputs, count = PC__MIN(w->outputs, g->s->o - first), size = sizeof(real);
    add_chunks(w, task);
    if (dbias)
        give_reals(g, (void *)element(g, dbias, first), w->bias + first, count);
    if (!dweight)
        return;
    const real *sums = w->sums + task * w->size;
    real *one = space + w->outputs * g->out;
    if (w->dense)
        pc__turn((char *)space, g->out * size, (const char *)sums, w->outputs * size, g->out, count, sizeof(real));
    for (int64_t o = 0; o < count; o++) {
        for (int64_t kh = 0; !w->dense && kh < g->s->kh; kh++)
            memcpy(space + o * g->out + kh * g->run, sums + (o * g->s->kh + kh) * w->width,
                   (size_t)g->run * sizeof(real));
        give_weights(w, space + o * g->out, one, (void *)element(g, dweight, (first + o) * g->out));
    }
}

/* How the work is cut and which way it goes. Dense for what was not pooled, and for kernels so small that lists cost
 * more than the zeros. */
static void plan(weights *w)
{
    const geometry *g = &w->g;
    const pc__conv *s = g->s;
    w->width = round_up(g->run, W);
    w->shape = gather_shape_of(s->kh, w->width / W);
    w->dense = g->pool == 1 || s->kh * w->width <= 4 * W;
    w->copying = g->padded || s->half || (!w->dense && w->width != g->run);
    w->outputs = w->dense ? round_up(PC__MAX(PC__MIN(s->o, TILE_WIDTH), 1), W) : LISTED_OUTPUTS;
    w->pixel = s->half ? w->outputs : s->o;
    w->tasks = (s->o + w->outputs - 1) / w->outputs;
    w->size = w->dense ? s->kh * g->run * w->outputs : w->outputs * s->kh * w->width;
    w->chunks = PC__MAX(SUMS_WANTED / PC__MAX(w->tasks * w->size, 1), TASKS_LEAST / PC__MAX(w->tasks, 1));
    w->chunks = PC__MIN(w->chunks, CHUNKS_MOST);
    w->chunks = PC__MAX(PC__MIN(w->chunks, s->n), 1);
    w->images = (s->n + w->chunks - 1) / w->chunks;
    const int64_t input = g->pool * s->sh * g->row * (int64_t)sizeof(real);
    const int64_t other =
        g->yw * w->outputs * (w->dense ? g->pool * g->pool * (int64_t)sizeof(real) : (int64_t)sizeof(item));
    w->strip = PC__MIN(INPUT_BYTES / PC__MAX(input, 1), (w->dense ? GRADIENT_BYTES : LISTED_BYTES) / PC__MAX(other, 1));
    w->strip = PC__MAX(PC__MIN(w->strip, g->yh), 1);
}

/* Bytes of each part of a thread's room, multiples of 64. */
typedef struct room_sizes {
    int64_t input, gradient, taken, staged, list, all;
} room_sizes;

static room_sizes sizes_of(const weights *w)
{
    const geometry *g = &w->g;
    const pc__conv *s = g->s;
    const int64_t pixels = w->strip * g->yw, copy = input_rows(g, w->strip) * g->row + w->width;
    room_sizes z = {0};
    z.input = w->copying ? round_up(copy * (int64_t)sizeof(real), 64) : 0;
    z.gradient = w->dense ? round_up(pixels * g->pool * g->pool * w->outputs * (int64_t)sizeof(real), 64) : 0;
    z.staged = w->dense ? 0 : round_up(pixels * w->outputs * (int64_t)sizeof(real), 64);
    z.list = w->dense ? 0 : round_up((pixels + 1) * (int64_t)sizeof(item), 64);
    z.taken = s->half ? z.gradient : 0;
    z.all = z.input + z.gradient + 2 * z.taken + 2 * z.staged + z.list;
    z.all = PC__MAX(z.all, round_up((w->outputs + 1) * g->out * (int64_t)sizeof(real), 64)); /* or what reduce needs */
    return z;
}

static room room_at(char *at, const room_sizes *z)
{
    room r = {.input = (real *)at, .gradient = (real *)(at + z->input)};
    r.dy = (real *)(at + z->input + z->gradient);
    r.y = (real *)(at + z->input + z->gradient + z->taken);
    at += z->input + z->gradient + 2 * z->taken;
    r.weight = (real *)at;
    r.offset = (pc__lane_int *)(at + z->staged);
    r.list = (item *)(at + 2 * z->staged);
    return r;
}

/* What the tasks of one call share; each thread has a room of z->all bytes. */
typedef struct reducing {
    weights *w;
    const room_sizes *z;
    char *rooms;
    void *dweight, *dbias;
} reducing;

static void run_task(void *context, int64_t task)
{
    const reducing *r = context;
    const room mine = room_at(r->rooms + pc__thread() * r->z->all, r->z);
    task_run(r->w, task, &mine);
}

static void reduce_task(void *context, int64_t task)
{
    const reducing *r = context;
    reduce(r->w, task, (real *)(r->rooms + pc__thread() * r->z->all), r->dweight, r->dbias);
}

pc_status PC__R(conv2d_weights)(const pc__conv *s, const void *x, const void *y, const uint8_t *argmax, const void *dy,
                                void *dweight, void *dbias)
{
    weights w = {.g = geometry_of(s), .x = x, .y = y, .dy = dy};
    w.argmax = w.g.pool > 1 ? argmax : NULL;
    plan(&w);
    const room_sizes z = sizes_of(&w);
    const int64_t tasks = w.chunks * w.tasks, bias = round_up(tasks * w.outputs, W),
                  sums = dweight ? w.size * tasks : 0;
    const int64_t shared = round_up((bias + sums) * (int64_t)sizeof(real), 64);
    const int threads = pc__threads(2 * s->n * w.g.yh * w.g.yw * s->o * (dweight ? s->kh * w.width : 1));
    char *slab = pc__alloc_aligned((size_t)(shared + threads * z.all), 64);
    if (!slab)
        return PC_ERR_MEMORY;
    w.bias = (real *)slab;
    w.sums = dweight ? w.bias + bias : NULL;
    memset(slab + shared, 0, (size_t)(threads * z.all)); /* lanes past the ends are read, and their sums dropped */
    reducing r = {&w, &z, slab + shared, dweight, dbias};
    pc__parallel(threads, tasks, run_task, &r);
    pc__parallel(threads, w.tasks, reduce_task, &r);
    pc__free(slab);
    return PC_OK;
}
