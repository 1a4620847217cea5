/* means.cu: for each row of queries the product of its result and that's gradient, which is the mean of its weights'
 * gradients by weight. A row has as many lanes as have a few numbers each, which all are under way before the first is there. */
#include "cuda/attention/score.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

constexpr int THREADS = 256, LANES = 32, AT_ONCE = 4;

/* `lanes` of a row, a power of 2. */
template <class T>
__global__ void __launch_bounds__(THREADS) means_kernel(const __grid_constant__ pc__cuda_attention a, int lanes)
{
    const int shift = __ffs(lanes) - 1, lane = threadIdx.x & (lanes - 1);
    const long long rows = a.batches * a.l;
    const long long i = static_cast<long long>(blockIdx.x) * (THREADS >> shift) + (threadIdx.x >> shift);
    const bool there = i < rows;
    const long long batch = there ? quotient(i, a.l) : 0, row = there ? i - batch * a.l : 0;
    const pc__cuda_matrices *const of[] = {&a.y, &a.g};
    int64_t at[2];
    pc::math<T> sum = 0;
    pc::wait_for_earlier();
    find_matrices(a, of, static_cast<unsigned>(batch), at);
    const T *y = static_cast<const T *>(a.y.data) + at[0] + row * a.y.row;
    const T *g = static_cast<const T *>(a.g.data) + at[1] + row * a.g.row;
    for (int first = lane; there && first < a.ev; first += AT_ONCE * lanes) {
        T of_y[AT_ONCE], of_g[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const int e = first + k * lanes;
            of_y[k] = e < a.ev ? y[e * a.y.column] : T(0.0f);
            of_g[k] = e < a.ev ? g[e * a.g.column] : T(0.0f);
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            sum += pc::math<T>(of_y[k]) * pc::math<T>(of_g[k]);
    }
    sum = sum_of_lanes(sum, lanes);
    if (there && lane == 0)
        static_cast<pc::math<T> *>(a.means)[i] = sum;
}

template <class T> void means(const pc__cuda_attention *a)
{
    int lanes = 1;
    while (lanes < LANES && lanes * AT_ONCE < a->ev)
        lanes *= 2;
    const int64_t rows = THREADS / lanes, blocks = (a->batches * a->l + rows - 1) / rows;
    (void)pc::start(means_kernel<T>, (unsigned)blocks, THREADS, a->queue, a->early, *a, lanes);
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
