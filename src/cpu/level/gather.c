/* gather.c: the inner loop of gather.h for every number of rows and vectors. */
#include "cpu/level/gather.h"

INLINE void gather_run(const gather *g, const int rows, const int vectors)
{
    if (rows * vectors > GATHER_SUMS)
        return;
    /* Few sums would wait for each other: then two sets of them take turns. */
    const int sets = rows * vectors <= GATHER_SUMS / 4 ? 2 : 1;
    vec sum[2][GATHER_ROWS][GATHER_VECTORS];
    const item *items = g->items, *end = items + g->count;
    const real *from = g->from;
    const int64_t from_row = g->from_row;
    UNROLL for (int s = 0; s < sets; s++) UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++)
        sum[s][r][v] = (vec){0};
    for (; items + sets <= end; items += sets)
        UNROLL for (int s = 0; s < sets; s++)
        {
            const vec weight = SPLAT(items[s].weight);
            const real *at = from + items[s].offset;
            UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) sum[s][r][v] +=
                weight * LOAD(at + r * from_row + v * W);
        }
    if (items < end) {
        const vec weight = SPLAT(items[0].weight);
        const real *at = from + items[0].offset;
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) sum[0][r][v] +=
            weight * LOAD(at + r * from_row + v * W);
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) AT(g->to + r * g->to_row + v * W) +=
        sets == 2 ? sum[0][r][v] + sum[1][r][v] : sum[0][r][v];
}

#define GATHER(rows, vectors)                                                                                          \
    static void gather_##rows##x##vectors(const gather *g)                                                             \
    {                                                                                                                  \
        gather_run(g, rows, vectors);                                                                                  \
    }
#define GATHERS(rows)                                                                                                  \
    GATHER(rows, 1)                                                                                                    \
    GATHER(rows, 2) GATHER(rows, 3) GATHER(rows, 4) GATHER(rows, 5) GATHER(rows, 6) GATHER(rows, 7) GATHER(rows, 8)
#define NAMES(r)                                                                                                       \
    {                                                                                                                  \
        NULL, gather_##r##x1, gather_##r##x2, gather_##r##x3, gather_##r##x4, gather_##r##x5, gather_##r##x6,          \
            gather_##r##x7, gather_##r##x8                                                                             \
    }
GATHERS(1)
GATHERS(2)
GATHERS(3)
GATHERS(4)
GATHERS(5)
gather_function *const gather_functions[GATHER_ROWS + 1][GATHER_VECTORS + 1] = {{NULL},   NAMES(1), NAMES(2),
                                                                                NAMES(3), NAMES(4), NAMES(5)};
