/* overlap.h: whether tensors share memory, element for element: two slices of one tensor that interleave do not. */
#ifndef PC__OVERLAP_H
#define PC__OVERLAP_H

#include "tensor/tensor.h"

typedef enum pc__shared {
    PC__APART,       /* no byte in common */
    PC__SAME_PLACES, /* alike, and every element where the other has it */
    PC__CROSSING,    /* bytes in common, in other places of the two */
} pc__shared;

/* Of two tensors of one device. Tensors with more dimensions than can be followed for long count as crossing. */
pc__shared pc__overlap(const pc_tensor *a, const pc_tensor *b);

/* True where an element is there several times. Views get so by pc_expand alone. */
static inline bool pc__repeats(const pc_tensor *t)
{
    bool repeats = false;
    for (int i = 0; i < t->ndim; i++) {
        if (t->shape[i] == 0)
            return false;
        repeats |= t->strides[i] == 0 && t->shape[i] > 1;
    }
    return repeats;
}

#endif
