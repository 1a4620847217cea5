/* gradient_norm.cu: squares of a piece of a gradient are a block's, the last block adds up what all have, in the order of
 * the blocks' numbers: the same bits each time. A thread adds up few squares in the gradient's own precision, all else is
 * in float64. */
#include "cuda/optim/gradient_norm.h"

#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/last_block.cuh"
#include "cuda/shared/list.cuh"
#include "cuda/shared/sums.cuh"

#define THREADS 512

namespace
{

template <class T> __device__ inline double squares_of(const T *x, int n)
{
    constexpr int W = 16 / sizeof(T);
    struct alignas(16) pack {
        T at[W];
    };
    const int whole = (uintptr_t)x % 16 == 0 ? n / W : 0;
    T sum[W] = {};
#pragma unroll 4
    for (int i = threadIdx.x; i < whole; i += THREADS) {
        const pack p = ((const pack *)x)[i];
#pragma unroll
        for (int j = 0; j < W; j++)
            sum[j] += p.at[j] * p.at[j];
    }
    for (int i = whole * W + threadIdx.x; i < n; i += THREADS)
        sum[0] += x[i] * x[i];
    double all = 0;
#pragma unroll
    for (int j = 0; j < W; j++)
        all += (double)sum[j];
    return all;
}

template <class T> __global__ void __launch_bounds__(THREADS) norm_kernel(const __grid_constant__ pc__cuda_norm g)
{
    double squares = 0;
    pc::wait_for_earlier();
    if (g.count > 0) {
        const int part = pc::part_of(g.starts, g.count);
        const int64_t from = (int64_t)(blockIdx.x - g.starts[part]) * g.piece, left = g.n[part] - from;
        squares = squares_of((const T *)g.data[part] + from, (int)(left < g.piece ? left : g.piece));
    }
    squares = block_join<plus, THREADS>(squares, 0.0);
    if (threadIdx.x == 0)
        g.sums[g.first + blockIdx.x] = squares;
    if (!g.counter || !pc::comes_last(g.counter, gridDim.x))
        return;
    double sum = 0;
#pragma unroll 8
    for (int64_t i = threadIdx.x; i < g.first + gridDim.x; i += THREADS)
        sum += pc::ahead(&g.sums[i]);
    sum = block_join<plus, THREADS>(sum, 0.0); /* the barriers of comes_last lie in between */
    if (threadIdx.x == 0) {
        const double norm = sqrt(sum), factor = g.most / (norm + 1e-6);
        g.clip[0] = norm;
        g.clip[1] = factor > 1 ? 1 : factor;
    }
}

} // namespace

void pc__cuda_gradient_norm(cudaStream_t queue, const pc__cuda_norm *norm, unsigned blocks)
{
    static_assert(sizeof *norm <= 4096, "the arguments of a kernel");
    (void)pc::start(norm->dtype == PC__CUDA_F64 ? norm_kernel<double> : norm_kernel<float>, blocks ? blocks : 1,
                    THREADS, queue, norm->early, *norm);
}
