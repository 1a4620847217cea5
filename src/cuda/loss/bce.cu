/* bce.cu: binary cross-entropy of probabilities. */
#include "cuda/loss/bce.h"
#include "cuda/pointwise/loop.cuh"
#include "cuda/shared/real.cuh"

namespace
{

template <class T> __device__ T cut(T value)
{
    return value < -100 ? T(-100) : value;
}

template <class T> struct bce_of : pc::shape_of<T, 2, T, T> {
    __device__ T operator()(T x, T y) const
    {
        return (y - 1) * cut(log1p_of(-x)) - y * cut(log_of(x));
    }
};

} // namespace

void pc__cuda_bce(const pc__cuda_launch *l, int dtype)
{
    dtype == PC__CUDA_F64 ? pc::run(l, bce_of<double>()) : pc::run(l, bce_of<float>());
}
