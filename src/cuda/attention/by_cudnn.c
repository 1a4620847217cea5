/* by_cudnn.c: attention of 16-bit numbers by cuDNN: which calls are its, the plans for them, and running these. What was
 * planned is never thrown away: recordings may hold its kernels. */
#include "cuda/attention/cudnn.h"
#include "cuda/attention/rows.h"

#if PC__HAVE_CUDNN

#include "cuda/runtime/hash.h"

#include <float.h>
#include <pthread.h>

enum { PLACES = 1024, MOST = PLACES / 4 * 3 }; /* of the table; a power of two; shapes after these are ours */
enum { CONFIGS = 8 };

/* cuDNN compiles an engine where it first meets a kind of shape, which takes 0.3 to 1 s. A call is worth it from so many
 * multiplications and additions on, counted without a mask, or for so many rows, which a block of ours goes over alone. */
#define WORTH 2.5e8
#define WORTH_BACKWARD 2e7 /* who trains calls often, and ours take twice as long */
enum { WORTH_ROWS = 768 };
/* Scores' gradients at a time, in bytes: longer batches go in parts. */
#define SLOPES_MOST ((int64_t)512 << 20)

typedef struct way {
    int device;
    bool used, refused;
    pc__attention_shape shape;
    cudnnBackendDescriptor_t plan;
    int64_t workspace;
} way;

/* Some of the batch and of the heads. */
typedef struct part {
    int64_t b, h, batches, heads; /* the first ones, and how many */
} part;

static pthread_mutex_t choosing = PTHREAD_MUTEX_INITIALIZER; /* over the table */
static way table[PLACES];
static int count;

/* --- what it takes --- */

static int64_t batches_of(const pc__cuda_attention *a)
{
    return a->dims > 0 ? a->shape[0] : 1;
}

static int64_t heads_of(const pc__cuda_attention *a)
{
    return a->dims > 1 ? a->shape[1] : 1;
}

static bool lies_right(const pc__cuda_attention *a, const pc__cuda_matrices *m)
{
    bool right = m->column == 1 && m->row % 8 == 0 && (uintptr_t)m->data % 16 == 0;
    for (int d = 0; d < a->dims; d++)
        right = right && m->batch[d] % 8 == 0;
    return right;
}

static bool all_lie_right(const pc__attention_problem *p)
{
    const pc__cuda_attention *a = &p->a;
    const pc__cuda_matrices *const forward[] = {&a->q, &a->k, &a->v, &a->y}, *const back[] = {&a->g, &a->dq, &a->dk,
                                                                                              &a->dv};
    bool right = true;
    for (int i = 0; i < 4; i++)
        right = right && lies_right(a, forward[i]) && (!p->backward || lies_right(a, back[i]));
    return right;
}

static int64_t slopes_of_a_head(const pc__cuda_attention *a)
{
    return pc__attention_slopes(&(pc__attention_shape){.b = 1, .h = 1, .l = a->l, .s = a->s});
}

/* How many times as much of [l][s] cuDNN's tiles of 128 x 128 cover as ours of 64 x 64. */
static double waste_of(const pc__cuda_attention *a)
{
    const double theirs = ((a->l + 127) / 128 * 128.0) * ((a->s + 127) / 128 * 128.0);
    return theirs / (((a->l + 63) / 64 * 64.0) * ((a->s + 63) / 64 * 64.0));
}

/* Whether the kernels of units.cu are faster: for heads of up to 16 numbers, whose tiles cuDNN fills up to 64, and forward for
 * lengths somewhat above a multiple of 128; forward with enough blocks to fill the chip, and up to 1,024 rows. */
static bool is_for_units(const pc__attention_problem *p)
{
    enum {
        TINY = 16,
        SMALL = 32,
        LARGE = 64,
        FROM = 256,
        FAR = 512,
        UP_TO = 1024 /* rows */,
        FULL = 264 /* blocks */
    };
    const pc__cuda_attention *a = &p->a;
    const int size = PC__MAX(a->e, a->ev), least = PC__MIN(a->l, a->s), most = PC__MAX(a->l, a->s);
    const bool full = a->batches * ((a->l + 63) / 64) >= FULL;
    if (p->backward)
        return size <= TINY && (least >= FAR || (least >= FROM && full));
    return full && least >= FROM && most <= UP_TO &&
           (size <= TINY || (size <= LARGE && waste_of(a) >= (size <= SMALL ? 1.25 : 1.4)));
}

static bool is_worth_it(const pc__attention_problem *p, double work)
{
    const pc__cuda_attention *a = &p->a;
    return !is_for_units(p) && (work >= (p->backward ? WORTH_BACKWARD : WORTH) || PC__MAX(a->l, a->s) >= WORTH_ROWS);
}

bool pc__attention_cudnn_supports(const pc_stream *stream, const void *problem)
{
    const pc__attention_problem *p = problem;
    const pc__cuda_attention *a = &p->a;
    const pc_choice choice = pc_choice_get();
    const pc__cuda_stream *face = stream->implementation;
    const double work = 4.0 * (double)a->batches * a->l * a->s * PC__MAX(a->e, a->ev);
    if (!pc__is_half((pc_dtype)a->dtype) || a->dims > 2 || a->mask.data || a->p > 0 || work == 0 || a->e % 8 ||
        a->ev % 8 || a->e > 256 || a->ev > 256 || face->scratch_level != 0)
        return false;
    if (!pc__rows_takes_all(p->backward ? &pc__attention_backward_rows : &pc__attention_rows, stream,
                            pc__attention_cudnn_supports) &&
        (choice == PC_CHOICE_OWN || (choice != PC_CHOICE_CUDNN && !is_worth_it(p, work))))
        return false;
    return all_lie_right(p) && (!p->backward || slopes_of_a_head(a) <= SLOPES_MOST) && !pc__cudnn_missing();
}

/* --- plans --- */

static void lie(pc__attention_shape *s, int name, const pc__cuda_attention *a, const pc__cuda_matrices *m)
{
    s->strides[name][0] = a->dims > 0 ? m->batch[0] : (int64_t)m->row * 8;
    s->strides[name][1] = a->dims > 1 ? m->batch[1] : (int64_t)m->row * 8;
    s->strides[name][2] = m->row;
}

static void describe(pc__attention_shape *s, const pc__attention_problem *p, const part *t)
{
    const pc__cuda_attention *a = &p->a;
    memset(s, 0, sizeof *s);
    s->b = t->batches, s->h = t->heads, s->l = a->l, s->s = a->s, s->e = a->e, s->ev = a->ev;
    s->dtype = a->dtype, s->causal = a->causal, s->backward = p->backward;
    lie(s, PC__ATTENTION_Q, a, &a->q);
    lie(s, PC__ATTENTION_K, a, &a->k);
    lie(s, PC__ATTENTION_V, a, &a->v);
    lie(s, PC__ATTENTION_Y, a, &a->y);
    if (!p->backward)
        return;
    lie(s, PC__ATTENTION_G, a, &a->g);
    lie(s, PC__ATTENTION_DQ, a, &a->dq);
    lie(s, PC__ATTENTION_DK, a, &a->dk);
    lie(s, PC__ATTENTION_DV, a, &a->dv);
}

/* cuDNN's likeliest engine that has a plan. */
static bool make_plan(const pc__cudnn_target *target, way *w)
{
    cudnnBackendDescriptor_t configs[CONFIGS] = {NULL};
    pc__cudnn_builder b = {.target = target};
    const cudnnBackendDescriptor_t graph = pc__attention_graph(&b, &w->shape);
    const int found = b.failed ? 0 : pc__cudnn_configs(target, graph, CUDNN_HEUR_MODE_A, configs, CONFIGS);
    bool made = false;
    for (int i = 0; i < found && !made; i++)
        made = pc__cudnn_plan_of(target, configs[i], &w->plan, &w->workspace);
    pc__cudnn_destroy(configs, found);
    pc__cudnn_destroy(b.made, b.count);
    return made;
}

static void tell(const way *w, const char *what, const char *words)
{
    const pc__attention_shape *s = &w->shape;
    pc__log(w->refused ? PC_LOG_INFO : PC_LOG_DEBUG, "attention%s %lld x %lld x %lld x %lld by %lld: %s%s%s",
            s->backward ? "_backward" : "", (long long)s->b, (long long)s->h, (long long)s->l, (long long)s->e,
            (long long)s->s, what, words[0] ? ", cuDNN says " : "", words);
}

static void decide(int device, way *w)
{
    char words[160] = "";
    const pc__cudnn_target target = {.handle = pc__cudnn_handle(device)};
    w->refused = !target.handle || !make_plan(&target, w);
    if (w->refused)
        pc__cudnn_words(words, sizeof words);
    tell(w, w->refused ? "our kernels" : "cuDNN's", words);
}

/* The plan for a shape, or NULL. */
static const way *way_for(const pc_stream *stream, const pc__attention_shape *shape)
{
    const pc__cuda_stream *face = stream->implementation;
    const int device = stream->device.index;
    const way *found = NULL;
    pthread_mutex_lock(&choosing);
    unsigned at = pc__cuda_hash(shape, sizeof *shape) % PLACES;
    while (table[at].used && (table[at].device != device || memcmp(&table[at].shape, shape, sizeof *shape) != 0))
        at = (at + 1) % PLACES;
    way *w = &table[at];
    if (!w->used && count < MOST && (!face->branch || face->prepares)) {
        *w = (way){.device = device, .used = true, .shape = *shape};
        count++;
        decide(device, w);
    }
    if (w->used && !w->refused)
        found = w;
    pthread_mutex_unlock(&choosing);
    return found;
}

static void refuse(const way *w, const char *words)
{
    pthread_mutex_lock(&choosing);
    way *mine = &table[w - table];
    mine->refused = true;
    tell(mine, "our kernels", words);
    pthread_mutex_unlock(&choosing);
}

/* --- running --- */

static void *moved(const pc__cuda_matrices *m, const part *t)
{
    return m->data ? (char *)m->data + 2 * (t->b * m->batch[0] + t->h * m->batch[1]) : NULL;
}

static cudnnStatus_t run_part(pc_stream *stream, const pc__attention_problem *p, const way *w, const part *t,
                              float *scratch, void *workspace, char *words, size_t n)
{
    const pc__cuda_attention *a = &p->a;
    const float scale = (float)a->scale, masked = -FLT_MAX, one = 1;
    const int64_t rows = (t->b * heads_of(a) + t->h) * a->l;
    const void *const by_name[PC__ATTENTION_NAMES] = {
        [PC__ATTENTION_Q] = moved(&a->q, t),
        [PC__ATTENTION_K] = moved(&a->k, t),
        [PC__ATTENTION_V] = moved(&a->v, t),
        [PC__ATTENTION_Y] = moved(&a->y, t),
        [PC__ATTENTION_G] = moved(&a->g, t),
        [PC__ATTENTION_DQ] = moved(&a->dq, t),
        [PC__ATTENTION_DK] = moved(&a->dk, t),
        [PC__ATTENTION_DV] = moved(&a->dv, t),
        [PC__ATTENTION_NORMS] = (a->norms ? (float *)a->norms : scratch) + rows,
        [PC__ATTENTION_MEANS] = p->backward ? scratch + rows : NULL,
        [PC__ATTENTION_SCALE] = &scale,
        [PC__ATTENTION_MASKED] = a->causal ? &masked : NULL,
        [PC__ATTENTION_ONE] = p->backward ? &one : NULL,
    };
    int64_t ids[PC__ATTENTION_NAMES];
    const void *pointers[PC__ATTENTION_NAMES];
    pc__cudnn_run run = {.plan = w->plan, .ids = ids, .pointers = pointers, .workspace = workspace};
    for (int id = PC__ATTENTION_Q; id < PC__ATTENTION_NAMES; id++)
        if (by_name[id])
            ids[run.count] = id, pointers[run.count++] = by_name[id];
    return pc__cudnn_execute(stream->device.index, a->queue, &run, words, n);
}

/* The part from (b, h) on. A backward pass has as many of the batch at a time as scores' gradients may be, or of one's
 * heads where that is not even one. */
static part part_at(const pc__attention_problem *p, int64_t b, int64_t h)
{
    const int64_t batches = batches_of(&p->a), heads = heads_of(&p->a);
    const int64_t most = p->backward ? SLOPES_MOST / slopes_of_a_head(&p->a) : batches * heads;
    return most >= heads ? (part){b, 0, PC__MIN(batches - b, most / heads), heads}
                         : (part){b, h, 1, PC__MIN(heads - h, most)};
}

static part next_part(const pc__attention_problem *p, const part *t)
{
    const int64_t h = t->h + t->heads;
    return h < heads_of(&p->a) ? part_at(p, t->b, h) : part_at(p, t->b + t->batches, 0);
}

/* Bytes of workspace that the largest part takes; below 0 where one has no plan. */
static int64_t workspace_of(const pc_stream *stream, const pc__attention_problem *p)
{
    int64_t most = 0;
    pc__attention_shape shape;
    for (part t = part_at(p, 0, 0); t.b < batches_of(&p->a); t = next_part(p, &t)) {
        describe(&shape, p, &t);
        const way *w = way_for(stream, &shape);
        if (!w)
            return -1;
        most = PC__MAX(most, w->workspace);
    }
    return most;
}

static pc_status run_parts(pc_stream *stream, const pc__attention_problem *p, float *scratch, void *workspace,
                           bool *done)
{
    pc__attention_shape shape;
    char words[256] = "";
    for (part t = part_at(p, 0, 0); t.b < batches_of(&p->a); t = next_part(p, &t)) {
        describe(&shape, p, &t);
        const way *w = way_for(stream, &shape);
        const cudnnStatus_t status =
            w ? run_part(stream, p, w, &t, scratch, workspace, words, sizeof words) : CUDNN_STATUS_NOT_SUPPORTED;
        if (status >= CUDNN_STATUS_INTERNAL_ERROR)
            return pc__fail_cause(PC_ERR_BACKEND, words,
                                  "attention: cuDNN failed with status %d; PARACORD_CHOICE=own does without",
                                  (int)status);
        if (status != CUDNN_STATUS_SUCCESS) {
            if (w)
                refuse(w, words);
            return PC_OK; /* our kernels do all of it */
        }
    }
    *done = true;
    return PC_OK;
}

pc_status pc__attention_cudnn_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace,
                                  bool *done)
{
    const pc__attention_problem *p = problem;
    const int64_t bytes = workspace_of(stream, p);
    (void)call, (void)workspace;
    *done = false;
    if (bytes < 0 || ((const pc__cuda_stream *)stream->implementation)->prepares)
        return PC_OK;
    const bool needs_rows = p->backward || !p->a.norms; /* engines always write the norms */
    const size_t rows = needs_rows ? pc__cuda_whole((size_t)(p->a.batches * p->a.l) * sizeof(float)) : 0;
    char *scratch = rows + (size_t)bytes ? pc__cuda_scratch(stream, rows + (size_t)bytes) : NULL;
    if (rows + (size_t)bytes && !scratch)
        return PC_ERR_MEMORY;
    return run_parts(stream, p, (float *)(void *)scratch, bytes ? scratch + rows : NULL, done);
}

#else

bool pc__attention_cudnn_supports(const pc_stream *stream, const void *problem)
{
    (void)stream, (void)problem;
    return false;
}

pc_status pc__attention_cudnn_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace,
                                  bool *done)
{
    (void)stream, (void)call, (void)problem, (void)workspace;
    *done = false;
    return PC_OK;
}

#endif
