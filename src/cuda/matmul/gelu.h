/* gelu.h: products with a gelu behind them. */
#ifndef PC__CUDA_MATMUL_GELU_H
#define PC__CUDA_MATMUL_GELU_H

#include "cuda/matmul/lt.h"
#include "cuda/matmul/rows.h"

#include <paracord/ops.h>

/* The product into `front`, and a gelu of that, of either kind, into call->out[0], which may be `front`. */
pc_status pc__matmul_gelu_apart(pc_stream *stream, const pc_call *call, const pc__cuda_gemm *g, pc_activation_kind kind,
                                pc_tensor *front);

/* The same by tanh, in one call where there is one: g, dense, with what lt.h says; call->out[0] is c, and `aux` the front. */
pc_status pc__matmul_gelu(pc_stream *stream, const pc_call *call, const pc__cuda_gemm *g, pc_tensor *aux);

#endif
