/* grid_table.h: a table of places along both axes, for the kernels of one element type. */
#ifndef PC__CPU_GRID_TABLE_H
#define PC__CPU_GRID_TABLE_H

#include "base/parallel.h"
#include "cpu/level/grid_sample.h"
#include "cpu/level/real.h"
#include "ops/grid_place.h"

enum { GRID_TABLE = 128 };

/* Of one axis (0: rows, 1: columns) by place: the first of the two whole places that it is between, what the second has of the two,
 * and what a change of the grid's number moves it by. Numbers fill up the last vector. */
typedef struct grid_axis {
    real low[GRID_TABLE], part[GRID_TABLE], slope[GRID_TABLE];
} grid_axis;

typedef struct grid_table {
    grid_axis axis[2];
    int64_t count;
} grid_table;

/* So many that whole vectors have all, and there is no code for what is left; nor for each of the few vectors apart. */
#define EACH_PLACE(j, count) _Pragma("GCC unroll 1") for (int64_t j = 0, end_##j = round_up(count, W); j < end_##j; j++)

/* The places from number `first` on of picture `n`, at most GRID_TABLE. */
#define grid_table_fill PC__R(grid_table_fill)
void grid_table_fill(grid_table *t, const pc__grid_call *g, int64_t n, int64_t first);

/* How many channels one task takes, so that there are enough tasks for the threads: of `channels`, in whole steps. */
INLINE int64_t grid_group(int64_t pictures, int64_t channels, int64_t step, int threads)
{
    const int64_t parts = threads == 1 ? 1 : (2 * threads + pictures - 1) / pictures;
    return PC__MAX(round_up((channels + parts - 1) / parts, step), step);
}

/* Operations, about, for pc__threads. */
INLINE int64_t grid_work(const pc__grid_call *g)
{
    return g->n * g->places * (40 + 16 * g->planes * g->inner);
}

#endif
