/* max_backward.h: the gradient of maxima. */
#ifndef PC__CUDA_MAX_BACKWARD_H
#define PC__CUDA_MAX_BACKWARD_H

#include "cuda/runtime/view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of [outer][reduced][inner], `count` elements in all: of an element that stands at its result's place it is the result's,
 * else 0. Elements have 2, 4 or 8 bytes. */
typedef struct pc__cuda_max_places {
    int64_t count, reduced, inner;
    const void *g;
    const int64_t *places;
    void *dx;
    int bytes, early;
    cudaStream_t queue;
} pc__cuda_max_places;

void pc__cuda_max_to_places(const pc__cuda_max_places *backward);

enum { PC__SHARES_AT_ONCE = 16384, PC__SHARE_BLOCKS = 1024 };

/* Of all elements that are the maximum, or NaN, an equal part each. A block finds how many these are, up to
 * PC__SHARES_AT_ONCE elements; else `parts` blocks of `piece` elements do, in `counts`. */
typedef struct pc__cuda_max_shares {
    int64_t count, piece;
    int parts;
    long long *counts;
    const void *g, *x, *most;
    void *dx;
    int dtype, early;
    cudaStream_t queue;
} pc__cuda_max_shares;

void pc__cuda_max_to_shares(const pc__cuda_max_shares *backward);

#ifdef __cplusplus
}
#endif
#endif
