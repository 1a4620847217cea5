/* scale.cu: gradients divided by the scale where they lie, infinities noted, the next scale. A block finds its gradient
 * from where each one's blocks start, as in step.cu. Whoever finds something writes the same 1. */
#include "cuda/optim/scale.h"

#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/half.cuh"

#define THREADS 256

namespace
{

template <class T>
__global__ void __launch_bounds__(THREADS) unscale_kernel(const __grid_constant__ pc__cuda_gradients g)
{
    typedef pc::math<T> M;
    int low = 0, high = g.count - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (g.starts[middle] <= blockIdx.x)
            low = middle;
        else
            high = middle - 1;
    }
    T *x = (T *)g.data[low];
    const int64_t from = (int64_t)(blockIdx.x - g.starts[low]) * PC__UNSCALE_PIECE;
    const int64_t to = from + PC__UNSCALE_PIECE < g.n[low] ? from + PC__UNSCALE_PIECE : g.n[low];
    pc::wait_for_earlier();
    const M inverse = M(1 / g.numbers[PC__SCALER_SCALE]);
    bool found = false;
#pragma unroll 4
    for (int64_t i = from + threadIdx.x; i < to; i += THREADS) {
        const T value = T(M(x[i]) * inverse);
        found |= !(M(value) - M(value) == 0);
        x[i] = value;
    }
    if (found)
        g.numbers[PC__SCALER_FOUND] = 1;
}

__global__ void scale_update_kernel(float *numbers, pc__scale_attributes rules)
{
    pc::wait_for_earlier();
    pc__scale_next(numbers, rules);
}

template <class T> void unscale(cudaStream_t queue, int early, const pc__cuda_gradients *g, unsigned blocks)
{
    (void)pc::start(unscale_kernel<T>, blocks, THREADS, queue, early, *g);
}

} // namespace

void pc__cuda_unscale(cudaStream_t queue, int early, const pc__cuda_gradients *g, int dtype, unsigned blocks)
{
    static_assert(sizeof *g <= 4096, "the arguments of a kernel");
    switch (dtype) {
    case PC__CUDA_F16:
        return unscale<pc::f16>(queue, early, g, blocks);
    case PC__CUDA_BF16:
        return unscale<pc::bf16>(queue, early, g, blocks);
    case PC__CUDA_F32:
        return unscale<float>(queue, early, g, blocks);
    default:
        return unscale<double>(queue, early, g, blocks);
    }
}

void pc__cuda_scale_update(cudaStream_t queue, int early, float *numbers, const pc__scale_attributes *rules)
{
    (void)pc::start(scale_update_kernel, 1, 1, queue, early, numbers, *rules);
}
