/* linear_activation.cuh: what follows a small linear layer: the activations of all products, and both forms of gelu. */
#ifndef PC__CUDA_LINEAR_ACTIVATION_CUH
#define PC__CUDA_LINEAR_ACTIVATION_CUH

#include "cuda/shared/activations.cuh"
#include "cuda/shared/functions.cuh"

namespace
{

enum { ACTIVATION_GELU = ACTIVATION_TANH + 1, ACTIVATION_GELU_TANH };

/* Of 16 bits by shorter formulas, as the ops. */
template <class T> __device__ inline float gelu(bool by_tanh, float a)
{
    if (sizeof(T) == 2)
        return by_tanh ? pc::brief_gelu_tanh::of(a) : pc::brief_gelu::of(a);
    return by_tanh ? pc::of_gelu_tanh<float>()(a) : pc::of_gelu<float>()(a);
}

template <class T> __device__ inline T layer_activated(int kind, float x)
{
    return T(kind >= ACTIVATION_GELU ? gelu<T>(kind == ACTIVATION_GELU_TANH, x) : activated(kind, x));
}

} // namespace

#endif
