/* softmax.h: what softmax goes along: the middle of [outer, n, inner], as which kernels see a tensor without gaps. */
#ifndef PC__OP_SOFTMAX_H
#define PC__OP_SOFTMAX_H

#include "tensor/tensor.h"

typedef struct pc__softmax_attributes {
    int64_t n, inner; /* on CUDA n is below 2^24 unless inner is 1 */
} pc__softmax_attributes;

#endif
