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
    long long first; /* where its result begins */
    long long begin; /* the number of its first element, of a piece */
};

__device__ __forceinline__ short_part short_part_of(const pc__cuda_short &s)
{
    const unsigned beside = s.across ? s.across : s.lanes, low = threadIdx.x & (beside - 1); /* a power of 2 */
    const unsigned high = (s.across ? threadIdx.x : blockIdx.x * blockDim.x + threadIdx.x) >> (__ffs(beside) - 1);
    const unsigned id = s.across ? blockIdx.x * beside + low : high;
    short_part p = {min(id, s.results - 1), static_cast<int>(s.across ? high : low), s.n, false, 0, 0};
    p.writes = p.lane == 0 && id < s.results;
    unsigned left = p.result;
    if (s.parts > 1) {
        const unsigned kept = s.results / s.parts, part = s.across ? left / kept : left % s.parts;
        left = s.across ? left - part * kept : left / s.parts;
        p.begin = part * static_cast<long long>(s.n);
        p.n = static_cast<int>(min(static_cast<long long>(s.n), s.whole - p.begin));
    }
#pragma unroll 1
    for (int d = s.dims - 1; d > 0; d--) {
        const unsigned above = left / s.size[d];
        p.first += static_cast<long long>(left - above * s.size[d]) * s.stride[d];
        left = above;
    }
    p.first += static_cast<long long>(left) * s.stride[0];
    return p;
}

/* Where element e of a result is, from where that begins. */
__device__ __forceinline__ long long place_of(const pc__cuda_short &s, unsigned e)
{
    const unsigned above = e / s.fold[0];
    const long long at = (e - above * s.fold[0]) * s.step;
    if (s.folds == 1)
        return at + above * s.above[0];
    const unsigned most = above / s.fold[1];
    return at + (above - most * s.fold[1]) * s.above[0] + most * s.above[1];
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
    const int block = s->across ? s->across * s->lanes : s->lanes > WARP ? s->lanes : SHORT_THREADS;
    const long long per_block = block / s->lanes;
    (void)pc::start(kernel, static_cast<unsigned>((s->results + per_block - 1) / per_block), block, s->queue, s->early,
                    parameters...);
}

} // namespace

#endif
