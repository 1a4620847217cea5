/* means.cu: for each row of queries the product of its result and that's gradient, which is the mean of its weights'
 * gradients by weight. A warp has a row. */
#include "cuda/attention/score.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

constexpr int THREADS = 256, LANES = 32;

template <class T> __global__ void __launch_bounds__(THREADS) means_kernel(const __grid_constant__ pc__cuda_attention a)
{
    const int64_t i = static_cast<int64_t>(blockIdx.x) * (THREADS / LANES) + threadIdx.x / LANES;
    pc::math<T> sum = 0;
    pc::wait_for_earlier();
    if (i >= a.batches * a.l)
        return;
    const T *y = matrix<const T>(a, a.y, i / a.l) + i % a.l * a.y.row;
    const T *g = matrix<const T>(a, a.g, i / a.l) + i % a.l * a.g.row;
    for (int e = threadIdx.x % LANES; e < a.ev; e += LANES)
        sum += pc::math<T>(y[e * a.y.column]) * pc::math<T>(g[e * a.g.column]);
    sum = warp_join<plus>(sum);
    if (threadIdx.x % LANES == 0)
        static_cast<pc::math<T> *>(a.means)[i] = sum;
}

template <class T> void means(const pc__cuda_attention *a)
{
    const int64_t blocks = (a->batches * a->l + THREADS / LANES - 1) / (THREADS / LANES);
    (void)pc::start(means_kernel<T>, (unsigned)blocks, THREADS, a->queue, a->early, *a);
}

} // namespace

void pc__cuda_attention_means(const pc__cuda_attention *a)
{
    switch (a->dtype) {
    case PC__CUDA_F16:
        return means<pc::f16>(a);
    case PC__CUDA_BF16:
        return means<pc::bf16>(a);
    case PC__CUDA_F32:
        return means<float>(a);
    default:
        return means<double>(a);
    }
}
