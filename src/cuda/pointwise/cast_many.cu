/* cast_many.cu: the list is an argument of the kernel, and a block finds its tensor in it, as the optimiser's do. Where
 * both sides lie on 16 bytes a thread takes four neighbours, the 16 bytes of the wider side. */
#include "cuda/pointwise/cast_many.h"

#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/half.cuh"
#include "cuda/shared/list.cuh"
#include "cuda/shared/load.cuh"

#define THREADS 256

namespace
{

using pc::bf16;
using pc::f16;

/* What the kernel sees of pc__cuda_conversions, with the block where each tensor starts. */
struct conversions {
    int count;
    pc__cuda_conversion of[PC__CAST_MOST];
    unsigned starts[PC__CAST_MOST];
};

/* Elements [from, to) of one tensor, W at once; both are multiples of W. */
template <class T, class F, int W> __device__ inline void run(const pc__cuda_conversion &q, int64_t from, int64_t to)
{
    for (int64_t i = from / W + threadIdx.x; i < to / W; i += THREADS) {
        const vector<F, W> a = static_cast<const vector<F, W> *>(q.from)[i];
        vector<T, W> b;
#pragma unroll
        for (int j = 0; j < W; j++)
            b.at[j] = T(static_cast<float>(a.at[j]));
        static_cast<vector<T, W> *>(q.to)[i] = b;
    }
}

template <class T, class F>
__global__ void __launch_bounds__(THREADS) convert_all(const __grid_constant__ conversions c)
{
    pc::wait_for_earlier();
    const int part = pc::part_of(c.starts, c.count);
    const pc__cuda_conversion &q = c.of[part];
    const int64_t from = static_cast<int64_t>(blockIdx.x - c.starts[part]) * PC__CAST_PIECE;
    const int64_t to = from + PC__CAST_PIECE < q.count ? from + PC__CAST_PIECE : q.count;
    const bool whole = (reinterpret_cast<uintptr_t>(q.to) | reinterpret_cast<uintptr_t>(q.from)) % 16 == 0;
    if (whole && to % 4 == 0)
        run<T, F, 4>(q, from, to);
    else
        run<T, F, 1>(q, from, to);
}

template <class T, class F> void launch(cudaStream_t queue, const pc__cuda_conversions *all)
{
    static_assert(sizeof(conversions) <= 4096, "the arguments of a kernel");
    conversions c = {all->count};
    unsigned blocks = 0;
    for (int i = 0; i < all->count; i++) {
        c.of[i] = all->of[i];
        c.starts[i] = blocks;
        blocks += static_cast<unsigned>((all->of[i].count + PC__CAST_PIECE - 1) / PC__CAST_PIECE);
    }
    (void)pc::start(convert_all<T, F>, blocks, THREADS, queue, all->early, c);
}

} // namespace

void pc__cuda_convert_all(cudaStream_t queue, const pc__cuda_conversions *all)
{
    if (all->to == PC__CUDA_F16)
        launch<f16, float>(queue, all);
    else if (all->to == PC__CUDA_BF16)
        launch<bf16, float>(queue, all);
    else if (all->from == PC__CUDA_F16)
        launch<float, f16>(queue, all);
    else
        launch<float, bf16>(queue, all);
}
