/* reduce.h: attributes of reductions. The input is seen as [outer, reduced, inner]. It is contiguous, or has gaps, or few elements
 * in another order: on CUDA extremes where the reduced dimensions lie in memory as one, sums where they are up to three such
 * runs, behind those that are kept; elsewhere sums where both inner and reduced lie as one, the last of them without gaps. */
#ifndef PC__OP_REDUCE_H
#define PC__OP_REDUCE_H

#include "ops/reduce_kinds.h"
#include "tensor/tensor.h"

typedef struct pc__reduce_attributes {
    int64_t outer, reduced, inner;
    int ndim; /* of the result; of a backward op: of the reduction's input */
    int64_t shape[PC_MAX_DIMS];
    int64_t kept_shape[PC_MAX_DIMS]; /* the result's shape with reduced dimensions as 1, in the input's dimensions */
    bool whole;                      /* max, min: places are of no account; with a gradient, ties share it */
    bool places;                     /* max, min: values are of no account: there are no elements of them */
    bool root;                       /* var: its square root, the standard deviation */
    uint8_t norm;                    /* as pc__norm_kind */
    uint8_t to;                      /* the result's dtype, as pc_dtype: float32 of 16 bits, 16 bits of float32 */
    double divisor;                  /* of a sum, also that of a variance, before it is rounded; 1: none */
} pc__reduce_attributes;

#endif
