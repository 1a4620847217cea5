/* view.h: attributes of the ops that see the same memory otherwise. */
#ifndef PC__OP_VIEW_H
#define PC__OP_VIEW_H

#include "tensor/tensor.h"

typedef struct pc__shape_attributes {
    int ndim;
    int64_t dim[PC_MAX_DIMS];     /* view, expand: the new shape, worked out; permute: the order of dimensions */
    int64_t strides[PC_MAX_DIMS]; /* view: of the result */
} pc__shape_attributes;

typedef struct pc__slice_attributes {
    int dim;
    int64_t start, step, count;
} pc__slice_attributes;

/* Dimensions by their strides, the largest first: a dense tensor permuted so is contiguous. */
static inline pc_shape pc__dims_by_stride(const pc_tensor *t)
{
    pc_shape order = {.ndim = t->ndim};
    for (int i = 0; i < t->ndim; i++) {
        int j = i;
        for (; j > 0 && t->strides[i] > t->strides[order.dim[j - 1]]; j--)
            order.dim[j] = order.dim[j - 1];
        order.dim[j] = i;
    }
    return order;
}

/* The order that takes a tensor permuted by `order` back. */
static inline pc_shape pc__order_back(const pc_shape *order)
{
    pc_shape back = {.ndim = order->ndim};
    for (int i = 0; i < order->ndim; i++)
        back.dim[order->dim[i]] = i;
    return back;
}

#endif
