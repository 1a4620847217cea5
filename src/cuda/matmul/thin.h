/* thin.h: products of a matrix with few columns, or of few rows with a matrix, by floats. */
#ifndef PC__CUDA_THIN_H
#define PC__CUDA_THIN_H

#include "cuda/matmul/gemm.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PC__CUDA_THIN_COUNTERS = 4096 };

/* At most 16 rows or columns, floats or 16-bit numbers, sizes that are counted in 32 bits. */
bool pc__cuda_thin_fits(const pc__cuda_gemm *g);

/* Whether it is likely the fastest way. */
bool pc__cuda_thin_suits(const pc__cuda_gemm *g);

/* Bytes of scratch memory that the call needs. */
size_t pc__cuda_thin_scratch(const pc__cuda_gemm *g, int multiprocessors);

/* Any strides, the same bits every time. `counters`: PC__CUDA_THIN_COUNTERS zeros, which are left as they were. */
void pc__cuda_thin(cudaStream_t queue, const pc__cuda_gemm *g, int multiprocessors, int early, void *scratch,
                   unsigned *counters);

#ifdef __cplusplus
}
#endif
#endif
