/* grid_table.c: places of a grid along both axes, in loops over neighbours. */
#include "cpu/level/grid_table.h"

/* at: numbers of the grid, and then places. */
static void place_all(real *restrict at, real *restrict slope, int64_t count, real size,
                      const pc__grid_attributes *spec)
{
    const int corners = spec->corners;
    EACH_PLACE(j, count)
    {
        const place p = placed(at[j], size, corners);
        at[j] = p.at;
        slope[j] = p.slope;
    }
    if (spec->padding == PC__GRID_REFLECTION)
        EACH_PLACE(j, count)
        {
            const place p = reflected((place){at[j], slope[j]}, size, corners);
            at[j] = p.at;
            slope[j] = p.slope;
        }
    if (spec->padding != PC__GRID_ZEROS)
        EACH_PLACE(j, count)
        {
            const place p = bordered((place){at[j], slope[j]}, size);
            at[j] = p.at;
            slope[j] = p.slope;
        }
}

static void fill_axis(grid_axis *restrict a, const real *grid, int64_t count, real size,
                      const pc__grid_attributes *spec)
{
    real at[GRID_TABLE];
    for (int64_t j = 0; j < count; j++)
        at[j] = grid[2 * j];
    for (int64_t j = count; j < round_up(count, W); j++)
        at[j] = 0;
    place_all(at, a->slope, count, size, spec);
    const bool nearest = spec->nearest;
    EACH_PLACE(j, count)
    {
        const sides s = sides_of(at[j]), one = nearest_of(at[j]);
        a->low[j] = nearest ? one.low : s.low;
        a->part[j] = nearest ? one.part : s.part;
    }
}

void grid_table_fill(grid_table *t, const pc__grid_call *g, int64_t n, int64_t first)
{
    const real *grid = (const real *)g->grid + 2 * (n * g->places + first);
    t->count = PC__MIN(g->places - first, GRID_TABLE);
    fill_axis(&t->axis[0], grid + 1, t->count, (real)g->h, &g->spec);
    fill_axis(&t->axis[1], grid, t->count, (real)g->w, &g->spec);
}
