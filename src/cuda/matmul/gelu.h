/* gelu.h: products with gelu_tanh behind them. */
#ifndef PC__CUDA_MATMUL_GELU_H
#define PC__CUDA_MATMUL_GELU_H

#include "cuda/matmul/lt.h"
#include "cuda/matmul/rows.h"

/* g, dense, with what lt.h says; call->out[0] is c. */
pc_status pc__matmul_gelu(pc_stream *stream, const pc_call *call, const pc__cuda_gemm *g, pc_tensor *aux);

#endif
