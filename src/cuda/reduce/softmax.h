/* softmax.h: softmax and its kin over a dimension of dense tensors. */
#ifndef PC__CUDA_SOFTMAX_H
#define PC__CUDA_SOFTMAX_H

#include "cuda/runtime/view.h"

#ifdef __cplusplus
extern "C" {
#endif

enum pc__cuda_softmax_op { PC__SOFTMAX, PC__LOG_SOFTMAX, PC__SOFTMAX_BACKWARD, PC__LOG_SOFTMAX_BACKWARD };

/* Along the middle of [outer][n][inner]; a and b as below. */
typedef struct pc__cuda_softmax_columns {
    int dtype, early; /* shared/dependent_launch.cuh */
    int64_t outer, n, inner;
    const void *a, *b;
    void *out;
    cudaStream_t queue;
} pc__cuda_softmax_columns;

void pc__cuda_softmax_down(const pc__cuda_softmax_columns *columns, enum pc__cuda_softmax_op op);

/* Along the last dimension. out = op(a, b): a is x going forward, with b NULL, and the gradient of y going backward, with b = y. */
void pc__cuda_softmax(cudaStream_t queue, enum pc__cuda_softmax_op op, const pc__view *a, const pc__view *b,
                      const pc__view *out);

#ifdef __cplusplus
}
#endif
#endif
