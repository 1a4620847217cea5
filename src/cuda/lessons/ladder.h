/* ladder.h: launchers of the lessons' kernels; rungs as in ops/ladder.h. */
#ifndef PC__CUDA_LADDER_H
#define PC__CUDA_LADDER_H

#include "cuda/runtime/view.h"
#include "ops/ladder.h"

#ifdef __cplusplus
extern "C" {
#endif

void pc__cuda_ladder_add(int rung, const float *a, const float *b, float *c, int64_t n, cudaStream_t queue);
void pc__cuda_ladder_matmul(int rung, const float *a, const float *b, float *c, int n, cudaStream_t queue);
void pc__cuda_ladder_fma(float *x, int64_t n, int64_t rounds, cudaStream_t queue);

#ifdef __cplusplus
}
#endif
#endif
