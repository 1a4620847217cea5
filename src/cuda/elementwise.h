/* elementwise.h: launchers of arithmetic, functions, comparisons and choice; dtypes that the host has checked. */
#ifndef PC__CUDA_ELEMENTWISE_H
#define PC__CUDA_ELEMENTWISE_H

#include "cuda/loop.h"

#ifdef __cplusplus
extern "C" {
#endif

enum pc__cuda_function {
    PC__BINARY_ADD,
    PC__BINARY_SUB,
    PC__BINARY_MUL,
    PC__BINARY_DIV,
    PC__BINARY_RELU_BACKWARD,
    PC__BINARY_SIGMOID_BACKWARD,
    PC__BINARY_TANH_BACKWARD,
    PC__UNARY_NEG,
    PC__UNARY_RELU,
    PC__UNARY_EXP,
    PC__UNARY_LOG,
    PC__UNARY_SQRT,
    PC__UNARY_SIGMOID,
    PC__UNARY_TANH,
    PC__COPY,
    PC__FILL,
    PC__SAXPY
};

/* A comparison is the set of outcomes for which it holds. */
enum pc__cuda_outcome { PC__LESS = 1, PC__EQUAL = 2, PC__GREATER = 4, PC__UNORDERED = 8 };

void pc__cuda_binary(const pc__cuda_launch *launch, int op, int dtype);
void pc__cuda_unary(const pc__cuda_launch *launch, int op, int dtype);
void pc__cuda_compare(const pc__cuda_launch *launch, unsigned outcomes, int dtype);
void pc__cuda_where(const pc__cuda_launch *launch, size_t element_bytes);

#ifdef __cplusplus
}
#endif
#endif
