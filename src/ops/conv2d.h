/* conv2d.h: attributes of the fused convolution and its gradient. */
#ifndef PC__OP_CONV2D_H
#define PC__OP_CONV2D_H

#include <paracord/ops.h>

typedef struct pc__conv2d_attributes {
    pc_conv2d_spec spec; /* with its defaults filled in */
    bool wants_argmax;
    bool needs[3]; /* backward: gradients of x, weight, bias */
} pc__conv2d_attributes;

#endif
