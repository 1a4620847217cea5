/* short.cuh: where the elements of short reductions lie, and which of them a thread has: up to 8 under way at once, 8 x lanes in
 * a turn. Neighbouring threads of a result have neighbours of its elements; its place is divided out once, by 32 bits. */
#ifndef PC__CUDA_SHORT_CUH
#define PC__CUDA_SHORT_CUH

#include "cuda/reduce/reduce.h"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/half.cuh"

namespace
{

constexpr int SHORT_THREADS = 128, SHORT_AT_ONCE = 8, WARP = 32;

/* What falls to a thread; beyond the last result, that one once more, for nothing. */
struct short_part {
    unsigned result;
    int lane, n; /* n: elements of its result */
    bool writes;
    long long first; /* element of its result */
};

__device__ __forceinline__ short_part short_part_of(const pc__cuda_short &s)
{
    const unsigned id = (blockIdx.x * blockDim.x + threadIdx.x) / s.lanes;
    short_part p = {min(id, s.results - 1), static_cast<int>(threadIdx.x % s.lanes), s.n, false, 0};
    p.writes = p.lane == 0 && id < s.results;
    if (s.whole)
        p.n = static_cast<int>(
            min(static_cast<long long>(s.n), s.whole - p.result % s.size[s.dims - 1] * static_cast<long long>(s.n)));
    unsigned left = p.result;
    for (int d = s.dims - 1; d > 0; d--) {
        const unsigned above = left / s.size[d];
        p.first += static_cast<long long>(left - above * s.size[d]) * s.stride[d];
        left = above;
    }
    p.first += static_cast<long long>(left) * s.stride[0];
    return p;
}

/* A result with several warps has a block: what each of them has, for `lanes` / 32 neighbours of every one. */
template <class V> __device__ __forceinline__ V of_warps(const V &mine, int lanes)
{
    __shared__ V warps[PC__SHORT_LANES / WARP];
    if (threadIdx.x % WARP == 0)
        warps[threadIdx.x / WARP] = mine;
    __syncthreads();
    return warps[threadIdx.x % (lanes / WARP)];
}

template <class... P> void start_short(void (*kernel)(P...), const pc__cuda_short *s, P... parameters)
{
    const int block = s->lanes > WARP ? s->lanes : SHORT_THREADS;
    const long long threads = static_cast<long long>(s->results) * s->lanes;
    (void)pc::start(kernel, static_cast<unsigned>((threads + block - 1) / block), block, s->queue, s->early,
                    parameters...);
}

} // namespace

#endif
