/* reduce.c: how reductions are cut. A task makes some neighbouring results: of rows, the shortest of which are transposed
 * first, or of columns. Where that gives few tasks, the reduced numbers are cut into chunks too,
 * whose results are joined in order. */
#include "cpu/level/reduce.h"

#include "cpu/level/turn.h"

enum {
    SHORT = 48,       /* rows below this are transposed */
    TURNED = 128,     /* so many together */
    TASKS = 16,       /* enough not to cut into chunks */
    CHUNK = 16384,    /* elements of a chunk, at least */
    CHUNKS_MOST = 64, /* of one task */
    PART = 16384,     /* elements that a core takes at a time */
};
#define ROWS_MOST ((int64_t)1 << 30) /* of a chunk: places fit 32 bits there */

typedef struct work {
    const pc__reduce_attributes *a;
    const pc__reduction *how;
    const char *from;
    char *to; /* NULL: nobody wants the values */
    char *also;
    pc_dtype dtype; /* of the results */
    int64_t bytes;  /* of an element */
    int64_t step;   /* elements from one reduced row to the next */
    int dims;       /* of outer that do not lie as one, the last first */
    int64_t shape[PC_MAX_DIMS], stride[PC_MAX_DIMS];
    bool turned;                  /* of inputs without gaps */
    int64_t width, across, tasks; /* results of a task; tasks beside each other; all of them */
    int64_t chunk, chunks, together;
    pc__partial *values; /* [chunks][results], where there are chunks */
    char *beside;        /* the same of `also` */
} work;

enum { ALSO = 8 /* bytes */ };

static void finish(const work *w, int64_t at, int64_t n, pc__partial *value, const void *also)
{
    const double divisor = w->a->divisor;
    if (divisor != 1) /* of floats, whose partials are `d` */
        for (int64_t j = 0; j < n; j++)
            PC__MEMBER(value, j, d) /= divisor;
    if (w->to)
        w->how->store(w->to + at * (int64_t)pc_dtype_size(w->dtype), w->dtype, value, n);
    if (w->also)
        memcpy(w->also + at * ALSO, also, (size_t)n * ALSO);
}

/* The first result of a task and how many it makes. */
static int64_t results_of(const work *w, int64_t task, int64_t *at)
{
    const pc__reduce_attributes *a = w->a;
    if (a->inner == 1) {
        *at = task * w->width;
        return PC__MIN(w->width, a->outer - *at);
    }
    const int64_t column = task % w->across * w->width;
    *at = task / w->across * a->inner + column;
    return PC__MIN(w->width, a->inner - column);
}

/* Where the elements of an index of outer begin. */
static const char *place_of(const work *w, int64_t i)
{
    int64_t at = 0;
    for (int d = 0; d < w->dims - 1; d++) {
        at += i % w->shape[d] * w->stride[d];
        i /= w->shape[d];
    }
    return w->from + (at + i * w->stride[w->dims - 1]) * w->bytes;
}

/* How the input lies. */
static void find_places(work *w, const pc_tensor *t)
{
    const pc__reduce_attributes *a = w->a;
    w->step = a->inner, w->dims = 1, w->shape[0] = a->outer, w->stride[0] = a->reduced * a->inner;
    if (pc__is_contiguous(t) || a->reduced == 0)
        return;
    int d = t->ndim - 1;
    for (int64_t n = 1; n < a->inner; d--)
        n *= t->shape[d];
    for (int64_t n = 1; n < a->reduced; n *= t->shape[d--])
        if (n == 1 && t->shape[d] > 1)
            w->step = t->strides[d];
    w->shape[0] = 1, w->stride[0] = 0;
    for (int k = 0; d >= 0; d--) {
        if (t->shape[d] == 1)
            continue;
        if (w->shape[k] > 1 && t->strides[d] != w->shape[k] * w->stride[k])
            w->dims = ++k + 1, w->shape[k] = 1;
        w->stride[k] = w->shape[k] == 1 ? t->strides[d] : w->stride[k];
        w->shape[k] *= t->shape[d];
    }
}

static void reduce_task(const work *w, int64_t task, int64_t chunk)
{
    pc__partial value[PC__COLUMNS];
    _Alignas(ALSO) char room_also[PC__COLUMNS * ALSO], *also = w->also ? room_also : NULL;
    int64_t at;
    _Alignas(64) char room[SHORT * TURNED * 8];
    const pc__reduce_attributes *a = w->a;
    const int64_t n = results_of(w, task, &at), first = chunk * w->chunk, rows = PC__MIN(w->chunk, a->reduced - first);
    const char *from = place_of(w, at / a->inner) + (at % a->inner + first * w->step) * w->bytes;
    if (w->turned) {
        pc__turn(room, TURNED * w->bytes, from, a->reduced * w->bytes, n, a->reduced, (size_t)w->bytes);
        w->how->columns(room, TURNED, a->reduced, n, value, also);
    } else if (a->inner == 1) {
        for (int64_t i = 0; i < n; i++)
            w->how->row(place_of(w, at + i) + first * w->bytes, rows, &value[i], also ? also + i * ALSO : NULL);
    } else {
        w->how->columns(from, w->step, rows, n, value, also);
    }
    if (w->chunks == 1) {
        finish(w, at, n, value, also);
        return;
    }
    at += chunk * a->outer * a->inner;
    memcpy(w->values + at, value, (size_t)n * sizeof *value);
    if (also)
        memcpy(w->beside + at * ALSO, also, (size_t)n * ALSO);
}

static void reduce_part(void *context, int64_t part)
{
    const work *w = context;
    for (int64_t i = part * w->together; i < PC__MIN((part + 1) * w->together, w->tasks * w->chunks); i++)
        reduce_task(w, i / w->chunks, i % w->chunks);
}

static void join_chunks(const work *w)
{
    const int64_t results = w->a->outer * w->a->inner;
    for (int64_t c = 1; c < w->chunks; c++)
        w->how->join(w->values, w->beside, w->values + c * results, w->beside ? w->beside + c * results * ALSO : NULL,
                     c * w->chunk, PC__MIN(w->chunk, w->a->reduced - c * w->chunk), results);
    finish(w, 0, results, w->values, w->beside);
}

static void cut(work *w)
{
    const pc__reduce_attributes *a = w->a;
    w->turned = a->inner == 1 && a->reduced < SHORT;
    w->width = w->turned ? TURNED : PC__MIN(a->inner, PC__COLUMNS);
    if (a->inner == 1 && !w->turned)
        w->width = PC__MAX(PC__MIN(PART / a->reduced, PC__MIN(a->outer, PC__COLUMNS)), 1);
    w->across = (a->inner + w->width - 1) / w->width;
    w->tasks = a->inner == 1 ? (a->outer + w->width - 1) / w->width : a->outer * w->across;
    const int64_t size = PC__MAX(a->reduced * w->width, 1);
    w->chunks = w->tasks < TASKS ? PC__MIN(PC__MAX(size / CHUNK, 1), CHUNKS_MOST) : 1;
    w->chunks = PC__MAX(w->chunks, (a->reduced + ROWS_MOST - 1) / ROWS_MOST);
    w->chunk = PC__MAX((a->reduced + w->chunks - 1) / w->chunks, 1);
    w->chunks = PC__MAX((a->reduced + w->chunk - 1) / w->chunk, 1);
    w->together = PC__MAX(PART * w->chunks / size, 1);
}

pc_status pc__reduce(const pc_call *call, const pc__reduction *how, void *also)
{
    const pc__reduce_attributes *a = call->attributes;
    const int64_t results = a->outer * a->inner;
    work w = {.a = a,
              .how = how,
              .from = pc__data(call->in[0]),
              .to = pc_tensor_count(call->out[0]) ? pc__data(call->out[0]) : NULL,
              .also = also,
              .dtype = (pc_dtype)call->out[0]->dtype,
              .bytes = (int64_t)pc_dtype_size(call->in[0]->dtype)};
    if (results == 0)
        return PC_OK;
    find_places(&w, call->in[0]);
    cut(&w);
    if (w.chunks > 1) {
        const size_t slots = (size_t)(w.chunks * results);
        w.values = pc__alloc_aligned(slots * (sizeof *w.values + (also ? ALSO : 0)), 64);
        if (!w.values)
            return PC_ERR_MEMORY;
        w.beside = also ? (char *)(w.values + slots) : NULL;
    }
    pc__parallel(pc__threads(4 * results * a->reduced * w.bytes), (w.tasks * w.chunks + w.together - 1) / w.together,
                 reduce_part, &w);
    if (w.chunks > 1)
        join_chunks(&w);
    pc__free(w.values);
    return PC_OK;
}
