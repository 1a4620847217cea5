/* score.cu: one block counts the right answers of a batch; batches are small. The sums have the host's bits: the loss
 * times n is exact, and the batches come one after the other. */
#include "cuda/score.h"

#include "cuda/early.cuh"
#include "cuda/sums.cuh"

namespace
{

constexpr int THREADS = 256;

__device__ int64_t named(const float *row, int64_t width)
{
    if (width == 1)
        return row[0] >= 0;
    int64_t best = 0;
    for (int64_t i = 1; i < width; i++)
        if (row[i] > row[best])
            best = i;
    return best;
}

__global__ void __launch_bounds__(THREADS) score_kernel(const pc__cuda_score s)
{
    pc::wait_for_earlier();
    long long right = 0;
    for (int64_t i = threadIdx.x; i < s.n; i += THREADS) {
        const int64_t label = s.floats ? static_cast<int64_t>(static_cast<const float *>(s.labels)[i])
                                       : static_cast<const int64_t *>(s.labels)[i];
        right += named(s.logits + i * s.width, s.width) == label;
    }
    right = block_join<plus, THREADS>(right, 0ll);
    if (threadIdx.x != 0)
        return;
    s.sums[0] = __dadd_rn(s.sums[0], __dmul_rn(static_cast<double>(*s.loss), static_cast<double>(s.n)));
    s.sums[1] += static_cast<double>(right);
}

} // namespace

void pc__cuda_score_add(const pc__cuda_score *score, cudaStream_t queue, int early)
{
    (void)pc::start(score_kernel, 1, THREADS, queue, early, *score);
}
