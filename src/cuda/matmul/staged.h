/* staged.h: products that are little work, nearly all of whose time is waiting. */
#ifndef PC__CUDA_STAGED_H
#define PC__CUDA_STAGED_H

#include "cuda/matmul/gemm.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sums of at most PC__CUDA_STAGED_MOST, floats or 16-bit numbers, sizes that are counted in 32 bits. */
enum { PC__CUDA_STAGED_MOST = 64 };
bool pc__cuda_staged_fits(const pc__cuda_gemm *g);

/* Whether it is likely the fastest way. */
bool pc__cuda_staged_suits(const pc__cuda_gemm *g);

/* Any strides. */
void pc__cuda_staged(cudaStream_t queue, const pc__cuda_gemm *g, int early);

#ifdef __cplusplus
}
#endif
#endif
