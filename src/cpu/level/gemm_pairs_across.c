/* gemm_pairs_across.c: products of bfloat16 by matrix registers with the other side up, for some rows of A and columns of B along
 * k: those, which are read where they lie, are the rows of the tile, and A's rows, packed, its columns. Columns of B would take
 * longer to pack than to multiply. */
#include "cpu/level/gemm_half.h"
#include "cpu/level/pairs.h"

#include "cpu/level/each.h"
#include "cpu/level/turn.h"
#include "base/parallel.h"

enum {
    ROWS_LEAST = 5,
    COLUMNS = 64, /* of a task */
    COLUMNS_LEAST = 128,
    DEPTH_LEAST = 128,
    LONG = 256,    /* along k */
    MOST = 1 << 18 /* numbers of A: packed they stay in the second-level cache */
};

typedef struct product {
    const half_product *p;
    uint32_t *packed; /* rows of A as [panel of TILE_WIDTH][pair][width of the panel] */
} product;

/* Rows of a panel, and the vectors that hold them. */
static int64_t rows_of(const pc__gemm *g, int64_t panel)
{
    return PC__MIN(TILE_WIDTH, g->m - panel * TILE_WIDTH);
}

static void pack_task(void *context, int64_t panel)
{
    const product *x = context;
    const pc__gemm *g = x->p->g;
    const int64_t rows = rows_of(g, panel), width = round_up(rows, W), depth = (g->k + 1) / 2;
    const pc_bf16 *from = half_at(g->a, panel * TILE_WIDTH * g->a_rs);
    uint32_t *to = x->packed + panel * TILE_WIDTH * depth;
    if (rows < width)
        memset(to, 0, (size_t)(depth * width) * sizeof *to);
    if ((g->k | g->a_rs) % 2 == 0 && (uintptr_t)from % 4 == 0) { /* pairs where they lie */
        pc__turn((char *)to, width * 4, (const char *)from, g->a_rs * 2, rows, depth, 4);
        return;
    }
    for (int64_t r = 0; r < rows; r++, from += g->a_rs)
        for (int64_t i = 0; i < depth; i++)
            to[i * width + r] = pair_of(from + 2 * i, 1, 2 * i + 1 < g->k);
}

static void across_task(void *context, int64_t task)
{
    const product *x = context;
    const pc__gemm *g = x->p->g;
    const int64_t first = task * COLUMNS, columns = PC__MIN(COLUMNS, g->n - first);
    _Alignas(64) float sums[COLUMNS * TILE_WIDTH], values[TILE_WIDTH * COLUMNS];
    for (int64_t row = 0; row < g->m; row += TILE_WIDTH) {
        const int64_t rows = rows_of(g, row / TILE_WIDTH), width = round_up(rows, W);
        pair_tile t = {.segments = 1,
                       .k = g->k,
                       .a = half_at(g->b, first * g->b_cs),
                       .a_row = g->b_cs,
                       .b = x->packed + row * ((g->k + 1) / 2),
                       .b_k = width,
                       .c = sums,
                       .c_row = width};
        pair_rows_run(&t, columns, (int)(width / W));
        pc__turn((char *)values, columns * 4, (const char *)sums, width * 4, columns, rows, 4);
        finish_block(x->p, values, row, rows, first, columns);
    }
}

/* Columns of B would take longer to pack than to multiply: by sizes alone, as the sums are others than those along k. */
bool pairs_are_across(const pc__gemm *g)
{
    return g->a_cs == 1 && g->b_rs == 1 && g->m >= ROWS_LEAST && g->k >= DEPTH_LEAST && g->m * g->k <= MOST &&
           g->n >= COLUMNS_LEAST && (g->k < LONG ? 4 : 2) * g->m <= g->n && pair_tiles_there();
}

pc_status gemm_pairs_across(const half_product *p)
{
    const pc__gemm *g = p->g;
    const int64_t panels = (g->m + TILE_WIDTH - 1) / TILE_WIDTH;
    const int threads = pc__threads((g->m + 8) * g->n * g->k);
    product x = {p, pc__alloc_aligned((size_t)(round_up(g->m, W) * ((g->k + 1) / 2)) * sizeof *x.packed, 64)};
    if (!x.packed)
        return PC_ERR_MEMORY;
    pc__parallel(threads, panels, pack_task, &x);
    pc__parallel(threads, (g->n + COLUMNS - 1) / COLUMNS, across_task, &x);
    pc__free(x.packed);
    return PC_OK;
}
