/* attention_backward.c: the gradients of attention. Weights are computed again from the norms, a block of queries against a
 * block of keys at a time. A task is a run of keys of one matrix of the batch: it has their gradients to itself; those of
 * queries are in parts where there are several runs, which are added up in order. */
#include "cpu/level/attention_part.h"

#include "base/parallel.h"

typedef struct backward {
    const pc__attention *a;
    int64_t runs, keys; /* of a matrix, and the keys of each */
    int64_t e, ev;      /* rounded up to vectors */
    real *parts;        /* [runs][batches][l][e] of dq, or NULL for one run */
    real *scratch;
    int64_t room; /* of it, for a thread */
} backward;

/* What a task works in: turned panels of a block of queries, and its rows as they lie. */
typedef struct work {
    const backward *b;
    int64_t batch, first, end; /* its keys */
    real_rows k, v;            /* those keys and values, */
    real *k_room, *v_room;     /* [keys][e or ev], where they were copied to */
    real_rows q_rows, g_rows;  /* of a block of queries, zero up to whole vectors */
    real *q, *g;               /* [PANELS][e or ev][PANEL] */
    real *y, *y_room;          /* [ev][PANEL], [PANEL][ev] */
    real *weights, *slopes;    /* [PANELS][KEYS][PANEL]: weights, and gradients of scaled scores */
    real *factors;             /* [KEYS][PANEL] of a dropout */
    real *dq;                  /* [PANELS][e][PANEL] */
    real *norms, *means;       /* [QUERIES]: of each row, and the mean of its weights' gradients, by weight */
    real *q_room, *g_room;     /* [QUERIES][rounded]: rows that are no whole vectors where they lie */
    real *dk, *dv;             /* [keys][rounded] */
} work;

/* The next n numbers of scratch memory, which may be NULL where only its size is wanted. */
static real *some(real *scratch, int64_t *used, int64_t n)
{
    const int64_t at = *used;
    *used += round_up(n, 16);
    return scratch ? scratch + at : NULL;
}

static work work_in(const backward *b, real *scratch, int64_t *used)
{
    const int64_t e = b->a->e, ev = b->a->ev;
    return (work){.b = b,
                  .k_room = some(scratch, used, b->keys * e),
                  .v_room = some(scratch, used, b->keys * ev),
                  .q = some(scratch, used, QUERIES * e),
                  .g = some(scratch, used, QUERIES * ev),
                  .y = some(scratch, used, PANEL * ev),
                  .y_room = some(scratch, used, PANEL * ev),
                  .weights = some(scratch, used, QUERIES * KEYS),
                  .slopes = some(scratch, used, QUERIES * KEYS),
                  .factors = some(scratch, used, b->a->p > 0 ? KEYS * PANEL : 0),
                  .dq = some(scratch, used, QUERIES * e),
                  .norms = some(scratch, used, QUERIES),
                  .means = some(scratch, used, QUERIES),
                  .q_room = some(scratch, used, QUERIES * b->e),
                  .g_room = some(scratch, used, QUERIES * b->ev),
                  .dk = some(scratch, used, b->keys * b->e),
                  .dv = some(scratch, used, b->keys * b->ev)};
}

INLINE real_rows from_row(real_rows from, int64_t first)
{
    return (real_rows){from.at + first * from.row, from.row, from.column};
}

/* Rows of queries that vectors read whole: those of m where they lie so, else in `room`. */
static real_rows whole_rows(const work *w, const pc__matrices *m, int64_t query, int64_t count, int64_t columns,
                            int64_t width, real *room)
{
    const pc__attention *a = w->b->a;
    if (!in_halves(a) && m->column == 1 && columns == width)
        return rows_of(a, m, w->batch, query, count, columns, room, false);
    for (int64_t i = 0; i < count; i++) {
        take_row(a, row_of(a, m, w->batch, query + i), m->column, columns, room + i * width);
        for (int64_t e = columns; e < width; e++)
            room[i * width + e] = 0;
    }
    return (real_rows){room, width, 1};
}

/* A panel of queries, turned, and what its rows need. */
static void take_panel(const work *w, int64_t n, int64_t query, int64_t end)
{
    const pc__attention *a = w->b->a;
    const panel p = panel_of(w->batch, query, end);
    real *g = w->g + n * a->ev * PANEL, *norms = w->norms + n * PANEL, *means = w->means + n * PANEL;
    const real_rows q_rows = from_row(w->q_rows, n * PANEL), g_rows = from_row(w->g_rows, n * PANEL);
    const real_rows y_rows = rows_of(a, &a->y, w->batch, p.query, p.count, a->ev, w->y_room, false);
    take_turned(&q_rows, &p, a->e, (real)a->scale, w->q + n * a->e * PANEL);
    take_turned(&g_rows, &p, a->ev, 1, g);
    take_turned(&y_rows, &p, a->ev, 1, w->y);
    for (int v = 0; v < p.vectors; v++) {
        vec sum = {0};
        for (int64_t e = 0; e < a->ev; e++)
            sum += LOAD(g + e * PANEL + v * W) * LOAD(w->y + e * PANEL + v * W);
        AT(means + v * W) = sum;
    }
    const real *from = (const real *)a->norms + w->batch * a->l + p.query;
    for (int64_t i = 0; i < p.vectors * W; i++)
        norms[i] = i < p.count ? from[i] : (real)INFINITY;
}

/* Weights, their slopes, and what they add to dq, for a panel and some keys. */
static void slope(const work *w, const panel *p, int64_t n, int64_t key, int64_t keys)
{
    const pc__attention *a = w->b->a;
    real *weights = w->weights + n * KEYS * PANEL, *slopes = w->slopes + n * KEYS * PANEL;
    const int64_t at = key - w->first;
    const real_rows k = from_row(w->k, at), v = from_row(w->v, at);
    score(a, p, w->q + n * a->e * PANEL, &k, key, keys, weights);
    exp_of(weights, w->norms + n * PANEL, keys, p->vectors);
    multiply(v.at, v.row, v.column, keys, a->ev, w->g + n * a->ev * PANEL, p, slopes, false);
    if (a->p > 0) {
        draw_factors(a, p, key, keys, w->factors);
        weaken(slopes, w->factors, keys, p->vectors);
    }
    for (int64_t j = 0; j < keys; j++)
        for (int i = 0; i < p->vectors; i++) {
            const int64_t lane = j * PANEL + i * W;
            AT(slopes + lane) = LOAD(weights + lane) * (LOAD(slopes + lane) - LOAD(w->means + n * PANEL + i * W));
        }
    if (a->p > 0)
        weaken(weights, w->factors, keys, p->vectors);
    multiply(k.at, k.column, k.row, a->e, keys, slopes, p, w->dq + n * a->e * PANEL, key > w->first);
}

/* to[rows][width] += the sums over queries of weights[PANELS][KEYS][PANEL], from panel `first` on, and rows[queries][width]. */
static void add_products(const real *weights, int64_t rows, int64_t first, int64_t queries, const real *b,
                         int64_t b_row, int64_t width, real *to)
{
    const int64_t whole = queries / PANEL, rest = queries % PANEL;
    for (int64_t column = 0; column < width; column += TILE_WIDTH) {
        const int vectors = (int)(PC__MIN(width - column, TILE_WIDTH) / W);
        for (int last = 0; last < 2; last++) {
            const int64_t from = last ? whole : first;
            tile t = {.planes = 1,
                      .segments = last ? 1 : whole - first,
                      .k = last ? rest : PANEL,
                      .a = weights + from * KEYS * PANEL,
                      .a_row = PANEL,
                      .a_k = 1,
                      .a_segment = KEYS * PANEL,
                      .b = b + from * PANEL * b_row + column,
                      .b_k = b_row,
                      .b_segment = PANEL * b_row,
                      .c = to + column,
                      .c_row = width,
                      .add = true};
            if (t.segments > 0 && t.k > 0)
                tile_rows_run(&t, rows, vectors);
        }
    }
}

/* What a block of queries adds to the gradients of some keys; of a causal one those in front of a key are left out. */
static void add_to_keys(const work *w, int64_t query, int64_t queries, int64_t key, int64_t keys)
{
    const pc__attention *a = w->b->a;
    const int64_t e = w->b->e, ev = w->b->ev, step = a->causal ? PANEL : KEYS;
    const real_rows *q = &w->q_rows, *g = &w->g_rows;
    for (int64_t j = 0; j < keys; j += step) {
        const int64_t first = a->causal ? PC__MAX(key + j - query, 0) / PANEL : 0, rows = PC__MIN(step, keys - j);
        const int64_t at = key + j - w->first;
        add_products(w->slopes + j * PANEL, rows, first, queries, q->at, q->row, e, w->dk + at * e);
        add_products(w->weights + j * PANEL, rows, first, queries, g->at, g->row, ev, w->dv + at * ev);
    }
}

static void put_queries(const work *w, int64_t n, int64_t query, int64_t end, int64_t run)
{
    const pc__attention *a = w->b->a;
    const panel p = panel_of(w->batch, query, end);
    real *turned = w->dq + n * a->e * PANEL;
    scale_rows(turned, a->e, p.vectors, (real)a->scale);
    if (w->b->parts)
        turn_back(&p, a->e, turned, a->e, w->b->parts + ((run * a->batches + w->batch) * a->l + p.query) * a->e);
    else
        put_turned(a, &a->dq, &p, a->e, turned, w->q_room); /* whose rows have had their turn */
}

static void block_run(work *w, int64_t run, int64_t query)
{
    const pc__attention *a = w->b->a;
    const int64_t queries = PC__MIN(QUERIES, a->l - query), end = query + queries;
    w->q_rows = whole_rows(w, &a->q, query, queries, a->e, w->b->e, w->q_room);
    w->g_rows = whole_rows(w, &a->g, query, queries, a->ev, w->b->ev, w->g_room);
    if (a->s == 0) /* else the first keys begin it */
        memset(w->dq, 0, (size_t)(QUERIES * a->e) * sizeof(real));
    for (int64_t n = 0; n * PANEL < queries; n++)
        take_panel(w, n, query + n * PANEL, end);
    for (int64_t key = w->first; key < w->end; key += KEYS) {
        const int64_t keys = keys_seen(a, key, PC__MIN(KEYS, w->end - key), end);
        for (int64_t n = 0; n * PANEL < queries; n++) {
            const panel p = panel_of(w->batch, query + n * PANEL, end);
            slope(w, &p, n, key, keys_seen(a, key, keys, p.query + p.count));
        }
        add_to_keys(w, query, queries, key, keys);
    }
    for (int64_t n = 0; n * PANEL < queries; n++)
        put_queries(w, n, query + n * PANEL, end, run);
}

static void put_keys(const work *w, const pc__matrices *m, real *from, int64_t width, int64_t columns, real scale)
{
    for (int64_t j = w->first; j < w->end; j++, from += width) {
        for (int64_t e = 0; e < columns; e++)
            from[e] *= scale;
        put_row(w->b->a, row_of(w->b->a, m, w->batch, j), m->column, columns, from);
    }
}

static void run_keys(void *context, int64_t task)
{
    const backward *b = context;
    const pc__attention *a = b->a;
    int64_t used = 0;
    work w = work_in(b, b->scratch + pc__thread() * b->room, &used);
    const int64_t run = task % b->runs;
    w.batch = task / b->runs, w.first = run * b->keys, w.end = PC__MIN(w.first + b->keys, a->s);
    const int64_t count = w.end - w.first;
    w.k = rows_of(a, &a->k, w.batch, w.first, count, a->e, w.k_room, a->l > PANEL);
    w.v = rows_of(a, &a->v, w.batch, w.first, count, a->ev, w.v_room, a->l > PANEL);
    memset(w.dk, 0, (size_t)(count * b->e) * sizeof(real));
    memset(w.dv, 0, (size_t)(count * b->ev) * sizeof(real));
    for (int64_t query = 0; query < a->l; query += QUERIES)
        block_run(&w, run, query);
    put_keys(&w, &a->dk, w.dk, b->e, a->e, (real)a->scale);
    put_keys(&w, &a->dv, w.dv, b->ev, a->ev, 1);
}

/* Some rows of dq, as the sum of their parts. */
static void add_parts(void *context, int64_t task)
{
    const backward *b = context;
    const pc__attention *a = b->a;
    const int64_t blocks = (a->l + QUERIES - 1) / QUERIES, batch = task / blocks, first = task % blocks * QUERIES;
    for (int64_t i = first; i < PC__MIN(first + QUERIES, a->l); i++) {
        real *sum = b->parts + (batch * a->l + i) * a->e;
        for (int64_t run = 1; run < b->runs; run++) {
            const real *part = sum + run * a->batches * a->l * a->e;
            for (int64_t e = 0; e < a->e; e++)
                sum[e] += part[e];
        }
        put_row(a, row_of(a, &a->dq, batch, i), a->dq.column, a->e, sum);
    }
}

/* Runs enough for many threads, by sizes alone. */
static int64_t keys_of_run(const pc__attention *a)
{
    enum { TASKS = 16, LEAST = 4 * KEYS };
    const int64_t runs = PC__MAX(PC__MIN((TASKS + a->batches - 1) / PC__MAX(a->batches, 1), a->s / LEAST), 1);
    return round_up((a->s + runs - 1) / runs, KEYS);
}

pc_status PC__R(attention_backward)(const pc__attention *a)
{
    const int threads = pc__threads(2 * a->batches * a->l * a->s * (3 * a->e + 2 * a->ev + 10));
    backward b = {.a = a, .keys = keys_of_run(a), .e = round_up(a->e, W), .ev = round_up(a->ev, W)};
    b.runs = PC__MAX((a->s + b.keys - 1) / PC__MAX(b.keys, 1), 1);
    if (a->batches == 0)
        return PC_OK;
    (void)work_in(&b, NULL, &b.room);
    const int64_t parts = b.runs > 1 ? b.runs * a->batches * a->l * a->e : 0;
    b.scratch = pc__alloc_aligned((size_t)(threads * b.room + parts) * sizeof(real), 64);
    if (!b.scratch)
        return PC_ERR_MEMORY;
    b.parts = parts ? b.scratch + threads * b.room : NULL;
    pc__parallel(threads, a->batches * b.runs, run_keys, &b);
    if (parts)
        pc__parallel(threads, a->batches * ((a->l + QUERIES - 1) / QUERIES), add_parts, &b);
    pc__free(b.scratch);
    return PC_OK;
}
