/* linear_activation.cuh: what follows a small linear layer: the activations of all products, and both forms of gelu. */
#ifndef PC__CUDA_LINEAR_ACTIVATION_CUH
#define PC__CUDA_LINEAR_ACTIVATION_CUH

#include "cuda/shared/activations.cuh"
#include "cuda/shared/brief.cuh"

namespace
{

enum { ACTIVATION_GELU = ACTIVATION_TANH + 1, ACTIVATION_GELU_TANH };

/* As the ops of ops/pointwise.def have it: of 16 bits by shorter formulas. */
template <class T> __device__ inline float gelu(bool by_tanh, float a)
{
    if (sizeof(T) == 2)
        return by_tanh ? pc::brief_gelu_tanh::of(a) : pc::brief_gelu::of(a);
    if (by_tanh)
        return 0.5f * a * (1.0f + tanhf(a * (0.79788456080286535588f + 0.03567740813630012f * a * a)));
    return 0.5f * a * (1.0f + erff(a * 0.70710678118654752440f));
}

template <class T> __device__ inline T layer_activated(int kind, float x)
{
    return T(kind >= ACTIVATION_GELU ? gelu<T>(kind == ACTIVATION_GELU_TANH, x) : activated(kind, x));
}

} // namespace

#endif
