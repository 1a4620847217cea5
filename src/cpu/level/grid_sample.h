/* grid_sample.h: pictures read at places of one's own, and the gradients. Places are found some at a time, in a table, which then
 * holds for all channels. */
#ifndef PC__CPU_GRID_SAMPLE_H
#define PC__CPU_GRID_SAMPLE_H

#include "cpu/level/compute.h"
#include "ops/grid_sample.h"

/* x[n][planes][h][w][inner], y[n][planes][places][inner], grid[n][places][2]: columns and rows. */
typedef struct pc__grid_call {
    pc__grid_attributes spec;
    int64_t n, planes, h, w, inner, places;
    const void *grid, *x;
    void *y;        /* forward */
    const void *dy; /* backward, with dx or dgrid or both; NULL: not asked for */
    void *dx, *dgrid;
} pc__grid_call;

/* grid_planes.c: of planes whose elements lanes of a vector count, h * w * inner; grid_rows.c: of any. */
#define pc__grid_planes_f32 PC__K(grid_planes_f32)
#define pc__grid_planes_f64 PC__K(grid_planes_f64)
#define pc__grid_rows_f32 PC__K(grid_rows_f32)
#define pc__grid_rows_f64 PC__K(grid_rows_f64)
pc_status pc__grid_planes_f32(const pc__grid_call *g);
pc_status pc__grid_planes_f64(const pc__grid_call *g);
pc_status pc__grid_rows_f32(const pc__grid_call *g);
pc_status pc__grid_rows_f64(const pc__grid_call *g);

#endif
