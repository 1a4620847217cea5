/* linear_few.h: linear layers of few outputs, where a launch is all waiting and hardly any arithmetic. */
#ifndef PC__CUDA_LINEAR_FEW_H
#define PC__CUDA_LINEAR_FEW_H

#include "cuda/matmul/linear.h"

#ifdef __cplusplus
extern "C" {
#endif

/* By the sizes, and no more. The calls need neither scratch nor counters. */
bool pc__cuda_linear_few_suits(const pc__cuda_linear *l);
bool pc__cuda_linear_few_suits_backward(const pc__cuda_linear *l);

cudaError_t pc__cuda_linear_few_forward(const pc__cuda_linear *l);
cudaError_t pc__cuda_linear_few_backward(const pc__cuda_linear *l);

#ifdef __cplusplus
}
#endif
#endif
