/* fold_lanes.cuh: states of neighbouring lanes become one. */
#ifndef PC__CUDA_FOLD_LANES_CUH
#define PC__CUDA_FOLD_LANES_CUH

#include "cuda/reduce/fold.h"

namespace
{

/* What the lane so far away has. */
template <class S> __device__ __forceinline__ S from_lane(const S &mine, int distance)
{
    static_assert(sizeof(S) % sizeof(unsigned) == 0 && sizeof(S) <= PC__FOLD_STATE, "a state is whole words");
    constexpr int WORDS = sizeof(S) / sizeof(unsigned);
    union {
        S state;
        unsigned words[WORDS];
    } to;
    to.state = mine;
#pragma unroll
    for (int w = 0; w < WORDS; w++)
        to.words[w] = __shfl_xor_sync(0xffffffffu, to.words[w], distance);
    return to.state;
}

/* Over `lanes` neighbours of a warp, for the first of them; by the kind's own way where it has one. */
template <class F>
__device__ __forceinline__ auto join_lanes(const F &f, typename F::state &mine, int lanes, int)
    -> decltype(f.over_lanes(mine, lanes))
{
    f.over_lanes(mine, lanes);
}

template <class F> __device__ __forceinline__ void join_lanes(const F &f, typename F::state &mine, int lanes, long)
{
    for (int step = lanes / 2; step > 0; step /= 2)
        f.meet(mine, from_lane(mine, step));
}

} // namespace

#endif
