/* norm_channels.c: batch_norm and group_norm in three passes: sums of parts of x, what follows from them for each channel,
 * and x by that. One template, compiled for float and double. */
#include "cpu/level/norm.h"

#include <math.h>

enum {
    SOME = 4096,   /* numbers of a block: they stay in the first-level cache */
    COLUMNS = 128, /* channels of a block at most */
    WIDE = 512,    /* numbers of rows of all channels that are gone through as one */
    PART = 32768,  /* numbers of a task at most */
    SMALL = 256,   /* numbers of planes that are done by lots of SOME numbers, but for float64 */
    COEFFICIENTS = 5,
    BIAS = 4, /* which of them */
};

typedef struct part {
    double first, second;
} part;

typedef struct work {
    const pc_call *call;
    const pc__channel_norm_attributes *a;
    bool backward, half, planar;
    double least, most;             /* between which a ReLU has a gradient (pc__norm_least, pc__norm_most) */
    int64_t batches;                /* that have coefficients of their own */
    int64_t count;                  /* numbers of a channel in each of them */
    int64_t across;                 /* numbers from one row to the next; planes: 1 */
    int64_t length, pieces, blocks; /* of inner, how it is cut; blocks of channels */
    int64_t together, tasks;        /* tasks that are done as one */
    part *parts;                    /* [batch of x][piece][channels] */
    part *sums;                     /* backward: [batches][channels], gradients of bias and weight */
    void *weight, *bias, *mean, *variance, *coefficients; /* [batches][COEFFICIENTS][channels] */
} work;

/* A task: from `at` on so many rows of neighbouring channels, or of one channel so many numbers. */
typedef struct place {
    int64_t at, rows, columns, channel, batch, part;
    int64_t wide;   /* numbers of rows side by side that are gone through as one, so that few channels fill vectors */
    int64_t planes; /* tasks from this one on that are done together, whole planes one behind the other; 0: this one */
} place;

static place place_of(const work *w, int64_t task)
{
    const pc__channel_norm_attributes *a = w->a;
    const int64_t block = task % w->blocks, piece = task / w->blocks % w->pieces, batch = task / w->blocks / w->pieces;
    place p = {.rows = PC__MIN(w->length, a->inner - piece * w->length), .batch = w->batches > 1 ? batch : 0};
    p.columns = w->planar ? 1 : PC__MIN(COLUMNS, a->channels - block * COLUMNS);
    p.channel = w->planar ? block : block * COLUMNS;
    p.at = w->planar ? (batch * a->channels + block) * a->inner + piece * w->length
                     : (batch * a->inner + piece * w->length) * a->channels + p.channel;
    p.part = (batch * w->pieces + piece) * a->channels + p.channel;
    p.wide = p.columns;
    if (!w->planar && p.columns == w->across &&
        (w->half || p.columns % 16)) /* pays where it is said again for some rows */
        p.wide *= PC__MAX(PC__MIN(WIDE / p.columns, p.rows / 8), 1);
    return p;
}

/* The next task's: whole planes come one after another. */
static inline void step_on(const work *w, place *p, int64_t task)
{
    if (!w->planar || w->pieces > 1 || p->channel + 1 == w->a->channels) {
        *p = place_of(w, task);
        return;
    }
    p->at += w->a->inner;
    p->channel++;
    p->part++;
}

/* The next one of p's planes. */
static inline void next_plane(const work *w, int64_t *channel, int64_t *batch)
{
    if (++*channel == w->a->channels)
        *channel = 0, *batch += w->batches > 1;
}

/* Which of weight and bias a channel has. */
static inline int64_t parameter_of(const work *w, int64_t channel)
{
    return w->a->spread == 1 ? channel : channel / w->a->spread;
}

/* The mean of n numbers and the squares off it, with those of more numbers (Chan, Golub, LeVeque 1979). */
static inline void join(part *to, int64_t n, const part *more, int64_t count)
{
    if (n == 0) {
        *to = *more;
        return;
    }
    const double off = more->first - to->first, share = (double)count / (double)(n + count);
    to->first += off * share;
    to->second += more->second + off * off * (double)n * share;
}

/* Those of a channel's parts, in order, behind the `count` numbers of *to. */
static int64_t join_parts(const work *w, int64_t batch, int64_t channel, part *to, int64_t count)
{
    const int64_t parts = w->a->batches / w->batches * w->pieces;
    for (int64_t i = 0; i < parts; i++) {
        const int64_t n = PC__MIN(w->length, w->a->inner - i % w->pieces * w->length);
        join(to, count, &w->parts[(batch * parts + i) * w->a->channels + channel], n);
        count += n;
    }
    return count;
}

static part sum_parts(const work *w, int64_t batch, int64_t channel)
{
    const int64_t parts = w->a->batches / w->batches * w->pieces;
    part sum = {0};
    for (int64_t i = 0; i < parts; i++) {
        const part *p = &w->parts[(batch * parts + i) * w->a->channels + channel];
        sum.first += p->first;
        sum.second += p->second;
    }
    return sum;
}

#define REAL float
#define NAMED(name) name##_f32
#define SMALL_PLANES 1
#include "cpu/level/norm_channels.inc"

#define REAL double
#define NAMED(name) name##_f64
#define SMALL_PLANES 0
#include "cpu/level/norm_channels.inc"

typedef void (*group_fn)(const work *w, int64_t first, int64_t end);

typedef struct every_group {
    group_fn run;
    const work *work;
    int64_t groups;
} every_group;

enum { GROUPS = 64 /* of a task */ };

static void run_groups(void *context, int64_t task)
{
    const every_group *all = context;
    all->run(all->work, task * GROUPS, PC__MIN((task + 1) * GROUPS, all->groups));
}

/* Each batch's groups, of which `cost` says what all of them take. */
static void each_group(const work *w, group_fn run, int64_t cost)
{
    every_group all = {run, w, w->batches * w->a->groups};
    pc__parallel(pc__threads(cost), (all.groups + GROUPS - 1) / GROUPS, run_groups, &all);
}

typedef void (*task_fn)(const work *w, const place *p);

typedef struct pass {
    task_fn run;
    const work *work;
} pass;

static void run_some(void *context, int64_t i)
{
    const pass *all = context;
    const work *w = all->work;
    const int64_t first = i * w->together, end = PC__MIN(first + w->together, w->tasks);
    const bool small = w->call->in[0]->dtype != PC_F64 && w->planar && w->pieces == 1 && w->a->inner <= SMALL;
    place p = place_of(w, first);
    for (int64_t task = first; small && task < end; task += p.planes) {
        p = place_of(w, task);
        p.planes = PC__MIN(SOME / w->a->inner, end - task);
        all->run(w, &p);
    }
    for (int64_t task = first; !small && task < end; step_on(w, &p, ++task))
        all->run(w, &p);
}

static void run_pass(const work *w, task_fn run, int cost)
{
    pass p = {run, w};
    const int64_t all = w->a->batches * w->a->channels * w->a->inner;
    pc__parallel(pc__threads(all * cost), (w->tasks + w->together - 1) / w->together, run_some, &p);
}

static work work_of(const pc_call *call, bool backward)
{
    const pc__channel_norm_attributes *a = call->attributes;
    work w = {.call = call, .a = a, .backward = backward, .planar = !a->last};
    const int64_t columns = w.planar ? 1 : PC__MIN(a->channels, COLUMNS);
    w.half = pc__is_half((pc_dtype)call->in[0]->dtype);
    w.least = pc__norm_least(call->in[0]->dtype);
    w.most = pc__norm_most(call->in[0]->dtype, a->most);
    w.batches = a->apart ? a->batches : 1;
    w.count = a->apart ? a->inner : a->batches * a->inner;
    w.across = w.planar ? 1 : a->channels;
    w.length = PC__MIN(PC__MAX(PART / PC__MAX(columns, 1), 1), PC__MAX(a->inner, 1));
    w.pieces = (a->inner + w.length - 1) / w.length;
    w.blocks = w.planar ? a->channels : (a->channels + COLUMNS - 1) / COLUMNS;
    w.tasks = a->batches * w.pieces * w.blocks;
    w.together = PC__MAX(PART / PC__MAX(w.length * columns, 1), 1);
    return w;
}

/* Room for all, one block of memory, which begins with `weight`. */
static pc_status take_room(work *w, const pc_tensor *const *vectors, bool parts)
{
    const int64_t c = w->a->channels, statistics = w->a->groups * w->batches, n = c / w->a->spread;
    const int64_t sizes[] = {n, n, statistics, statistics, c * w->batches * COEFFICIENTS};
    void **places[] = {&w->weight, &w->bias, &w->mean, &w->variance, &w->coefficients};
    const int64_t sums = parts ? 2 * c * w->a->batches * w->pieces : 0,
                  own = w->backward && parts ? 2 * c * w->batches : 0;
    int64_t all = sums + own;
    for (int i = 0; i < 5; i++)
        all += sizes[i];
    double *room = pc__alloc_aligned((size_t)PC__MAX(all, 1) * sizeof *room, 64);
    if (!room)
        return PC_ERR_MEMORY;
    for (int i = 0; i < 5; i++) {
        *places[i] = room;
        if (i < 4 && w->call->in[0]->dtype == PC_F64)
            pc__norm_vector_f64(*places[i], vectors[i], sizes[i], i == 0);
        else if (i < 4)
            pc__norm_vector_f32(*places[i], vectors[i], sizes[i], i == 0);
        room += sizes[i];
    }
    w->parts = parts ? (part *)(void *)room : NULL;
    w->sums = own ? (part *)(void *)(room + sums) : NULL;
    return PC_OK;
}

/* The groups of planes are rows of their own, in which sums need not stop at each plane. */
static pc__channel_norm_attributes in_rows(const pc__channel_norm_attributes *a)
{
    pc__channel_norm_attributes rows = *a;
    if (!a->last && a->apart) {
        rows.channels = a->groups;
        rows.inner *= a->channels / a->groups;
    }
    return rows;
}

static pc_status find_statistics(const work *w, const pc_call *call)
{
    const pc__channel_norm_attributes rows = in_rows(w->a);
    const bool is_f64 = call->in[0]->dtype == PC_F64;
    pc_call same = *call;
    same.attributes = &rows;
    work s = work_of(&same, false);
    s.mean = w->mean;
    s.variance = w->variance;
    const int64_t parts = rows.batches * s.pieces * rows.channels;
    if (!(s.parts = pc__alloc_aligned((size_t)parts * sizeof *s.parts, 64)))
        return PC_ERR_MEMORY;
    run_pass(&s, is_f64 ? sums_f64 : sums_f32, 16);
    each_group(&s, is_f64 ? find_statistics_f64 : find_statistics_f32, parts * 64);
    pc__free(s.parts);
    const size_t bytes = (size_t)(s.batches * rows.groups) * (is_f64 ? sizeof(double) : sizeof(float));
    memcpy(pc__data(call->out[1]), s.mean, bytes);
    memcpy(pc__data(call->out[2]), s.variance, bytes);
    return PC_OK;
}

static pc_status forward(const pc_call *call)
{
    work w = work_of(call, false);
    const pc__channel_norm_attributes *a = w.a;
    const int first = a->stored ? 3 : 1;
    const pc_tensor *vectors[4] = {a->has_weight ? call->in[first] : NULL,
                                   a->has_bias ? call->in[first + a->has_weight] : NULL, a->stored ? call->in[1] : NULL,
                                   a->stored ? call->in[2] : NULL};
    const bool is_f64 = call->in[0]->dtype == PC_F64;
    if (pc_tensor_count(call->in[0]) == 0)
        return PC_OK;
    PC__TRY(take_room(&w, vectors, false));
    const pc_status status = a->stored ? PC_OK : find_statistics(&w, call);
    if (status == PC_OK) {
        each_group(&w, is_f64 ? set_forward_f64 : set_forward_f32, w.batches * a->channels * 64);
        run_pass(&w, is_f64 ? apply_f64 : apply_f32, 8);
    }
    pc__free(w.weight);
    return status;
}

#define FORWARD(name)                                                                                                  \
    PC__KERNEL(name)                                                                                                   \
    {                                                                                                                  \
        (void)stream;                                                                                                  \
        return forward(call);                                                                                          \
    }
FORWARD(batch_norm)
FORWARD(group_norm)
FORWARD(stored_norm)

PC__KERNEL(channel_norm_backward)
{
    (void)stream;
    work w = work_of(call, true);
    const pc__channel_norm_attributes *a = w.a;
    const pc_tensor *bias = a->relu && a->has_bias ? call->in[4 + a->has_weight] : NULL;
    const pc_tensor *vectors[4] = {a->has_weight ? call->in[4] : NULL, bias, call->in[2], call->in[3]};
    const bool is_f64 = call->in[0]->dtype == PC_F64, any = pc_tensor_count(call->in[0]);
    const bool parts = !a->stored || a->needs[1] || a->needs[2];
    PC__TRY(take_room(&w, vectors, parts));
    if (any && parts) {
        is_f64 ? set_means_f64(&w) : set_means_f32(&w);
        run_pass(&w, is_f64 ? sums_f64 : sums_f32, 16);
    }
    if (any)
        each_group(&w, is_f64 ? find_gradients_f64 : find_gradients_f32, a->batches * w.pieces * a->channels * 64);
    if (any && a->needs[0])
        run_pass(&w, is_f64 ? apply_f64 : apply_f32, 12);
    const pc_tensor *dweight = a->needs[1] ? call->out[1] : NULL, *dbias = a->needs[2] ? call->out[2] : NULL;
    if (parts)
        is_f64 ? finish_f64(&w, dweight, dbias) : finish_f32(&w, dweight, dbias);
    pc__free(w.weight);
    return PC_OK;
}

static double at(const pc_tensor *t, int64_t i)
{
    return t->dtype == PC_F64 ? ((const double *)pc__data(t))[i * t->strides[0]]
                              : (double)((const float *)pc__data(t))[i * t->strides[0]];
}

PC__KERNEL(running_step)
{
    (void)stream;
    const pc__running_step_attributes *a = call->attributes;
    double share = a->share;
    if (call->n_out > 2) {
        int64_t *tracked = pc__data(call->out[2]);
        ++*tracked;
        share = share < 0 ? 1 / (double)*tracked : share;
    }
    for (int k = 0; k < 2; k++) {
        const pc_tensor *old = call->out[k];
        for (int64_t i = 0; i < old->shape[0]; i++) {
            const double value = (1 - share) * at(old, i) + share * at(call->in[k], i) * (k ? a->unbiased : 1);
            if (old->dtype == PC_F64)
                ((double *)pc__data(old))[i * old->strides[0]] = value;
            else
                ((float *)pc__data(old))[i * old->strides[0]] = (float)value;
        }
    }
    return PC_OK;
}
