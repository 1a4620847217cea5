/* score.cu: one block counts the right answers of a batch; batches are small. */
#include "cuda/loss/score.h"

#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/half.cuh"
#include "cuda/loss/score.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

constexpr int THREADS = 256;

template <class T> __device__ int64_t named(const T *row, int64_t width)
{
    if (width == 1)
        return float(row[0]) >= 0;
    int64_t best = 0;
    for (int64_t i = 1; i < width; i++)
        if (float(row[i]) > float(row[best]))
            best = i;
    return best;
}

template <class T> __global__ void __launch_bounds__(THREADS) score_kernel(const pc__cuda_score s)
{
    pc::wait_for_earlier();
    long long right = 0;
    int ignored = 0; /* of another type, since what joins them has one memory for each */
    for (int64_t i = threadIdx.x; i < s.n; i += THREADS) {
        const int64_t label = s.floats ? static_cast<int64_t>(static_cast<const float *>(s.labels)[i])
                                       : static_cast<const int64_t *>(s.labels)[i];
        right += named(static_cast<const T *>(s.logits) + i * s.width, s.width) == label;
        ignored += !s.floats && label == s.ignored;
    }
    right = block_join<plus, THREADS>(right, 0ll);
    ignored = block_join<plus, THREADS>(ignored, 0);
    if (threadIdx.x != 0)
        return;
    add_score(s.sums, make_double2(s.sums[0], s.sums[1]), *s.loss, s.n - ignored, right);
    s.sums[2] += static_cast<double>(ignored);
}

} // namespace

void pc__cuda_score_add(const pc__cuda_score *s, cudaStream_t queue, int early)
{
    (void)pc::start(s->dtype == PC__CUDA_F32   ? score_kernel<float>
                    : s->dtype == PC__CUDA_F16 ? score_kernel<pc::f16>
                                               : score_kernel<pc::bf16>,
                    1, THREADS, queue, early, *s);
}
