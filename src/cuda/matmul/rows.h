/* rows.h: who can do a product, and a linear layer. */
#ifndef PC__CUDA_MATMUL_ROWS_H
#define PC__CUDA_MATMUL_ROWS_H

#include "cuda/matmul/gemm.h"
#include "cuda/runtime/rows.h"

extern pc__rows pc__matmul_rows; /* products.c; a problem is a pc__cuda_gemm */

/* Whether the row asks cuBLASLt, and minds the product's advice. */
bool pc__matmul_takes_advice(const pc__row *row);

/* Of a result's rows, where plans have set them apart; 0: it is dense. */
static inline int64_t pc__pitch_of(const pc_tensor *y)
{
    const int last = y->ndim - 1;
    return y->strides[last - 1] > y->shape[last] && y->shape[last - 1] > 1 ? y->strides[last - 1] : 0;
}

/* choose.c: do the product by the row of the thread's choice; while a recording prepares, only make that. */
pc_status pc__matmul_run(pc_stream *stream, const pc_call *call, const pc__cuda_gemm *g);

extern pc__rows pc__linear_rows, pc__linear_backward_rows;

#endif
