/* attention_part.h: what attention's passes share: scores of a panel of queries, which lie beside each other in the lanes of
 * vectors, against some keys, one below the other. So a row's maximum and sum are sums of vectors, and keys and values are
 * read as scalars, wherever they lie. */
#ifndef PC__ATTENTION_PART_H
#define PC__ATTENTION_PART_H

#include "base/philox.h"
#include "cpu/level/attention.h"
#include "cpu/level/micro.h"
#include "cpu/level/turn.h"
#include "ops/attention.h"

#include <math.h>

enum {
    QUERIES = 64, /* of a block: whole panels at every level */
    KEYS = 64,    /* of a block, whose scores, keys and values stay in the first-level cache */
    PANEL = TILE_WIDTH,
    PANELS = QUERIES / PANEL,
};

/* Some queries of one matrix of the batch. */
typedef struct panel {
    int64_t batch, query, count; /* the first one, and how many: PANEL at most */
    int vectors;
} panel;

INLINE panel panel_of(int64_t batch, int64_t query, int64_t end)
{
    const int64_t count = PC__MIN(end - query, PANEL);
    return (panel){batch, query, count, (int)((count + W - 1) / W)};
}

INLINE bool in_halves(const pc__attention *a)
{
    return sizeof(real) == sizeof(float) && pc__is_half(a->type);
}

/* Row `i` of the batch's matrix m, as it lies. */
INLINE char *row_of(const pc__attention *a, const pc__matrices *m, int64_t batch, int64_t i)
{
    return (char *)m->data + (pc__matrix_at(a, m, batch) + i * m->row) * (int64_t)pc_dtype_size(a->type);
}

/* Rows as the kernels read them: where they lie, or where they were copied to. */
typedef struct real_rows {
    const real *at;
    int64_t row, column;
} real_rows;

/* attention_rows.c: numbers of a row, `column` apart in memory, and back. */
#define take_row PC__R(attention_take_row)
#define put_row PC__R(attention_put_row)
void take_row(const pc__attention *a, const void *from, int64_t column, int64_t columns, real *to);
void put_row(const pc__attention *a, void *to, int64_t column, int64_t columns, const real *from);

/* `count` rows of m from `first` on. Into `room` come those of 16 bits, and, if `gather`, those with gaps between them: rows a
 * power of two or so apart would be in each other's place in the cache. */
#define rows_of PC__R(attention_rows_of)
real_rows rows_of(const pc__attention *a, const pc__matrices *m, int64_t batch, int64_t first, int64_t count,
                  int64_t columns, real *room, bool gather);

/* Rows of m from p's queries on, out of turned[columns][PANEL]. Those that are not the kernel's own numbers side by side go
 * through room[PANEL][columns]. */
#define put_turned PC__R(attention_put_turned)
void put_turned(const pc__attention *a, const pc__matrices *m, const panel *p, int64_t columns, const real *turned,
                real *room);

/* Keys from `key` on, `most` of them, that one of the queries before `end` may attend to. */
INLINE int64_t keys_seen(const pc__attention *a, int64_t key, int64_t most, int64_t end)
{
    const int64_t all = PC__MIN(a->s - key, most);
    return a->causal ? PC__MAX(PC__MIN(all, end - key), 0) : all;
}

/* values[rows][PANEL] *= scale */
static inline void scale_rows(real *values, int64_t rows, int vectors, real scale)
{
    for (int64_t e = 0; e < rows; e++)
        for (int v = 0; v < vectors; v++)
            AT(values + e * PANEL + v * W) *= SPLAT(scale);
}

/* to[e][PANEL] = p's rows, times `scale`; lanes beyond them zero. One pass after another: a vector that is read just after
 * parts of it were written waits for memory. */
static inline void take_turned(const real_rows *from, const panel *p, int64_t columns, real scale, real *to)
{
    if (p->count < p->vectors * W)
        for (int64_t e = 0; e < columns; e++)
            AT(to + e * PANEL + (p->vectors - 1) * W) = (vec){0};
    if (from->column == 1)
        pc__turn((char *)to, PANEL * (int64_t)sizeof(real), (const char *)from->at, from->row * (int64_t)sizeof(real),
                 p->count, columns, sizeof(real));
    else
        for (int64_t e = 0; e < columns; e++)
            for (int64_t i = 0; i < p->count; i++)
                to[e * PANEL + i] = from->at[i * from->row + e * from->column];
    if (scale != 1)
        scale_rows(to, columns, p->vectors, scale);
}

/* to[rows][PANEL] (+)= rows of `a`, each `size` long, times the columns of b[size][PANEL]. */
static inline void multiply(const real *a, int64_t a_row, int64_t a_k, int64_t rows, int64_t size, const real *b,
                            const panel *p, real *to, bool add)
{
    tile t = {.planes = 1,
              .segments = 1,
              .k = size,
              .a = a,
              .a_row = a_row,
              .a_k = a_k,
              .b = b,
              .b_k = PANEL,
              .c = to,
              .c_row = PANEL,
              .add = add};
    tile_rows_run(&t, rows, p->vectors);
}

/* A score with what the mask has at an index. */
INLINE real masked(const pc__attention *a, int64_t i, real score)
{
    const void *data = a->mask.data;
    if (a->mask_type == PC_BOOL)
        return ((const bool *)data)[i] ? score : -(real)INFINITY;
    return score + ((const real *)data)[i];
}

static void add_mask(const pc__attention *a, const panel *p, int64_t key, int64_t keys, real *scores)
{
    const pc__matrices *m = &a->mask;
    int64_t at = pc__matrix_at(a, m, p->batch) + p->query * m->row + key * m->column;
    for (int64_t j = 0; j < keys; j++, scores += PANEL, at += m->column)
        for (int64_t i = 0; i < p->count; i++)
            scores[i] = masked(a, at + i * m->row, scores[i]);
}

/* scores[keys][PANEL] of a panel of scaled queries, turned, and keys from number `key` on, which are k's rows. */
static inline void score(const pc__attention *a, const panel *p, const real *turned, const real_rows *k, int64_t key,
                         int64_t keys, real *scores)
{
    multiply(k->at, k->row, k->column, keys, a->e, turned, p, scores, false);
    if (a->mask.data)
        add_mask(a, p, key, keys, scores);
    for (int64_t j = PC__MAX(p->query + 1 - key, 0); a->causal && j < keys; j++)
        for (int64_t i = 0; i < PC__MIN(key + j - p->query, p->count); i++)
            scores[j * PANEL + i] = -(real)INFINITY;
}

/* values[keys][PANEL] = exp(values - of[PANEL]) */
static inline void exp_of(real *values, const real *of, int64_t keys, int vectors)
{
    for (int64_t j = 0; j < keys; j++)
        for (int v = 0; v < vectors; v++)
            AT(values + j * PANEL + v * W) -= AT(of + v * W);
    if (vectors == TILE_VECTORS) {
        for (int64_t i = 0; i < keys * PANEL; i++)
            values[i] = EXP(values[i]);
        return;
    }
    for (int64_t j = 0; j < keys; j++, values += PANEL)
        for (int v = 0; v < vectors; v++)
            for (int i = 0; i < W; i++)
                values[v * W + i] = EXP(values[v * W + i]);
}

/* factors[keys][PANEL]: what a dropout multiplies weights by. */
static inline void draw_factors(const pc__attention *a, const panel *p, int64_t key, int64_t keys, real *factors)
{
    const uint32_t least = (uint32_t)ceil(a->p * 0x1p24);
    const real kept = a->p < 1 ? (real)(1 / (1 - a->p)) : 0;
    const int64_t blocks = pc__attention_blocks(a->s), row = p->batch * a->l + p->query;
    for (int64_t j = key / 4; j * 4 < key + keys; j++)
        for (int64_t i = 0; i < p->count; i++) {
            const pc__words drawn = pc__philox(a->seed, a->stream, (uint64_t)((row + i) * blocks + j));
            for (int64_t k = PC__MAX(j * 4, key); k < PC__MIN(j * 4 + 4, key + keys); k++)
                factors[(k - key) * PANEL + i] = drawn.w[k % 4] >> 8 >= least ? kept : 0;
        }
    for (int64_t j = 0; j < keys; j++)
        for (int64_t i = p->count; i < p->vectors * W; i++)
            factors[j * PANEL + i] = 0;
}

/* values *= factors, of [keys][PANEL] both. */
static inline void weaken(real *values, const real *factors, int64_t keys, int vectors)
{
    for (int64_t j = 0; j < keys; j++)
        for (int v = 0; v < vectors; v++)
            AT(values + j * PANEL + v * W) *= AT(factors + j * PANEL + v * W);
}

/* to[i][row] = turned[columns][PANEL] of p's queries. */
static inline void turn_back(const panel *p, int64_t columns, const real *turned, int64_t row, real *to)
{
    pc__turn((char *)to, row * (int64_t)sizeof(real), (const char *)turned, PANEL * (int64_t)sizeof(real), columns,
             p->count, sizeof(real));
}

#endif
