/* attention.h: attributes of scaled dot-product attention, and what its kernels are given.
 *
 * Inputs of `attention`: q [batch..., l, e], k [batch..., s, e], v [batch..., s, ev] of one batch shape and any strides,
 * then the mask [batch..., l, s] if it has one, then the base of a recorded dropout (ops/random.h). Outputs: y
 * [batch..., l, ev], and norms [batch..., l], the logarithm of each row's sum of exp(score), infinity where the row
 * attends to nothing; [0] where no gradient is recorded. `attention_backward` takes q, k, v, the gradient of y, y and
 * norms, then the mask and the base, and has the gradients of q, k and v. */
#ifndef PC__OP_ATTENTION_H
#define PC__OP_ATTENTION_H

#include "ops/random.h"

typedef struct pc__attention_attributes {
    pc__random_attributes drawn; /* low: the probability of a dropout, 0 for none */
    double scale;
    int32_t causal;
    int32_t masked; /* has a mask: bool, or of the dtype of norms and added to the scores */
} pc__attention_attributes;

/* Whether the weight of query i of a batch's matrix for key j stays: word j % 4 of block (batch * l + i) * ceil(s / 4) +
 * j / 4 of the draw decides, as for dropout. */
static inline int64_t pc__attention_blocks(int64_t s)
{
    return (s + 3) / 4;
}

#endif
