/* means.cu: for each row of queries the product of its result and that's gradient, which is the mean of its weights'
 * gradients by weight. A warp has a row, of which a lane reads a few numbers before it waits for the first. */
#include "cuda/attention/score.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

constexpr int THREADS = 256, LANES = 32, AT_ONCE = 4;

template <class T> __global__ void __launch_bounds__(THREADS) means_kernel(const __grid_constant__ pc__cuda_attention a)
{
    const int64_t i = static_cast<int64_t>(blockIdx.x) * (THREADS / LANES) + threadIdx.x / LANES;
    pc::math<T> sum = 0;
    pc::wait_for_earlier();
    if (i >= a.batches * a.l)
        return;
    const T *y = matrix<const T>(a, a.y, i / a.l) + i % a.l * a.y.row;
    const T *g = matrix<const T>(a, a.g, i / a.l) + i % a.l * a.g.row;
    for (int first = threadIdx.x % LANES; first < a.ev; first += AT_ONCE * LANES) {
        T of_y[AT_ONCE], of_g[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const int e = first + k * LANES;
            of_y[k] = e < a.ev ? y[e * a.y.column] : T(0.0f);
            of_g[k] = e < a.ev ? g[e * a.g.column] : T(0.0f);
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            sum += pc::math<T>(of_y[k]) * pc::math<T>(of_g[k]);
    }
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
