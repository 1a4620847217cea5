/* radix_block.cuh: passes of a sort by digits in a block's own memory. */
#ifndef PC__CUDA_RADIX_BLOCK_CUH
#define PC__CUDA_RADIX_BLOCK_CUH

#include "cuda/index/radix.cuh"

namespace
{

template <int ITEMS> struct list_room {
    narrow items[ITEMS * THREADS];
    unsigned counts[WARPS][DIGITS]; /* then where the warp's first item of the digit goes in `items` */
    unsigned of_warps[WARPS];
};

/* One pass: the items in order of the digit, those of one as they came. */
template <int ITEMS>
__device__ __forceinline__ void pass(const narrow (&items)[ITEMS], unsigned shift, list_room<ITEMS> &room)
{
    const unsigned warp = threadIdx.x / 32;
    unsigned ranks[ITEMS], here;
#pragma unroll
    for (int w = 0; w < WARPS; w++)
        room.counts[w][threadIdx.x] = 0;
    __syncthreads();
    rank_items(items, ranks, shift, room.counts[warp]);
    __syncthreads();
    (void)place_warps(room.counts, room.of_warps, here);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        room.items[room.counts[warp][digit_of(items[k], shift)] + ranks[k]] = items[k];
    __syncthreads();
}

} // namespace

#endif
