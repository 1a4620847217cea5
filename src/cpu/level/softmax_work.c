/* softmax_work.c: how softmax is cut into tasks, and how their numbers come and go. */
#include "cpu/level/softmax_work.h"

#include "cpu/level/halves.h"
#include "cpu/level/turn.h"
#include "ops/softmax.h"

enum {
    SHORT = 48,    /* a dimension below this is transposed with others, */
    NARROW = 16,   /* where fewer columns than these are side by side */
    PANEL = 16384, /* elements of some columns together: they stay in the second-level cache */
    PART = 8192,   /* elements that a core takes at a time */
};

typedef struct work work;
struct work {
    pc__along function;
    void (*run)(const work *w, int64_t task, char *const *room);
    const char *in[2];
    char *out;
    int inputs;
    bool half, is_f16, turned;
    int64_t outer, n, inner, width, across, tasks, together;
    int64_t own, bytes; /* of an element in memory, and on the way */
    char *scratch;
    int64_t panel; /* bytes; a thread has four */
};

/* Elements of input k as they are computed with: in place, or converted to `room`. */
static const char *taken(const work *w, int k, int64_t at, int64_t n, char *room)
{
    const char *from = w->in[k] + at * w->own;
    if (!w->half)
        return from;
    pc__load_halves((float *)(void *)room, from, n, w->is_f16);
    return room;
}

static void put(const work *w, int64_t at, int64_t n, const char *from)
{
    pc__store_halves(w->out + at * w->own, (const float *)(const void *)from, n, w->is_f16);
}

/* Blocks of [n][inner] side by side, turned: their columns, each block's with the others' of its place. */
static void short_blocks(const work *w, int64_t task, char *const *room)
{
    const int64_t first = task * w->width, blocks = PC__MIN(w->width, w->outer - first), size = w->n * w->inner;
    const int64_t at = first * size, wide = blocks * w->inner, row = blocks * w->bytes;
    for (int k = 0; k < w->inputs; k++)
        pc__turn(room[k], row, taken(w, k, at, blocks * size, room[2]), size * w->bytes, blocks, size,
                 (size_t)w->bytes);
    w->function.columns(room[0], room[1], room[0], w->n, wide, wide);
    pc__turn(w->half ? room[2] : w->out + at * w->own, size * w->bytes, room[0], row, size, blocks, (size_t)w->bytes);
    if (w->half)
        put(w, at, blocks * size, room[2]);
}

/* A block of few long columns, turned into rows. */
static void narrow_block(const work *w, int64_t task, char *const *room)
{
    const int64_t n = w->n, size = n * w->inner, at = task * size, row = n * w->bytes, across = w->inner * w->bytes;
    for (int k = 0; k < w->inputs; k++)
        pc__turn(room[k], row, taken(w, k, at, size, room[2]), across, n, w->inner, (size_t)w->bytes);
    for (int64_t i = 0; i < w->inner; i++)
        w->function.row(room[0] + i * row, room[1] + i * row, room[0] + i * row, n);
    pc__turn(w->half ? room[2] : w->out + at * w->own, across, room[0], row, w->inner, n, (size_t)w->bytes);
    if (w->half)
        put(w, at, size, room[2]);
}

static void long_row(const work *w, int64_t task, char *const *room)
{
    const int64_t at = task * w->n;
    const char *in[2] = {NULL};
    for (int k = 0; k < w->inputs; k++)
        in[k] = taken(w, k, at, w->n, room[k]);
    w->function.row(in[0], in[1], w->half ? room[0] : w->out + at * w->own, w->n);
    if (w->half)
        put(w, at, w->n, room[0]);
}

static void some_columns(const work *w, int64_t task, char *const *room)
{
    const int64_t column = task % w->across * w->width, columns = PC__MIN(w->width, w->inner - column);
    const int64_t at = task / w->across * w->n * w->inner + column, row = columns * w->bytes;
    if (!w->half) {
        w->function.columns(w->in[0] + at * w->own, w->in[1] + at * w->own, w->out + at * w->own, w->n, w->inner,
                            columns);
        return;
    }
    for (int k = 0; k < w->inputs; k++)
        for (int64_t r = 0; r < w->n; r++)
            (void)taken(w, k, at + r * w->inner, columns, room[k] + r * row);
    w->function.columns(room[0], room[1], room[0], w->n, columns, columns);
    for (int64_t r = 0; r < w->n; r++)
        put(w, at + r * w->inner, columns, room[0] + r * row);
}

static void run_part(void *context, int64_t part)
{
    const work *w = context;
    char *room[4] = {NULL};
    for (int i = 0; w->scratch && i < 4; i++)
        room[i] = w->scratch + (pc__thread() * 4 + i) * w->panel;
    for (int64_t i = part * w->together; i < PC__MIN((part + 1) * w->together, w->tasks); i++)
        w->run(w, i, room);
}

static void cut(work *w)
{
    const int64_t size = w->n * w->inner;
    const bool is_narrow = w->inner < NARROW, is_short = is_narrow && w->n < SHORT && w->outer > 1;
    w->width = is_short ? PC__SOFTMAX_COLUMNS / w->inner : 1;
    w->tasks = (w->outer + w->width - 1) / w->width;
    w->turned = is_short || (is_narrow && w->inner > 1 && size <= PANEL);
    w->run = is_short ? short_blocks : w->turned ? narrow_block : w->inner == 1 ? long_row : some_columns;
    int64_t elements = size * w->width;
    if (w->run == some_columns) {
        w->width = PC__MIN(PC__MIN(PC__MAX(PANEL / w->n / 16 * 16, 32), PC__SOFTMAX_COLUMNS), w->inner);
        w->across = (w->inner + w->width - 1) / w->width;
        w->tasks = w->outer * w->across;
        elements = w->n * w->width;
    }
    w->together = PC__MAX(PART / elements, 1);
    w->panel = (elements * w->bytes + 63) / 64 * 64;
}

pc_status pc__softmax_run(const pc_call *call, pc__along f32, pc__along f64, int cost)
{
    const pc__softmax_attributes *a = call->attributes;
    const pc_tensor *x = call->in[0];
    const int64_t all = pc_tensor_count(x);
    work w = {.function = x->dtype == PC_F64 ? f64 : f32,
              .in = {pc__data(x), pc__data(call->in[call->n_in - 1])},
              .out = pc__data(call->out[0]),
              .inputs = call->n_in,
              .half = pc__is_half((pc_dtype)x->dtype),
              .is_f16 = x->dtype == PC_F16,
              .n = a->n,
              .inner = a->inner,
              .own = (int64_t)pc_dtype_size(x->dtype),
              .bytes = x->dtype == PC_F64 ? sizeof(double) : sizeof(float)};
    if (all == 0)
        return PC_OK;
    w.outer = all / (a->n * a->inner);
    cut(&w);
    const int threads = pc__threads(all * cost);
    if ((w.turned || w.half) && !(w.scratch = pc__alloc_aligned((size_t)(threads * 4 * w.panel), 64)))
        return PC_ERR_MEMORY;
    pc__parallel(threads, (w.tasks + w.together - 1) / w.together, run_part, &w);
    pc__free(w.scratch);
    return PC_OK;
}
