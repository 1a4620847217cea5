/* attention.h: attributes of scaled dot-product attention, and what its kernels are given.
 *
 * Inputs of `attention`: q [batch..., l, e], k [batch..., s, e], v [batch..., s, ev] of one batch shape and any strides,
 * or one tensor [3, batch..., l, e] that has all three; then the mask [batch..., l, s] if it has one, then the base of a recorded dropout (ops/random.h). Outputs: y
 * [batch..., l, ev], and norms [batch..., l], the logarithm of each row's sum of exp(score), infinity where the row
 * attends to nothing; [0] where no gradient is recorded. `attention_backward` takes q, k, v or all three, the gradient of y,
 * y and norms, then the mask and the base, and has the gradients of q, k and v, or of all three and two [0]. */
#ifndef PC__OP_ATTENTION_H
#define PC__OP_ATTENTION_H

#include "ops/random.h"

typedef struct pc__attention_attributes {
    pc__random_attributes drawn; /* low: the probability of a dropout, 0 for none */
    double scale;
    int32_t causal;
    int32_t packed; /* q, k and v are one tensor */
    int32_t masked; /* has a mask: bool, or of the dtype of norms and added to the scores */
    int32_t unused;
} pc__attention_attributes;

/* q, k and v of a call, or the gradients of a backward one. */
typedef struct pc__attention_operands {
    pc_tensor part[3];
    const pc_tensor *of[3];
} pc__attention_operands;

static inline int pc__attention_inputs(const pc__attention_attributes *a)
{
    return a->packed ? 1 : 3;
}

/* Those that `tensors` are, or that the first of them has. */
static inline void pc__attention_take(pc__attention_operands *o, const pc__attention_attributes *a,
                                      pc_tensor *const *tensors)
{
    for (int i = 0; i < 3; i++) {
        o->of[i] = a->packed ? &o->part[i] : tensors[i];
        if (!a->packed)
            continue;
        const pc_tensor *all = tensors[0];
        o->part[i] = (pc_tensor){.dtype = all->dtype,
                                 .ndim = (uint8_t)(all->ndim - 1),
                                 .offset = all->offset + i * all->strides[0],
                                 .storage = all->storage};
        memcpy(o->part[i].shape, all->shape + 1, (size_t)(all->ndim - 1) * sizeof *all->shape);
        memcpy(o->part[i].strides, all->strides + 1, (size_t)(all->ndim - 1) * sizeof *all->strides);
    }
}

/* Whether the weight of query i of a batch's matrix for key j stays: word j % 4 of block (batch * l + i) * ceil(s / 4) +
 * j / 4 of the draw decides, as for dropout. */
static inline int64_t pc__attention_blocks(int64_t s)
{
    return (s + 3) / 4;
}

#endif
