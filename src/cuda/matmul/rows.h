/* rows.h: who can do a product, and a linear layer. */
#ifndef PC__CUDA_MATMUL_ROWS_H
#define PC__CUDA_MATMUL_ROWS_H

#include "cuda/runtime/rows.h"

extern pc__rows pc__matmul_rows; /* products.c; a problem is a pc__cuda_gemm */
extern pc__rows pc__linear_rows, pc__linear_backward_rows;

#endif
