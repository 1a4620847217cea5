/* attention.c: scaled dot-product attention, block by block of keys with running maxima and sums, so that scores never
 * leave the first-level cache. A task is a block of queries of one matrix of the batch. */
#include "cpu/level/attention_part.h"

#include "base/parallel.h"

enum { MOST_QUERIES = 4 * QUERIES }; /* of a task where there are tasks enough: keys are copied for all of them */

typedef struct forward {
    const pc__attention *a;
    int64_t queries, blocks; /* of a task, and such blocks of a matrix */
    real *scratch;
    int64_t room; /* of it, for a thread */
} forward;

/* What a panel has while it goes over the keys. */
typedef struct running {
    panel p;
    real *turned; /* [e][PANEL]: its queries */
    real *sums;   /* [ev][PANEL]: of values, by exp(score - most) */
    real most[PANEL], total[PANEL];
} running;

/* A block's panels, and what they take turns with. */
typedef struct work {
    running panel[MOST_QUERIES / PANEL];
    real *scores;          /* [KEYS][PANEL] */
    real *factors;         /* the same, of a dropout */
    real *k_room, *v_room; /* [KEYS][e or ev] */
    real *room;            /* [PANEL][e or ev] */
    bool gather;           /* keys and values, for panels that take turns with them */
} work;

static int64_t room_for(const pc__attention *a, int64_t queries)
{
    return (a->e + a->ev) * (queries + KEYS) + (a->p > 0 ? 2 : 1) * KEYS * PANEL + PANEL * PC__MAX(a->e, a->ev);
}

static void begin(work *w, const pc__attention *a, real *scratch, int64_t batch, int64_t query, int64_t end)
{
    w->scores = scratch, w->factors = scratch + KEYS * PANEL;
    scratch += (a->p > 0 ? 2 : 1) * KEYS * PANEL;
    w->room = scratch, scratch += PANEL * PC__MAX(a->e, a->ev);
    w->k_room = scratch, scratch += KEYS * a->e;
    w->v_room = scratch, scratch += KEYS * a->ev;
    w->gather = end - query > PANEL;
    for (int n = 0; query + n * PANEL < end; n++, scratch += (a->e + a->ev) * PANEL) {
        running *r = &w->panel[n];
        *r = (running){.p = panel_of(batch, query + n * PANEL, end), .turned = scratch, .sums = scratch + a->e * PANEL};
        for (int i = 0; i < PANEL; i++)
            r->most[i] = -(real)INFINITY;
        const real_rows q = rows_of(a, &a->q, batch, r->p.query, r->p.count, a->e, w->room, false);
        take_turned(&q, &r->p, a->e, (real)a->scale, r->turned);
        if (a->s == 0)
            memset(r->sums, 0, (size_t)(a->ev * PANEL) * sizeof(real));
    }
}

/* The new maxima, into `most`, and what they are as numbers that can be subtracted; exp(old - new) into `shrink`. */
static void raise_most(running *r, const real *scores, int64_t keys, real *subtract, real *shrink)
{
    const int vectors = r->p.vectors;
    for (int v = 0; v < vectors; v++) {
        vec most = AT(r->most + v * W);
        for (int64_t j = 0; j < keys; j++) {
            const vec x = LOAD(scores + j * PANEL + v * W);
            most = choose(x > most, x, most);
        }
        AT(subtract + v * W) = where(most > -(real)INFINITY, most);
        AT(shrink + v * W) = AT(r->most + v * W) - AT(subtract + v * W);
        AT(r->most + v * W) = most;
    }
    for (int i = 0; i < vectors * W; i++)
        shrink[i] = EXP(shrink[i]);
}

static void add_totals(running *r, const real *scores, int64_t keys, const real *shrink)
{
    for (int v = 0; v < r->p.vectors; v++) {
        vec even = {0}, odd = {0};
        const real *at = scores + v * W;
        for (int64_t j = 0; j + 1 < keys; j += 2, at += 2 * PANEL)
            even += LOAD(at), odd += LOAD(at + PANEL);
        if (keys % 2)
            even += LOAD(at);
        AT(r->total + v * W) = AT(r->total + v * W) * AT(shrink + v * W) + (even + odd);
    }
}

static void scale_lanes(real *values, int64_t rows, int vectors, const real *by)
{
    for (int64_t e = 0; e < rows; e++)
        for (int v = 0; v < vectors; v++)
            AT(values + e * PANEL + v * W) *= AT(by + v * W);
}

static void attend(const pc__attention *a, const work *w, running *r, const real_rows *k, const real_rows *v,
                   int64_t key, int64_t keys)
{
    real subtract[PANEL], shrink[PANEL];
    const panel *p = &r->p;
    score(a, p, r->turned, k, key, keys, w->scores);
    raise_most(r, w->scores, keys, subtract, shrink);
    exp_of(w->scores, subtract, keys, p->vectors);
    add_totals(r, w->scores, keys, shrink);
    if (a->p > 0) {
        draw_factors(a, p, key, keys, w->factors);
        weaken(w->scores, w->factors, keys, p->vectors);
    }
    if (key > 0)
        scale_lanes(r->sums, a->ev, p->vectors, shrink);
    multiply(v->at, v->column, v->row, a->ev, keys, w->scores, p, r->sums, key > 0);
}

static void finish(const pc__attention *a, const work *w, running *r)
{
    real by[PANEL];
    const panel *p = &r->p;
    for (int i = 0; i < p->vectors * W; i++)
        by[i] = r->total[i] == 0 ? 0 : 1 / r->total[i];
    scale_lanes(r->sums, a->ev, p->vectors, by);
    put_turned(a, &a->y, p, a->ev, r->sums, w->room);
    real *norms = a->norms ? (real *)a->norms + p->batch * a->l + p->query : NULL;
    for (int64_t i = 0; norms && i < p->count; i++)
        norms[i] = r->total[i] == 0 ? (real)INFINITY : r->most[i] + LOG(r->total[i]);
}

static void block_run(void *context, int64_t task)
{
    const forward *f = context;
    const pc__attention *a = f->a;
    const int64_t batch = task / f->blocks, first = task % f->blocks * f->queries;
    const int64_t end = PC__MIN(first + f->queries, a->l);
    work w;
    begin(&w, a, f->scratch + pc__thread() * f->room, batch, first, end);
    for (int64_t key = 0, most; (most = keys_seen(a, key, KEYS, end)) > 0; key += KEYS) {
        const real_rows k = rows_of(a, &a->k, batch, key, most, a->e, w.k_room, w.gather);
        const real_rows v = rows_of(a, &a->v, batch, key, most, a->ev, w.v_room, w.gather);
        for (int n = 0; first + n * PANEL < end; n++) {
            running *r = &w.panel[n];
            const int64_t keys = keys_seen(a, key, most, r->p.query + r->p.count);
            if (keys > 0)
                attend(a, &w, r, &k, &v, key, keys);
        }
    }
    for (int n = 0; first + n * PANEL < end; n++)
        finish(a, &w, &w.panel[n]);
}

/* Queries of a task, by sizes alone; results do not depend on it. */
static int64_t queries_of_task(const pc__attention *a)
{
    enum { TASKS = 32 };
    int64_t queries = MOST_QUERIES;
    while (queries > QUERIES && (queries / 2 >= a->l || a->batches * a->l < TASKS * queries))
        queries /= 2;
    return queries;
}

pc_status PC__R(attention)(const pc__attention *a)
{
    const int64_t queries = queries_of_task(a), blocks = (a->l + queries - 1) / queries;
    const int64_t flops = 2 * a->batches * a->l * a->s * (a->e + a->ev + 10);
    const int threads = pc__threads(flops);
    forward f = {a, queries, blocks, NULL, round_up(room_for(a, queries), 64)};
    if (a->batches * blocks == 0)
        return PC_OK;
    if (PC__R(attention_is_few)(a))
        return PC__R(attention_few)(a);
    f.scratch = pc__alloc_aligned((size_t)(threads * f.room) * sizeof(real), 64);
    if (!f.scratch)
        return PC_ERR_MEMORY;
    pc__parallel(threads, a->batches * blocks, block_run, &f);
    pc__free(f.scratch);
    return PC_OK;
}
