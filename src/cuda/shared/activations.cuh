/* activations.cuh: what follows a product, by number as pc_activation_kind, and the gradient through it. */
#ifndef PC__CUDA_ACTIVATIONS_CUH
#define PC__CUDA_ACTIVATIONS_CUH

#include "cuda/shared/real.cuh"

enum { ACTIVATION_NONE, ACTIVATION_RELU, ACTIVATION_SIGMOID, ACTIVATION_TANH };

/* NaN stays NaN. */
template <class T> __device__ inline T activated(int kind, T x)
{
    if (kind == ACTIVATION_RELU)
        return x < 0 ? T(0) : x;
    if (kind == ACTIVATION_SIGMOID)
        return logistic_of(x);
    return kind == ACTIVATION_TANH ? tanh_of(x) : x;
}

/* The gradient before an activation, from the gradient dy behind it and its value y. */
template <class T> __device__ inline T activation_gradient(int kind, T dy, T y)
{
    if (kind == ACTIVATION_RELU)
        return y <= 0 ? T(0) : dy;
    if (kind == ACTIVATION_SIGMOID)
        return dy * y * (1 - y);
    return kind == ACTIVATION_TANH ? dy * (1 - y * y) : dy;
}

#endif
