/* mean.cuh: the mean of what is lost. Each block sums up its elements or rows into one number; one block then sums those,
 * always in the same order. What is small is done by one block alone, in one launch. */
#ifndef PC__CUDA_MEAN_CUH
#define PC__CUDA_MEAN_CUH

#include "cuda/loss/loss.h"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/half.cuh"
#include "cuda/shared/sums.cuh"

#define THREADS 256
#define WIDE_THREADS 1024 /* of a block that is alone */
#define BLOCKS_MOST 1024  /* numbers in the scratch memory */

namespace
{

/* The sum of a block goes to its place in `sums`, or, when the block is alone, as the mean over n to `mean`. */
template <class T> __device__ inline void give(double sum, double n, double *sums, T *mean)
{
    __shared__ double room[WIDE_THREADS / 32];
    sum = over_block(sum, room);
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

/* Rows so far apart are whole packs of 16 bytes. */
template <class T> bool has_pitch(const void *data, long long pitch)
{
    return (uintptr_t)data % 16 == 0 && pitch * sizeof(T) % 16 == 0;
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
