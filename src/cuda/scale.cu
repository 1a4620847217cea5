/* scale.cu: gradients divided by the scale where they lie, infinities noted, the next scale. A block finds its gradient
 * from where each one's blocks start, as in step.cu. Whoever finds something writes the same 1. */
#include "cuda/scale.h"

#include "cuda/half.cuh"

#define THREADS 256

namespace
{

enum { SCALE, CLEAN, FOUND }; /* as in ops/scale.h */

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
    const M inverse = M(1 / g.numbers[SCALE]);
    bool found = false;
#pragma unroll 4
    for (int64_t i = from + threadIdx.x; i < to; i += THREADS) {
        const M value = x[i];
        found |= !(value - value == 0);
        x[i] = T(value * inverse);
    }
    if (found)
        g.numbers[FOUND] = 1;
}

__global__ void count_clean_kernel(const float *numbers, int64_t *counter)
{
    *counter += numbers[FOUND] == 0;
}

__global__ void scale_update_kernel(float *numbers, float growth, float backoff, float interval)
{
    const float clean = numbers[CLEAN] + 1;
    const bool found = numbers[FOUND] != 0, grows = !found && clean >= interval;
    const float next = numbers[SCALE] * (found ? backoff : grows ? growth : 1);
    numbers[SCALE] = next - next == 0 ? next : numbers[SCALE];
    numbers[CLEAN] = found || grows ? 0 : clean;
    numbers[FOUND] = 0;
}

} // namespace

void pc__cuda_unscale(cudaStream_t queue, const pc__cuda_gradients *g, int dtype, unsigned blocks)
{
    static_assert(sizeof *g <= 4096, "the arguments of a kernel");
    switch (dtype) {
    case PC__CUDA_F16:
        return unscale_kernel<pc::f16><<<blocks, THREADS, 0, queue>>>(*g);
    case PC__CUDA_BF16:
        return unscale_kernel<pc::bf16><<<blocks, THREADS, 0, queue>>>(*g);
    case PC__CUDA_F32:
        return unscale_kernel<float><<<blocks, THREADS, 0, queue>>>(*g);
    default:
        return unscale_kernel<double><<<blocks, THREADS, 0, queue>>>(*g);
    }
}

void pc__cuda_count_clean(cudaStream_t queue, const float *numbers, int64_t *counter)
{
    count_clean_kernel<<<1, 1, 0, queue>>>(numbers, counter);
}

void pc__cuda_scale_update(cudaStream_t queue, float *numbers, float growth, float backoff, float interval)
{
    scale_update_kernel<<<1, 1, 0, queue>>>(numbers, growth, backoff, interval);
}
