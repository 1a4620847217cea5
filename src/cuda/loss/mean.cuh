/* mean.cuh: the mean of what is lost. Each block sums up its elements or rows into one number; one block then sums those,
 * always in the same order. What is small is done by one block alone, in one launch. */
#ifndef PC__CUDA_MEAN_CUH
#define PC__CUDA_MEAN_CUH

#include "cuda/loss/loss.h"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/half.cuh"
#include "cuda/shared/sums.cuh"

#define THREADS 256
#define BLOCKS_MOST 1024 /* numbers in the scratch memory */
#define BLOCK_WORK 4096  /* elements that make a block worth its launch */

namespace
{

/* The sum of a block goes to its place in `sums`, or, when the block is alone, as the mean over n to `mean`. */
template <class T> __device__ inline void give(double sum, double n, double *sums, T *mean)
{
    sum = block_join<plus, THREADS>(sum, 0.0);
    if (threadIdx.x != 0)
        return;
    if (gridDim.x == 1)
        *mean = T((pc::math<T>)(sum / n));
    else
        sums[blockIdx.x] = sum;
}

/* One block: the mean from the sums of `blocks` blocks. */
template <class T>
__global__ void __launch_bounds__(THREADS) mean_kernel(const double *sums, int blocks, double n, T *mean)
{
    double sum = 0;
    pc::wait_for_earlier();
    for (int i = threadIdx.x; i < blocks; i += THREADS)
        sum += sums[i];
    give(sum, n, (double *)NULL, mean);
}

int blocks_for(long long work)
{
    const long long blocks = (work + BLOCK_WORK - 1) / BLOCK_WORK;
    return blocks < 1 ? 1 : blocks > BLOCKS_MOST ? BLOCKS_MOST : (int)blocks;
}

} // namespace

/* losses<T, L>::call for the dtypes of logits and loss. */
#define BY_DTYPES(logits, loss, call)                                                                                  \
    switch (logits) {                                                                                                  \
    case PC__CUDA_F16:                                                                                                 \
        return (loss) == PC__CUDA_F16 ? losses<pc::f16, pc::f16>::call : losses<pc::f16, float>::call;                 \
    case PC__CUDA_BF16:                                                                                                \
        return (loss) == PC__CUDA_BF16 ? losses<pc::bf16, pc::bf16>::call : losses<pc::bf16, float>::call;             \
    case PC__CUDA_F32:                                                                                                 \
        return losses<float, float>::call;                                                                             \
    default:                                                                                                           \
        return losses<double, double>::call;                                                                           \
    }

#endif
