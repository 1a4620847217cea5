/* linear.h: attributes of the fused linear layer. */
#ifndef PC__OP_LINEAR_H
#define PC__OP_LINEAR_H

#include "tensor/tensor.h"

#include <paracord/ops.h>

/* Plans may have a gelu as activation (plan/gelu.c): gelu_tanh of 16 bits with a second output, which is what is in front of it, or
 * either without. */
typedef struct pc__linear_attributes {
    pc_activation_kind activation;
    int narrow; /* linear_backward, not 0: the gradients of weight and bias have x's dtype too */
    int zeros;  /* linear, not 0: behind the weight's last row there are zeros, up to whole eights: plans set it */
} pc__linear_attributes;

/* linear_backward, of small layers: from dy [m, n], y [m, n], x [m, k] with dense rows, and weight [n, k], to dx [m, k]
 * and the gradients of weight and bias [n]. Without weight there is no dx. float32, or 16 bits but for the gradients of
 * weight and bias, which are float32 unless they are to be narrow; all contiguous but x. */
typedef pc__linear_attributes pc__linear_backward_attributes;

/* True where a layer of this size, forward or backward, is better one launch than several good ones. */
static inline bool pc__linear_is_small(int64_t m, int64_t n, int64_t k)
{
    return m > 0 && n > 0 && k > 0 && m <= 64 && (double)n * (double)k <= 2e6;
}

/* In 16 bits several products on matrix units are still quicker on a GPU, where each has much of both sides. */
static inline bool pc__linear_has_good_products(pc_dtype dtype, int64_t n, int64_t k)
{
    return pc__is_half(dtype) && n >= 256 && k >= 256 && (double)n * (double)k >= 3e5;
}

#endif
