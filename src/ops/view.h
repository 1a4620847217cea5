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

#endif
