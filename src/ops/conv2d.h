/* conv2d.h: attributes of the fused convolution and its gradient. */
#ifndef PC__OP_CONV2D_H
#define PC__OP_CONV2D_H

#include <paracord/ops.h>

typedef struct pc__conv2d_attributes {
    pc_fn_conv2d_options spec; /* with its defaults filled in */
    bool wants_argmax;
    bool planes;   /* the result and its gradient lie in C order, [n][c][h][w]; else channels last */
    bool needs[3]; /* backward: gradients of x, weight, bias */
} pc__conv2d_attributes;

/* The CPU's kernels work with neighbouring places of y side by side where outputs are few beside the width of their vectors,
 * and read pictures in either order then; else with outputs side by side, channels last. `width` is y's. Strides make planes
 * of every so-manyth column first; bfloat16 has a faster tile for outputs. */
static inline bool pc__conv2d_is_planar(pc_dtype dtype, int64_t outputs, int64_t width, int64_t kernel, int64_t stride,
                                        int64_t pool)
{
    const int64_t most = dtype == PC_BF16 ? 8 : 12; /* of the 16 of the widest vectors */
    const double columns = (double)(width + (kernel - 1) / stride) * (double)stride * (double)stride;
    return pool <= 1 && (double)outputs * columns <= (double)(most * width);
}

/* pc_fn_conv2d with the memory order of the result said: C order, which Flatten shows without a copy, or channels last.
 */
pc_tensor *pc__conv2d(pc_tensor *x, pc_tensor *weight, pc_tensor *bias, pc_fn_conv2d_options spec, bool planes);

#endif
