/* gemm_pairs.c: products of bfloat16 by the tile of pairs.h, which reads both factors as they are: rows of A along k, columns
 * of B side by side, in pairs along k. Few rows against rows of B along k, or long ones, are multiplied along k instead. */
#include "cpu/level/gemm_half.h"

#if defined(PC__LEVEL_v4)
#include "cpu/level/each.h"
#include "cpu/level/pairs.h"
#include "cpu/level/turn.h"
#include "base/parallel.h"

enum {
    ROWS = 96,           /* of a task */
    SUMS = 4096,         /* that wait in the first-level cache to be rounded, */
    STEP = 6,            /* but so many rows at least, */
    STEP_TILES = 32,     /* or by matrix registers */
    COLUMNS = 1024,      /* of B at most that are packed at once, */
    COLUMNS_TILES = 256, /* or by matrix registers, whose sums are more rows, */
    TURNED = 1 << 16,    /* numbers of A at most that are turned at once, */
    TURNED_ROWS = 12,    /* but so many rows at least */
    GROUP = 1 << 17,     /* and numbers: they stay in the second-level cache */
    ON_STACK = 1 << 14,  /* bytes of a small product */
    FEW_ROWS = 4,        /* that are multiplied along k, */
    DOT_ROWS = 64,       /* or so many at most; of a task there, */
    DOT_ROWS_TILES = 8,  /* where there are matrix registers, */
    DOT_DEPTH = 256,     /* where k is this at least, which pays for adding up vectors */
    DOT_DEPTH_FEW = 64,  /* with few rows */
    DOT_COLUMNS = 24,    /* of a task there, */
    DOT_COLUMNS_FEW = 8, /* which are multiplied along k with any rows, as a tile has many more */
    FEW_COLUMNS = 1024,  /* of a task of few rows by rows of B */
    FEW_LEAST = 1 << 16, /* numbers of B for one row, and eight times as many for each one more */
    SHORT = 1 << 14,     /* products at most that matrix registers take longer to begin than vectors to do */
};

typedef struct work {
    const half_product *p;
    int64_t depth;           /* pairs along k */
    int64_t column, columns; /* of the group of panels that is packed */
    int64_t rows, step;      /* of a task; of them together */
    uint32_t *packed;        /* [panel of TILE_WIDTH columns][pair][width of the panel] */
    pc_bf16 *turned;    /* rows of A along k, in whole pairs, where several groups of columns use them; else NULL */
    char *rooms;        /* of each thread */
    int64_t size, sums; /* bytes of one; numbers of C in it */
} work;

/* --- along k --- */

static void dots_task(void *context, int64_t task)
{
    const half_product *p = context;
    const pc__gemm *g = p->g;
    const int64_t across = (g->n + DOT_COLUMNS - 1) / DOT_COLUMNS, row = task / across * DOT_ROWS;
    const int64_t first = task % across * DOT_COLUMNS, columns = PC__MIN(DOT_COLUMNS, g->n - first);
    const int64_t rows = PC__MIN(DOT_ROWS, g->m - row);
    float values[DOT_ROWS * DOT_COLUMNS];
    for (int64_t j = 0; j < columns; j += PAIR_DOT_COLUMNS)
        for (int64_t r = 0; r < rows; r += PAIR_DOT_ROWS) {
            const pair_dot d = {.k = g->k,
                                .a = half_at(g->a, (row + r) * g->a_rs),
                                .a_row = g->a_rs,
                                .b = half_at(g->b, (first + j) * g->b_cs),
                                .b_column = g->b_cs,
                                .values = values + r * columns + j,
                                .value_row = columns};
            pair_dot_run(&d, PC__MIN(PAIR_DOT_ROWS, rows - r), PC__MIN(PAIR_DOT_COLUMNS, columns - j));
        }
    finish_block(p, values, row, rows, first, columns);
}

static bool is_along(const pc__gemm *g)
{
    const int64_t few = PC__MIN(g->m, g->n);
    const bool narrow = g->m <= (pair_tiles_there() ? DOT_ROWS_TILES : DOT_ROWS) || g->n <= DOT_COLUMNS_FEW;
    return g->a_cs == 1 && g->b_rs == 1 && (few <= FEW_ROWS ? g->k >= DOT_DEPTH_FEW : narrow && g->k >= DOT_DEPTH);
}

/* --- few rows by rows of B where they lie --- */

typedef struct few_rows {
    const half_product *p;
    const uint32_t *pairs; /* [m][depth] of A */
    int64_t depth;
} few_rows;

static void few_task(void *context, int64_t task)
{
    const few_rows *f = context;
    const pc__gemm *g = f->p->g;
    const int64_t first = task * FEW_COLUMNS, columns = PC__MIN(FEW_COLUMNS, g->n - first);
    float sums[FEW_ROWS][FEW_COLUMNS] = {0}, values[FEW_ROWS * FEW_COLUMNS];
    for (int64_t i = 0; i < f->depth; i += PAIR_FEW) {
        const pc_bf16 *rows[2 * PAIR_FEW];
        for (int k = 0; k < 2 * PAIR_FEW; k++)
            rows[k] = 2 * i + k < g->k ? half_at(g->b, (2 * i + k) * g->b_rs + first) : NULL;
        for (int64_t r = 0; r < g->m; r++)
            pair_few_run(&(pair_few){.pairs = PC__MIN(PAIR_FEW, f->depth - i),
                                     .columns = columns,
                                     .a = f->pairs + r * f->depth + i,
                                     .b = rows,
                                     .sums = sums[r]});
    }
    for (int64_t r = 0; r < g->m; r++)
        pair_few_order(values + r * columns, sums[r], columns);
    finish_block(f->p, values, 0, g->m, first, columns);
}

static pc_status in_few_rows(const half_product *p)
{
    const pc__gemm *g = p->g;
    const int64_t depth = (g->k + 1) / 2;
    uint32_t *pairs = pc__alloc_aligned((size_t)(g->m * depth) * sizeof *pairs, 64);
    if (!pairs)
        return PC_ERR_MEMORY;
    for (int64_t r = 0; r < g->m; r++)
        for (int64_t k = 0; k < 2 * depth; k += 2)
            pairs[r * depth + k / 2] = pair_of(half_at(g->a, r * g->a_rs + k * g->a_cs), g->a_cs, k + 1 < g->k);
    few_rows f = {p, pairs, depth};
    pc__parallel(pc__threads((g->m + 8) * g->n * g->k), (g->n + FEW_COLUMNS - 1) / FEW_COLUMNS, few_task, &f);
    pc__free(pairs);
    return PC_OK;
}

/* --- columns side by side --- */

/* `count` runs of k numbers, one behind the other in whole pairs. */
static void take_runs(const work *w, const pc_bf16 *from, int64_t step, int64_t along, int64_t count, pc_bf16 *to)
{
    const int64_t k = w->p->g->k, row = 2 * w->depth;
    if (step == 1 && along != 1)
        pc__turn((char *)to, row * 2, (const char *)from, along * 2, k, count, 2);
    else
        for (int64_t i = 0; i < count; i++)
            pc__move((char *)(to + i * row), 2, (const char *)(from + i * step), along * 2, k, 2);
    for (int64_t i = 0; k < row && i < count; i++)
        to[i * row + k].bits = 0;
}

/* Two rows of B as one row of pairs. */
static void interleave(const pc_bf16 *restrict first, const pc_bf16 *restrict second, int64_t n, uint32_t *restrict to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (uint32_t)first[i].bits | (uint32_t)second[i].bits << 16;
}

static void pack_panel(void *context, int64_t panel)
{
    const work *w = context;
    const pc__gemm *g = w->p->g;
    const int64_t first = panel * TILE_WIDTH, count = PC__MIN(TILE_WIDTH, w->columns - first),
                  width = round_up(count, W);
    const pc_bf16 *from = half_at(g->b, (w->column + first) * g->b_cs);
    uint32_t *to = w->packed + first * w->depth;
    if (count < width)
        memset(to, 0, (size_t)(w->depth * width) * sizeof *to);
    if (g->b_cs != 1) {
        const bool in_pairs = g->b_rs == 1 && (g->k | g->b_cs) % 2 == 0 && (uintptr_t)from % 4 == 0;
        pc_bf16 *room = (pc_bf16 *)(void *)(w->rooms + pc__thread() * w->size);
        if (!in_pairs)
            take_runs(w, from, g->b_cs, g->b_rs, count, room);
        pc__turn((char *)to, width * 4, (const char *)(in_pairs ? from : room), (in_pairs ? g->b_cs : 2 * w->depth) * 2,
                 count, w->depth, 4);
        return;
    }
    static const pc_bf16 zeros[TILE_WIDTH];
    for (int64_t i = 0; i < w->depth; i++, from += 2 * g->b_rs, to += width)
        interleave(from, 2 * i + 1 < g->k ? from + g->b_rs : zeros, count, to);
}

/* Rows of C, `columns` sums each. A panel that ends within a vector goes first: what it writes beyond its columns is then
 * overwritten by what belongs there. */
static void multiply(const work *w, const pc_bf16 *a, int64_t a_row, int64_t rows, float *c)
{
    const int64_t panels = (w->columns + TILE_WIDTH - 1) / TILE_WIDTH;
    for (int64_t i = 0; i < panels; i++) {
        const int64_t first = (i ? i - 1 : panels - 1) * TILE_WIDTH;
        const int64_t width = round_up(PC__MIN(TILE_WIDTH, w->columns - first), W);
        pair_tile t = {.segments = 1,
                       .k = w->p->g->k,
                       .by_vectors = w->p->g->m * w->p->g->n * w->p->g->k <= SHORT,
                       .a = a,
                       .a_row = a_row,
                       .b = w->packed + first * w->depth,
                       .b_k = width,
                       .c = c + first,
                       .c_row = w->columns};
        pair_rows_run(&t, rows, (int)(width / W));
    }
}

static void turn_task(void *context, int64_t task)
{
    const work *w = context;
    const pc__gemm *g = w->p->g;
    const int64_t row = task * w->rows;
    take_runs(w, half_at(g->a, row * g->a_rs), g->a_rs, g->a_cs, PC__MIN(w->rows, g->m - row),
              w->turned + row * 2 * w->depth);
}

static void rows_task(void *context, int64_t task)
{
    const work *w = context;
    const pc__gemm *g = w->p->g;
    const int64_t row = task * w->rows, rows = PC__MIN(w->rows, g->m - row);
    float *c = (float *)(void *)(w->rooms + pc__thread() * w->size);
    const pc_bf16 *a = half_at(g->a, row * g->a_rs);
    int64_t a_row = g->a_rs;
    if (w->turned) {
        a = w->turned + row * 2 * w->depth, a_row = 2 * w->depth;
    } else if (g->a_cs != 1) {
        pc_bf16 *turned = (pc_bf16 *)(c + w->sums);
        take_runs(w, a, g->a_rs, g->a_cs, rows, turned);
        a = turned, a_row = 2 * w->depth;
    }
    const int64_t step = PC__MAX(SUMS / w->columns / w->step, 1) * w->step;
    for (int64_t r = 0; r < rows; r += step) {
        const int64_t some = PC__MIN(step, rows - r);
        multiply(w, a + r * a_row, a_row, some, c);
        finish_block(w->p, c, row + r, some, w->column, w->columns);
    }
}

/* Bytes of a thread's room: sums and turned rows of A, or a panel's columns before they are pairs. */
static int64_t room_size(const work *w, int64_t columns)
{
    const pc__gemm *g = w->p->g;
    const int64_t rows = w->sums * 4 + (g->a_cs == 1 ? 0 : w->rows * w->depth * 4);
    const int64_t panel = g->b_cs == 1 ? 0 : PC__MIN(TILE_WIDTH, round_up(columns, W)) * w->depth * 4;
    return round_up(PC__MAX(rows, panel), 64);
}

static pc_status in_panels(const half_product *p)
{
    const pc__gemm *g = p->g;
    work w = {.p = p, .depth = (g->k + 1) / 2, .rows = ROWS, .step = pair_tiles_there() ? STEP_TILES : STEP};
    _Alignas(64) char few[ON_STACK];
    if (g->a_cs != 1)
        w.rows = PC__MIN(PC__MAX(TURNED / PC__MAX(g->k, 1), PC__MAX(TURNED_ROWS, w.step)) / w.step * w.step, ROWS);
    w.rows = PC__MIN(w.rows, g->m);
    const int64_t fit = PC__MAX(GROUP / PC__MAX(g->k, 1) / TILE_WIDTH, 1) * TILE_WIDTH;
    const int64_t group = PC__MIN(fit, w.step == STEP_TILES ? COLUMNS_TILES : COLUMNS), most = PC__MIN(group, g->n);
    const int threads = pc__threads(g->m * g->n * g->k + 8 * g->m * g->n + 4 * g->n * g->k);
    const int64_t packed = round_up(most, W) * w.depth * 4;
    const int64_t turned = g->a_cs != 1 && g->n > group ? round_up(g->m * w.depth * 4, 64) : 0;
    w.sums = round_up(PC__MIN(w.rows * most, PC__MAX(SUMS, w.step * most)) + W, W);
    w.size = room_size(&w, most);
    const int64_t shared = round_up(packed, 64) + turned;
    const bool is_few = threads == 1 && shared + w.size <= ON_STACK;
    char *slab = is_few ? few : pc__alloc_aligned((size_t)(shared + threads * w.size), 64);
    if (!slab)
        return PC_ERR_MEMORY;
    w.packed = (uint32_t *)(void *)slab, w.rooms = slab + shared;
    if (turned) {
        w.turned = (pc_bf16 *)(void *)(slab + round_up(packed, 64));
        pc__parallel(threads, (g->m + w.rows - 1) / w.rows, turn_task, &w);
    }
    for (; w.column < g->n; w.column += group) {
        w.columns = PC__MIN(group, g->n - w.column);
        pc__parallel(threads, (w.columns + TILE_WIDTH - 1) / TILE_WIDTH, pack_panel, &w);
        pc__parallel(threads, (g->m + w.rows - 1) / w.rows, rows_task, &w);
    }
    if (!is_few)
        pc__free(slab);
    return PC_OK;
}

pc_status PC__K(gemm_pairs)(const half_product *p)
{
    const pc__gemm *g = p->g;
    if (pairs_are_across(g))
        return gemm_pairs_across(p);
    if (!is_along(g) && g->m <= FEW_ROWS && g->b_cs == 1 && g->k * g->n >= (int64_t)FEW_LEAST << 3 * (g->m - 1))
        return in_few_rows(p);
    if (!is_along(g))
        return in_panels(p);
    const int64_t across = (g->n + DOT_COLUMNS - 1) / DOT_COLUMNS, down = (g->m + DOT_ROWS - 1) / DOT_ROWS;
    pc__parallel(pc__threads((g->m + 8) * g->n * g->k), across * down, dots_task, (void *)p);
    return PC_OK;
}

#else

pc_status PC__K(gemm_pairs)(const half_product *p)
{
    (void)p;
    return PC_OK;
}

#endif
