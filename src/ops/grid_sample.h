/* grid_sample.h: pictures read at places of one's own. Kernels see x as [n, planes, h, w, inner], of which planes or inner is 1:
 * in C order, and by channels. */
#ifndef PC__OP_GRID_SAMPLE_H
#define PC__OP_GRID_SAMPLE_H

#include <stdint.h>

/* As pc_grid_padding. */
enum { PC__GRID_ZEROS, PC__GRID_BORDER, PC__GRID_REFLECTION };

typedef struct pc__grid_attributes {
    int32_t nearest, padding, corners, pad;
    int64_t size[2]; /* rows and columns of x */
    int64_t wants_x; /* backward: the gradient at x; that at the grid where there is a third input, x */
} pc__grid_attributes;

#endif
