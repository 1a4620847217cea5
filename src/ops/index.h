/* index.h: attributes of ops that go by indices along a dimension, and of those that go along one in order. Their kernels
 * get contiguous tensors and indices in int64, but may pick from any view on CUDA, gather elsewhere from those that
 * pc__gather_strides knows. */
#ifndef PC__OP_INDEX_H
#define PC__OP_INDEX_H

#include "tensor/tensor.h"

typedef struct pc__index_attributes {
    int64_t dim;
    int64_t size;  /* *_backward: of the result along dim; one_hot: the classes */
    int64_t skip;  /* *_backward: the place whose gradient stays 0; -1: there is none */
    int64_t apart; /* gather_backward: no two entries of a list name the same place */
} pc__index_attributes;

/* Elements from one to the next of t's dimensions before `dim`, of it, and of those behind, each taken as one; false where they are none
 * in memory. */
PC__FOR_LEVELS bool pc__gather_strides(const pc_tensor *t, int dim, int64_t *outer, int64_t *along, int64_t *inner);

typedef struct pc__flip_attributes {
    uint64_t dims; /* as bits */
} pc__flip_attributes;

typedef struct pc__cumsum_attributes {
    int64_t dim, reversed; /* reversed: sums of an element and all behind it */
} pc__cumsum_attributes;

typedef struct pc__sort_attributes {
    int64_t dim, count; /* so many of the order's first are kept */
    int64_t descending;
} pc__sort_attributes;

typedef struct pc__search_attributes {
    int64_t right; /* behind equals */
} pc__search_attributes;

/* An index as kernels take it: int64, contiguous; PC_ERR_DTYPE, with the op's name, unless it is int64 or int32. NULL
 * flows. */
pc_tensor *pc__places(const char *who, pc_tensor *index);

/* t as kernels pick so many elements of it: where it lies on CUDA, unless it is as good to copy it; elsewhere contiguous. NULL
 * flows. */
pc_tensor *pc__pickable(pc_tensor *t, int64_t picked);

/* Of a contiguous tensor seen as [outer, along, inner]. */
static inline int64_t pc__outer_of(const pc_tensor *t, int64_t dim)
{
    return pc__count((int)dim, t->shape);
}

static inline int64_t pc__inner_of(const pc_tensor *t, int64_t dim)
{
    return pc__count(t->ndim - (int)dim - 1, t->shape + dim + 1);
}

#endif
