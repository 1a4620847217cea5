/* grid_sample.h: launchers of pictures read at places of one's own, and of the gradients. */
#ifndef PC__CUDA_GRID_SAMPLE_H
#define PC__CUDA_GRID_SAMPLE_H

#include "cuda/runtime/view.h"
#include "ops/grid_sample.h"

#ifdef __cplusplus
extern "C" {
#endif

/* x[n][planes][size][inner], y[n][planes][places][inner], grid[n][places][2]: columns and rows; float32 or float64. */
typedef struct pc__cuda_grid {
    pc__grid_attributes spec;
    int64_t n, planes, inner, places;
    const void *grid;
    int dtype, early;
    cudaStream_t queue;
} pc__cuda_grid;

void pc__cuda_grid_read(const pc__cuda_grid *g, const void *x, void *y);

/* grid_sample_backward.cu: the gradient at the grid. */
void pc__cuda_grid_slopes(const pc__cuda_grid *g, const void *x, const void *dy, void *dgrid);

/* For the gradient at x: what each place takes of x, `kinds` entries one behind the other, as numbers of x's places, size[0] * size[1]
 * where there is none, and weights. */
void pc__cuda_grid_list(const pc__cuda_grid *g, int kinds, int64_t *index, void *weight);

/* The sums of the entries of each place, after a sort of these (index/sort.h) with one place more than x has. */
void pc__cuda_grid_add(const pc__cuda_grid *g, int kinds, const unsigned *start, const unsigned *order,
                       const void *weight, const void *dy, void *dx);

#ifdef __cplusplus
}
#endif
#endif
