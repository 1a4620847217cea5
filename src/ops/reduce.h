/* reduce.h: attributes of reductions. The input is seen as [outer, reduced, inner]. It is contiguous; on CUDA it may have
 * gaps: maxima where the reduced dimensions lie in memory as one, sums where they are up to three such runs, behind those that are
 * kept. */
#ifndef PC__OP_REDUCE_H
#define PC__OP_REDUCE_H

#include "tensor/tensor.h"

typedef struct pc__reduce_attributes {
    int64_t outer, reduced, inner;
    int ndim; /* of the result; max_backward: of max's input, that is */
    int64_t shape[PC_MAX_DIMS];
    int64_t kept_shape[PC_MAX_DIMS]; /* the result's shape with reduced dimensions as 1, in the input's dimensions */
    bool whole;                      /* max: places are of no account; with a gradient, ties share it */
    uint8_t to;                      /* a sum's dtype, as pc_dtype: float32 of 16 bits, 16 bits of float32 */
    double divisor;                  /* of a sum, before it is rounded; 1: none */
} pc__reduce_attributes;

#endif
