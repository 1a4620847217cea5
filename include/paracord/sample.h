/* sample.h: pictures of another size, and read at places of one's own.
 *
 *     pc_tensor *twice = pc_fn_upsample(x, (pc_fn_upsample_options){.scale = {2}, .mode = PC_UPSAMPLE_BILINEAR});
 *
 * What ops.h says of ops holds here. x is floating [n, c, h, w]; the memory order of x (NCHW or channels last) is the
 * result's too. What has 16 bits is computed in float32.
 */
#ifndef PARACORD_SAMPLE_H
#define PARACORD_SAMPLE_H

#include <paracord/ops.h>

PC_BEGIN

typedef enum pc_upsample_mode {
    PC_UPSAMPLE_NEAREST, /* place floor(i h / h'), as PyTorch's 'nearest' */
    PC_UPSAMPLE_BILINEAR /* between neighbours */
} pc_upsample_mode;

typedef struct pc_fn_upsample_options {
    int reserved_;
    int64_t size[2]; /* rows and columns of the result; a second of 0 is the first */
    double
        scale[2]; /* or how many times as many, rounded down; a second of 0 is the first. Along a dimension that keeps
                      * its size so, and for the nearest one that doubles it, only the sizes count, as in PyTorch */
    pc_upsample_mode mode;
    bool align_corners; /* bilinear: places of the corners stay; else those of the edges, half a place outside */
} pc_fn_upsample_options;

/* (d) x [n, c, h, w] -> [n, c, h', w']: of another size, larger or smaller. The gradient gathers: the same bits every time. */
PC_API PC_MUST_USE pc_tensor *pc_fn_upsample(pc_tensor *x, pc_fn_upsample_options options);

typedef enum pc_grid_padding {
    PC_GRID_ZEROS,     /* beyond x everything is 0 */
    PC_GRID_BORDER,    /* there is the nearest place of x */
    PC_GRID_REFLECTION /* as in mirrors on the edges, or the corners where these are aligned */
} pc_grid_padding;

typedef struct pc_fn_grid_sample_options {
    int reserved_;
    bool nearest; /* the nearest place (halves to the even one), without a gradient at the grid; else between four */
    pc_grid_padding padding;
    bool align_corners; /* -1 and 1 are the places of the corners; else the edges, half a place outside */
} pc_fn_grid_sample_options;

/* (d) x [n, c, h, w] read at grid [n, h', w', 2] -> [n, c, h', w']: of each place of the result its column and row in x, from
 * -1 to 1. Both in their common dtype. (d) in both; the gradient at x is added up in a fixed order. A place that is NaN
 * gives 0, and its gradient is 0. */
PC_API PC_MUST_USE pc_tensor *pc_fn_grid_sample(pc_tensor *x, pc_tensor *grid, pc_fn_grid_sample_options options);

PC_END
#endif
