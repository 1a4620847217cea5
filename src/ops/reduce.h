/* reduce.h: attributes of reductions. The input is seen as [outer, reduced, inner]. It is contiguous; on CUDA it may have
 * gaps where the reduced dimensions lie in memory as one. */
#ifndef PC__OP_REDUCE_H
#define PC__OP_REDUCE_H

#include "tensor/tensor.h"

typedef struct pc__reduce_attributes {
    int64_t outer, reduced, inner;
    int ndim; /* of the result; max_backward: of max's input, that is */
    int64_t shape[PC_MAX_DIMS];
    int64_t kept_shape[PC_MAX_DIMS]; /* the result's shape with reduced dimensions as 1, in the input's dimensions */
    bool whole;                      /* max: places are of no account; with a gradient, ties share it */
    bool wide;                       /* the sum of 16-bit numbers is float32 */
    double divisor;                  /* of a sum, before it is rounded; 1: none */
} pc__reduce_attributes;

#endif
