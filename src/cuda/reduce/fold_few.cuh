/* fold_few.cuh: rows so short and so few that the time is that of the way to the first result: a warp has one, all of whose
 * elements are under way at once, without a division, a loop or a case in front of them. */
#ifndef PC__CUDA_FOLD_FEW_CUH
#define PC__CUDA_FOLD_FEW_CUH

#include "cuda/reduce/few.h"
#include "cuda/reduce/fold_lanes.cuh"
#include "cuda/shared/dependent_launch.cuh"

namespace
{

constexpr unsigned FEW_THREADS = 256;

/* The state of a warp's row, for the first lane: of each lane the first `count` of these EACH, which are 32 apart in the row; by the kind's
 * own way where it has one. */
template <int EACH, class F>
__device__ __forceinline__ auto row_of_few(const F &f, typename F::state &mine, const typename F::type (&x)[EACH],
                                           int count, int) -> decltype(f.row_of_few(mine, x, count))
{
    f.row_of_few(mine, x, count);
}

template <int EACH, class F>
__device__ __forceinline__ void row_of_few(const F &f, typename F::state &mine, const typename F::type (&x)[EACH],
                                           int count, long)
{
#pragma unroll
    for (int u = 0; u < EACH; u++)
        if (u < count)
            f.see(mine, reinterpret_cast<const typename F::type(&)[1]>(x[u]), threadIdx.x % 32 + u * 32);
    join_lanes(f, mine, 32, 0);
}

template <int EACH, class F>
__global__ void __launch_bounds__(FEW_THREADS)
    fold_few(const __grid_constant__ F f, const typename F::type *__restrict__ in, unsigned n, unsigned rows)
{
    const unsigned row = blockIdx.x * (FEW_THREADS / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    const int count = lane < n ? static_cast<int>((n - lane + 31) / 32) : 0;
    typename F::type x[EACH];
    typename F::state mine = f.nothing();
    pc::wait_for_earlier();
    if (row >= rows)
        return;
    const typename F::type *from = in + static_cast<size_t>(row) * n + lane;
#pragma unroll
    for (int u = 0; u < EACH; u++)
        if (u < count)
            x[u] = from[u * 32];
    row_of_few(f, mine, x, count, 0);
    if (lane == 0)
        f.store(mine, row);
}

template <class F>
void start_few(unsigned rows, unsigned n, const F &f, const typename F::type *in, cudaStream_t queue, int early)
{
    constexpr int MOST = PC__FEW_ELEMENTS / 32;
    const unsigned warps = FEW_THREADS / 32;
    (void)pc::start(n <= PC__FEW_ELEMENTS / 2 ? fold_few<MOST / 2, F> : fold_few<MOST, F>, (rows + warps - 1) / warps,
                    rows < warps ? rows * 32 : FEW_THREADS, queue, early, f, in, n, rows);
}

} // namespace

#endif
