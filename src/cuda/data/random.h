/* random.h: launchers of drawn numbers. Number i is word i % 4 of Philox block i / 4, in memory order. */
#ifndef PC__CUDA_RANDOM_H
#define PC__CUDA_RANDOM_H

#include "cuda/pointwise/loop.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc__cuda_draw {
    uint64_t seed, stream;
    const int64_t *base; /* dropout: 4 times this is added to stream, unless NULL */
    double low, high;    /* as in pc__random_attributes */
    int64_t n;
    int dtype; /* a floating one */
    int multiprocessors, early;
    cudaStream_t queue;
} pc__cuda_draw;

void pc__cuda_uniform(const pc__cuda_draw *draw, void *out);
void pc__cuda_normal(const pc__cuda_draw *draw, void *out);
/* kept: which elements stay; NULL: nobody asks. `in` has gaps, or lies otherwise than `out`, which lies in C order then and has below
 * 2^31 elements; or it is dense, as out is. */
void pc__cuda_dropout(const pc__cuda_draw *draw, const pc__view *in, bool gaps, void *out, uint8_t *kept);

/* Operand 1, of dtype `dtype`, times `scale` where operand 2, bool, is true, else times 0. */
void pc__cuda_undrop(const pc__cuda_launch *launch, int dtype, double scale);

#ifdef __cplusplus
}
#endif
#endif
