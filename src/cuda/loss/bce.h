/* bce.h: launcher of binary cross-entropy of probabilities, element by element. */
#ifndef PC__CUDA_BCE_H
#define PC__CUDA_BCE_H

#include "cuda/pointwise/loop.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -(y log x + (1 - y) log(1 - x)) of operands 1 and 2, whose logarithms are at least -100. */
void pc__cuda_bce(const pc__cuda_launch *launch, int dtype);

#ifdef __cplusplus
}
#endif
#endif
