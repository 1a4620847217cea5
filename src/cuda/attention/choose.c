/* choose.c: which row does attention where choices are measured: all rows that can, timed when a shape first comes. */
#include "cuda/attention/choose.h"

#include "cuda/cudnn/library.h"
#include "cuda/runtime/chosen.h"
#include "cuda/runtime/hash.h"
#include "cuda/runtime/measure.h"
#include "cuda/runtime/state.h"

#include <stdio.h>

enum { ROWS = 8 };

/* What a choice holds for. Of strides, batch and places of the operands a hash. Made from zeros. */
typedef struct key {
    int32_t device, dtype, backward, causal, mask, dropout, norms, lie;
    int32_t l, s, e, ev;
    int64_t batches;
} key;
_Static_assert(sizeof(key) <= PC__CHOSEN_KEY, "");

static pc__chosen chosen = {.lock = PTHREAD_MUTEX_INITIALIZER};

typedef struct asked {
    key key;
    pc_stream *stream;
    const pc_call *call;
    const pc__attention_problem *p;
} asked;

static const pc__rows *rows_of(const pc__attention_problem *p)
{
    return p->backward ? &pc__attention_backward_rows : &pc__attention_rows;
}

static int32_t how_it_lies(const pc__attention_problem *p)
{
    const pc__cuda_attention *a = &p->a;
    const pc__cuda_matrices *const all[] = {&a->q, &a->k, &a->v, &a->y, &a->mask, &a->g, &a->dq, &a->dk, &a->dv};
    int64_t words[1 + PC__ATTENTION_DIMS + PC__COUNT(all) * (3 + PC__ATTENTION_DIMS)] = {a->dims};
    size_t n = 1;
    for (int d = 0; d < a->dims; d++)
        words[n++] = a->shape[d];
    for (int i = 0; i < PC__COUNT(all); i++) {
        words[n++] = (uintptr_t)all[i]->data % 16;
        words[n++] = all[i]->row;
        words[n++] = all[i]->column;
        for (int d = 0; d < a->dims; d++)
            words[n++] = all[i]->batch[d];
    }
    return (int32_t)pc__cuda_hash(words, n * sizeof *words);
}

static void make_key(key *k, const pc_stream *stream, const pc__attention_problem *p)
{
    const pc__cuda_attention *a = &p->a;
    memset(k, 0, sizeof *k);
    k->device = stream->device.index, k->dtype = a->dtype, k->backward = p->backward, k->causal = a->causal;
    k->mask = !a->mask.data ? 0 : a->mask_is_bool ? 1 : 2;
    k->dropout = a->p > 0, k->norms = a->norms != NULL, k->lie = how_it_lies(p);
    k->l = a->l, k->s = a->s, k->e = a->e, k->ev = a->ev, k->batches = a->batches;
}

static size_t version(void)
{
#if PC__HAVE_CUDNN
    if (!pc__cudnn_missing())
        return pc__cudnn.GetVersion();
#endif
    return 0;
}

static void name(const void *context, char *text, size_t n)
{
    const key *k = &((const asked *)context)->key;
    snprintf(text, n, "cudnn %zu attention%s %d%s mask %d dropout %d norms %d batches %lld l %d s %d e %d ev %d lie %x",
             version(), k->backward ? "_backward" : "", k->dtype, k->causal ? " causal" : "", k->mask, k->dropout,
             k->norms, (long long)k->batches, k->l, k->s, k->e, k->ev, (unsigned)k->lie);
}

static bool exists(void *context, int number)
{
    return number <= rows_of(((const asked *)context)->p)->count;
}

typedef struct work {
    const pc_call *call;
    pc__attention_problem p; /* with results of its own */
    const pc__row *row[ROWS];
} work;

static pc_status run(pc_stream *stream, const void *context, int i, bool *fine)
{
    const work *w = context;
    const pc__row *row = w->row[i];
    const size_t bytes = row->workspace ? row->workspace(&w->p) : 0;
    void *workspace = bytes ? pc__cuda_try_scratch(stream, bytes) : NULL;
    *fine = !bytes || workspace;
    if (*fine)
        PC__TRY(row->run(stream, w->call, &w->p, workspace, fine));
    return pc__cuda_launched(w->call);
}

/* A whole call by way of float32 can not be timed so. */
static int ways_of(const asked *q, const pc__row **row)
{
    int there = 0;
    const int found = pc__rows_all(rows_of(q->p), q->stream, q->p, row, ROWS);
    for (int i = 0; i < found; i++)
        if (row[i]->note)
            row[there++] = row[i];
    return there;
}

/* From the first to the last element, in bytes. */
static size_t span_of(const pc__cuda_attention *a, const pc__cuda_matrices *m, int rows, int columns)
{
    int64_t last = (int64_t)(rows - 1) * m->row + (int64_t)(columns - 1) * m->column;
    for (int d = 0; d < a->dims; d++)
        last += (a->shape[d] - 1) * m->batch[d];
    return pc__cuda_whole((size_t)(last + 1) * pc_dtype_size((pc_dtype)a->dtype));
}

/* Moves what is written to `memory`, where that is not NULL; how many bytes it takes. */
static size_t move_results(pc__attention_problem *p, char *memory)
{
    pc__cuda_attention *a = &p->a;
    pc__cuda_matrices *const gradients[] = {&a->dq, &a->dk, &a->dv};
    const int rows[] = {a->l, a->s, a->s}, columns[] = {a->e, a->e, a->ev};
    size_t bytes = 0;
    for (int i = 0; p->backward && i < 3; i++) {
        gradients[i]->data = memory ? memory + bytes : gradients[i]->data;
        bytes += span_of(a, gradients[i], rows[i], columns[i]);
    }
    if (p->backward)
        return bytes;
    a->y.data = memory ? memory : a->y.data;
    bytes += span_of(a, &a->y, a->l, a->ev);
    if (a->norms) {
        a->norms = memory ? memory + bytes : a->norms;
        bytes += (size_t)(a->batches * a->l) * (a->dtype == PC_F64 ? sizeof(double) : sizeof(float));
    }
    return bytes;
}

/* The fastest; *known false where it could not be measured. */
static pc_status measure(void *context, int *number, bool *known)
{
    const asked *q = context;
    const int device = q->stream->device.index;
    double times[ROWS];
    void *memory = NULL;
    work w = {.call = q->call, .p = *q->p};
    const int ways = ways_of(q, w.row);
    const size_t bytes = move_results(&w.p, NULL);
    *number = 0;
    *known = ways > 0;
    pc_status status = ways > 1 ? pc__cuda_allocate(device, bytes, &memory) : PC_OK;
    if (status == PC_ERR_MEMORY)
        *known = false; /* no error: another time */
    if (ways < 2 || status != PC_OK)
        return *known ? status : PC_OK;
    (void)move_results(&w.p, memory);
    status = pc__cuda_measure(&(pc__trial){q->stream, &w, "measuring attention", run}, ways, times);
    pc__cuda_release(device, memory, bytes);
    const int fastest = status == PC_OK ? pc__cuda_fastest(times, ways) : -1;
    *known = fastest >= 0; /* too little memory for a way's own is no error either */
    if (fastest < 0)
        return status == PC_ERR_MEMORY ? PC_OK : status;
    *number = fastest ? 1 + (int)(w.row[fastest] - rows_of(q->p)->row) : 0;
    pc__log(PC_LOG_DEBUG, "attention%s: %lld of %d x %d by %d, %s: %.1f us; %s: %.1f us",
            q->p->backward ? "_backward" : "", (long long)q->p->a.batches, q->p->a.l, q->p->a.e, q->p->a.s,
            w.row[0]->name, times[0], w.row[fastest]->name, times[fastest]);
    return PC_OK;
}

/* Two ways to lie may have one hash, and a row of the file may be left out now. */
static bool can(pc_stream *stream, const pc__attention_problem *p, const pc__row *row)
{
    pc__cuda_stream *face = stream->implementation;
    face->takes_all = true;
    const bool supports = row->supports(stream, p);
    face->takes_all = false;
    return supports && !pc__row_is_left_out(rows_of(p), row);
}

pc_status pc__attention_choose(pc_stream *stream, const pc_call *call, const pc__attention_problem *p,
                               const pc__row **row)
{
    pc__cuda_stream *face = stream->implementation;
    asked q = {.stream = stream, .call = call, .p = p};
    const bool prepares = face->prepares;
    int number;
    *row = NULL;
    if (pc_choice_get() != PC_CHOICE_MEASURED || rows_of(p)->only || p->a.batches == 0 || p->a.l == 0 || p->a.s == 0)
        return PC_OK;
    make_key(&q.key, stream, p);
    const pc__choosing by = {&q.key, sizeof q.key, &q, name, exists, measure};
    face->prepares = false; /* what is measured is queued */
    const pc_status status = pc__chosen_for(&chosen, stream, &by, &number);
    face->prepares = prepares;
    if (status == PC_OK && number && can(stream, p, &rows_of(p)->row[number - 1]))
        *row = &rows_of(p)->row[number - 1];
    return status;
}
