/* linear_gradient.cuh: gradients of weights and biases, which are floats unless they are narrow. */
#ifndef PC__CUDA_LINEAR_GRADIENT_CUH
#define PC__CUDA_LINEAR_GRADIENT_CUH

namespace
{

/* Element i of what has T where it is narrow. */
template <class T> __device__ inline void store_gradient(void *to, bool narrow, int i, float value)
{
    if (narrow)
        static_cast<T *>(to)[i] = T(value);
    else
        static_cast<float *>(to)[i] = value;
}

} // namespace

#endif
