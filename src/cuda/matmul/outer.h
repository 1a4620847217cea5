/* outer.h: products with short sums, nearly all of whose time is writing the result. */
#ifndef PC__CUDA_OUTER_H
#define PC__CUDA_OUTER_H

#include "cuda/matmul/gemm.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sums of at most 16, floats or 16-bit numbers, sizes that are counted in 32 bits. */
bool pc__cuda_outer_fits(const pc__cuda_gemm *g);

/* Whether it is likely the fastest way, where floats go to matrix units as TF32 or not. */
bool pc__cuda_outer_suits(const pc__cuda_gemm *g, bool tf32);

/* Any strides. */
void pc__cuda_outer(cudaStream_t queue, const pc__cuda_gemm *g, int multiprocessors, int early);

#ifdef __cplusplus
}
#endif
#endif
