/* attention_few.c: attention of a query or two against keys that lie dense: lanes of vectors are the numbers of a key, since
 * those of attention.c, the queries, would have no work. A task is a matrix of the batch. */
#include "cpu/level/attention_part.h"
#include "cpu/level/gemm_dot.h"

#include "base/parallel.h"

enum { BLOCK = 256, MOST = W / 4 < 1 ? 1 : W / 4 > DOT_ROWS ? DOT_ROWS : W / 4 };

/* What a task works in, for each query. */
typedef struct few {
    real scores[MOST][BLOCK], most[MOST], total[MOST];
    real *sums;                     /* [MOST][ev] */
    real *q_room, *k_room, *v_room; /* [MOST or BLOCK][e or ev], of 16 bits */
    real_rows q;
} few;

typedef struct forward {
    const pc__attention *a;
    real *scratch;
    int64_t room; /* of it, for a thread */
} forward;

bool PC__R(attention_is_few)(const pc__attention *a)
{
    const bool dense = a->q.column == 1 && a->k.column == 1 && a->v.column == 1;
    return a->l <= MOST && dense && a->p == 0 && a->e >= W && a->ev % W == 0;
}

static void take_products(const pc__attention *a, int64_t batch, int64_t key, int64_t keys, few *f)
{
    const real_rows k = rows_of(a, &a->k, batch, key, keys, a->e, f->k_room, false);
    for (int64_t j = 0; j < keys; j += DOT_COLUMNS) {
        const int64_t columns = PC__MIN(DOT_COLUMNS, keys - j);
        vec sums[DOT_ROWS * DOT_COLUMNS];
        const dot d = {.k = a->e / W * W,
                       .rest = a->e % W,
                       .a = f->q.at,
                       .a_row = f->q.row,
                       .b = k.at + j * k.row,
                       .b_column = k.row,
                       .sums = sums};
        dot_functions[a->l][columns](&d);
        for (int64_t i = 0; i < a->l; i++)
            for (int64_t c = 0; c < columns; c++)
                f->scores[i][j + c] = vector_sum(&sums[i * DOT_COLUMNS + c]) * (real)a->scale;
    }
}

static void mask_row(const pc__attention *a, int64_t batch, int64_t query, int64_t key, int64_t keys, real *scores)
{
    const pc__matrices *m = &a->mask;
    const int64_t at = m->data ? pc__matrix_at(a, m, batch) + query * m->row + key * m->column : 0;
    for (int64_t j = 0; m->data && j < keys; j++)
        scores[j] = masked(a, at + j * m->column, scores[j]);
    for (int64_t j = PC__MAX(query + 1 - key, 0); a->causal && j < keys; j++)
        scores[j] = -(real)INFINITY;
}

/* A row of scores becomes weights, and what there is of its sums shrinks. */
static void weigh(const pc__attention *a, few *f, int64_t i, int64_t keys)
{
    real *row = f->scores[i], most = f->most[i], sum = 0;
    for (int64_t j = 0; j < keys; j++)
        most = row[j] > most ? row[j] : most;
    const real subtract = most > -(real)INFINITY ? most : 0, shrink = EXP(f->most[i] - subtract);
    for (int64_t j = 0; j < keys; j++)
        row[j] = EXP(row[j] - subtract);
    for (int64_t j = 0; j < keys; j++)
        sum += row[j];
    for (int64_t e = 0; e < a->ev; e++)
        f->sums[i * a->ev + e] *= shrink;
    f->most[i] = most;
    f->total[i] = f->total[i] * shrink + sum;
}

static void add_values(const pc__attention *a, int64_t batch, int64_t key, int64_t keys, few *f)
{
    const real_rows v = rows_of(a, &a->v, batch, key, keys, a->ev, f->v_room, false);
    for (int64_t column = 0; column < a->ev; column += TILE_WIDTH) {
        tile t = {.planes = 1,
                  .segments = 1,
                  .k = keys,
                  .a = f->scores[0],
                  .a_row = BLOCK,
                  .a_k = 1,
                  .b = v.at + column,
                  .b_k = v.row,
                  .c = f->sums + column,
                  .c_row = a->ev,
                  .add = true};
        tile_rows_run(&t, a->l, (int)(PC__MIN(a->ev - column, TILE_WIDTH) / W));
    }
}

static void matrix_run(void *context, int64_t batch)
{
    const forward *w = context;
    const pc__attention *a = w->a;
    few f = {.sums = w->scratch + pc__thread() * w->room};
    f.q_room = f.sums + MOST * a->ev, f.k_room = f.q_room + MOST * a->e, f.v_room = f.k_room + BLOCK * a->e;
    f.q = rows_of(a, &a->q, batch, 0, a->l, a->e, f.q_room, false);
    memset(f.sums, 0, (size_t)(MOST * a->ev) * sizeof(real));
    for (int64_t i = 0; i < a->l; i++)
        f.most[i] = -(real)INFINITY;
    for (int64_t key = 0, keys; (keys = keys_seen(a, key, BLOCK, a->l)) > 0; key += BLOCK) {
        take_products(a, batch, key, keys, &f);
        for (int64_t i = 0; i < a->l; i++) {
            mask_row(a, batch, i, key, keys, f.scores[i]);
            weigh(a, &f, i, keys);
        }
        add_values(a, batch, key, keys, &f);
    }
    for (int64_t i = 0; i < a->l; i++) {
        const real total = f.total[i], by = total == 0 ? 0 : 1 / total;
        for (int64_t e = 0; e < a->ev; e++)
            f.sums[i * a->ev + e] *= by;
        put_row(a, row_of(a, &a->y, batch, i), a->y.column, a->ev, f.sums + i * a->ev);
        if (a->norms)
            ((real *)a->norms)[batch * a->l + i] = total == 0 ? (real)INFINITY : f.most[i] + LOG(total);
    }
}

pc_status PC__R(attention_few)(const pc__attention *a)
{
    const int threads = pc__threads(2 * a->batches * a->l * a->s * (a->e + a->ev + 10));
    const int64_t copied = in_halves(a) ? MOST * a->e + BLOCK * (a->e + a->ev) : 0;
    forward w = {.a = a, .room = round_up(MOST * a->ev + copied, 64)};
    w.scratch = pc__alloc_aligned((size_t)(threads * w.room) * sizeof(real), 64);
    if (!w.scratch)
        return PC_ERR_MEMORY;
    pc__parallel(threads, a->batches, matrix_run, &w);
    pc__free(w.scratch);
    return PC_OK;
}
