/* softmax.h: what softmax goes along: the middle of [outer, n, inner], as which kernels see a contiguous tensor. */
#ifndef PC__OP_SOFTMAX_H
#define PC__OP_SOFTMAX_H

#include "tensor/tensor.h"

typedef struct pc__softmax_attributes {
    int64_t n, inner; /* on CUDA inner is 1, or not small, or [n][inner] is a slab */
} pc__softmax_attributes;

/* Short columns with few neighbours, which CUDA takes in shared memory. */
static inline bool pc__softmax_is_slab(int64_t n, int64_t inner, size_t element_bytes)
{
    enum { MOST = 128, BYTES = 8192 };
    return n <= MOST && inner <= BYTES && n * inner * (int64_t)element_bytes <= BYTES;
}

#endif
