/* attention_few.c: attention of a query or two against keys that lie dense: lanes of vectors are the numbers of a key, since
 * those of attention.c, the queries, would have no work. A task is a matrix of the batch. */
#include "cpu/level/attention_part.h"
#include "cpu/level/gemm_dot.h"

#include "base/parallel.h"

enum { BLOCK = 256, MOST = W / 4 < 1 ? 1 : W / 4 > DOT_ROWS ? DOT_ROWS : W / 4 };

/* What a task works in, for each query. */
typedef struct few {
    real scores[MOST][BLOCK], most[MOST], total[MOST];
    real *sums; /* [MOST][ev] */
} few;

typedef struct forward {
    const pc__attention *a;
    real *scratch;
} forward;

bool PC__R(attention_is_few)(const pc__attention *a)
{
    const bool dense = a->q.column == 1 && a->k.column == 1 && a->v.column == 1;
    return a->l <= MOST && dense && a->p == 0 && a->e >= W && a->ev % W == 0 && a->s > 1;
}

static void take_products(const pc__attention *a, int64_t batch, int64_t key, int64_t keys, few *f)
{
    const real *q = matrix(a, &a->q, batch), *k = matrix(a, &a->k, batch) + key * a->k.row;
    for (int64_t j = 0; j < keys; j += DOT_COLUMNS) {
        const int64_t columns = PC__MIN(DOT_COLUMNS, keys - j);
        vec sums[DOT_ROWS * DOT_COLUMNS];
        const dot d = {.k = a->e / W * W,
                       .rest = a->e % W,
                       .a = q,
                       .a_row = a->q.row,
                       .b = k + j * a->k.row,
                       .b_column = a->k.row,
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
    const bool *allowed = m->data && a->mask_is_bool ? (const bool *)m->data + at : NULL;
    const real *added = m->data && !a->mask_is_bool ? (const real *)m->data + at : NULL;
    for (int64_t j = 0; m->data && j < keys; j++)
        if (allowed)
            scores[j] = allowed[j * m->column] ? scores[j] : -(real)INFINITY;
        else
            scores[j] += added[j * m->column];
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
    for (int64_t column = 0; column < a->ev; column += TILE_WIDTH) {
        tile t = {.planes = 1,
                  .segments = 1,
                  .k = keys,
                  .a = f->scores[0],
                  .a_row = BLOCK,
                  .a_k = 1,
                  .b = matrix(a, &a->v, batch) + key * a->v.row + column,
                  .b_k = a->v.row,
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
    few f = {.sums = w->scratch + pc__thread() * MOST * a->ev};
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
    real *y = (real *)a->y.data + pc__matrix_at(a, &a->y, batch);
    for (int64_t i = 0; i < a->l; i++) {
        const real total = f.total[i], by = total == 0 ? 0 : 1 / total;
        for (int64_t e = 0; e < a->ev; e++)
            y[i * a->y.row + e * a->y.column] = f.sums[i * a->ev + e] * by;
        if (a->norms)
            ((real *)a->norms)[batch * a->l + i] = total == 0 ? (real)INFINITY : f.most[i] + LOG(total);
    }
}

pc_status PC__R(attention_few)(const pc__attention *a)
{
    const int threads = pc__threads(2 * a->batches * a->l * a->s * (a->e + a->ev + 10));
    forward w = {a, pc__alloc_aligned((size_t)(threads * MOST * a->ev + 1) * sizeof(real), 64)};
    if (!w.scratch)
        return PC_ERR_MEMORY;
    pc__parallel(threads, a->batches, matrix_run, &w);
    pc__free(w.scratch);
    return PC_OK;
}
