/* loss.h: attributes of the loss of classes, and what losses with options share. */
#ifndef PC__OP_LOSS_H
#define PC__OP_LOSS_H

#include "tensor/tensor.h"

#include <paracord/loss.h>

enum { PC__IGNORED = -100 }; /* the label that PyTorch ignores where nothing else is said */

typedef struct pc__loss_attributes {
    int64_t ignored; /* the label of rows that count for nothing */
    pc_dtype dtype;  /* of the loss; backward of the gradient at the logits */
    int is_sum;      /* else the mean over the rows that count, */
    int none_is_0;   /* which is 0 where none does, and not NaN */
    int unused;      /* plans compare all bytes */
} pc__loss_attributes;
_Static_assert(sizeof(pc__loss_attributes) == 24, "no gaps");

/* Rows of 16 bits that are read once where a loss and its gradient are one call: in a plan the op has a third input then, the loss's
 * gradient, and its second result is that at the logits. */
static inline bool pc__loss_is_long(const pc_tensor *x)
{
    enum { CLASSES = 2048, ROWS = 64 };
    return pc__is_half((pc_dtype)x->dtype) && x->shape[1] > CLASSES && x->shape[0] >= ROWS;
}

/* The fused loss of x [n, classes] and int64 labels [n], both contiguous. */
pc_tensor *pc__fused_cross_entropy(pc_tensor *x, pc_tensor *labels, int64_t ignored, bool is_sum);

/* pc_cross_entropy, but 0 where all rows are ignored. */
pc_tensor *pc__cross_entropy_or_0(pc_tensor *x, pc_tensor *labels);

/* pc_cross_entropy_weighted, alike. */
pc_tensor *pc__cross_entropy_weighted_or_0(pc_tensor *x, pc_tensor *labels, pc_tensor *weights);

/* Of each label, int64 [n], its class's weight, 0 where PC__IGNORED, which *ignored tells. NULL flows. */
pc_tensor *pc__weights_of_labels(pc_tensor *weights, pc_tensor *labels, pc_tensor **ignored);

/* Whether the two have one shape and a floating common dtype, *dtype, and there is such a reduction: else the error that names `who`.
 * PC_REDUCTION_BATCH_MEAN is for those that say so. */
bool pc__is_pair(const char *who, const pc_tensor *x, const pc_tensor *y, pc_dtype *dtype);
bool pc__is_reduction(const char *who, pc_reduction reduction, bool by_batch);

/* t in the dtype that losses of dtype are computed in: float32 for 16 bits. NULL flows. */
pc_tensor *pc__wide(pc_tensor *t, pc_dtype dtype);

/* The loss, reduced, in `dtype`, or in what it was computed in under autocast. NULL flows. */
pc_tensor *pc__reduced(pc_tensor *each, pc_reduction reduction, pc_dtype dtype);

#endif
