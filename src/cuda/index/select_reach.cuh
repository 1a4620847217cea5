/* select_reach.cuh: how far the first items of long lists reach, which blocks with a part of a list each find out together
 * (select_digits.cu), and the keys that they look at. */
#ifndef PC__CUDA_SELECT_REACH_CUH
#define PC__CUDA_SELECT_REACH_CUH

#include "cuda/index/radix_tensor.cuh"

namespace
{

constexpr int BITS = 11, AT_ONCE = 8 /* elements of a thread under way */;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int RESIDENT = 1024 / THREADS; /* all that a multiprocessor has */
#else
constexpr int RESIDENT = PC__CUDA_SELECT_BLOCKS;
#endif
constexpr unsigned BINS = 1u << BITS, TILE = THREADS * AT_ONCE;
static_assert(BINS == PC__CUDA_SELECT_BINS && TILE == PC__CUDA_SELECT_TILE, "as rank.c asks for memory");

/* How far the first items reach: the key's digits found so far, and which of those with them the last item is, from 0. */
struct reach {
    unsigned digits, wanted;
};

/* Of a chunk, how many have smaller digits than the reach, and how many the same. */
struct tally {
    unsigned below, same;

    __device__ __forceinline__ void operator+=(const tally &other)
    {
        below += other.below, same += other.same;
    }
};

struct search {
    unsigned n, chunk, chunks, count;
    unsigned *bins; /* [list][SELECT_PASSES][BINS] */
    reach *reaches; /* [list][SELECT_PASSES + 1]; number i in front of pass i */
    tally *tallies; /* [list][chunk] */

    __device__ __forceinline__ reach *reaches_of(unsigned list) const
    {
        return reaches + list * (PC__CUDA_SELECT_PASSES + 1);
    }
    __device__ __forceinline__ unsigned *bins_of(unsigned list, unsigned pass) const
    {
        return bins + (static_cast<size_t>(list) * PC__CUDA_SELECT_PASSES + pass) * BINS;
    }
};

/* The bits of a key that a pass counts, and where those begin that are found. */
struct digit {
    unsigned pass, shift, bits, found;
};

/* A block's part of a list. */
struct part {
    unsigned list, chunk, begin, end;
};

__device__ __forceinline__ part part_of(const search &s)
{
    const unsigned list = blockIdx.x / s.chunks, chunk = blockIdx.x - list * s.chunks, begin = chunk * s.chunk;
    return {list, chunk, begin, min(begin + s.chunk, s.n)};
}

template <class T> struct keys {
    const T *from;
    int64_t n;
    unsigned turned; /* bits, where the largest come first */

    __device__ __forceinline__ keys of(unsigned list) const
    {
        return {from + list * n, n, turned};
    }
};

/* The place of a thread's first key in a tile; its others are 32 apart, so that a warp has neighbours. */
__device__ __forceinline__ unsigned first_of(unsigned tile)
{
    return tile + threadIdx.x / 32 * (32 * AT_ONCE) + threadIdx.x % 32;
}

/* Those before `end`, all under way at once, of a WHOLE tile all; behind them the last one, again and again. */
template <bool WHOLE, class T>
__device__ __forceinline__ void load_tile(const keys<T> &in, unsigned tile, unsigned end, unsigned (&key)[AT_ONCE])
{
    const unsigned first = first_of(tile);
    const T *from = in.from + first;
    T x[AT_ONCE];
#pragma unroll
    for (unsigned k = 0; k < AT_ONCE; k++)
        x[k] = WHOLE ? from[k * 32] : in.from[min(first + k * 32, end - 1)];
#pragma unroll
    for (unsigned k = 0; k < AT_ONCE; k++)
        key[k] = static_cast<unsigned>(whole_key(x[k])) ^ in.turned;
}

template <bool IS> struct whole_tile {
    static constexpr bool is = IS;
};

/* f(where a tile begins, whether it is whole) */
template <class F> __device__ __forceinline__ void each_tile(const part &own, F &&f)
{
    unsigned tile = own.begin;
#pragma unroll 1
    for (; tile + TILE <= own.end; tile += TILE)
        f(tile, whole_tile<true>());
    if (tile < own.end)
        f(tile, whole_tile<false>());
}

/* The reach in front of a pass, from that before it and what this counted, of so many `bits`; the first chunk leaves it for what follows. */
__device__ __forceinline__ reach reach_of(const search &s, const part &own, unsigned pass, unsigned bits)
{
    constexpr unsigned EACH = BINS / THREADS;
    __shared__ unsigned of_warps[WARPS];
    __shared__ reach found;
    if (pass == 0) {
        if (threadIdx.x == 0)
            found = {0, s.count - 1};
    } else {
        const reach last = s.reaches_of(own.list)[pass - 1];
        const unsigned *bins = s.bins_of(own.list, pass - 1) + threadIdx.x * EACH;
        unsigned here[EACH], sum = 0;
#pragma unroll
        for (unsigned k = 0; k < EACH; k++)
            sum += here[k] = bins[k];
        unsigned before = sum_before(sum, of_warps);
#pragma unroll
        for (unsigned k = 0; k < EACH; k++) {
            if (last.wanted >= before && last.wanted - before < here[k])
                found = {last.digits << bits | (threadIdx.x * EACH + k), last.wanted - before};
            before += here[k];
        }
    }
    __syncthreads();
    if (own.chunk == 0 && threadIdx.x == 0)
        s.reaches_of(own.list)[pass] = found;
    return found;
}

/* The sum of all threads' tallies, for the first one. */
__device__ __forceinline__ tally sum_tallies(tally mine)
{
    __shared__ tally warps[WARPS];
    mine = {warp_join<plus>(mine.below), warp_join<plus>(mine.same)};
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = mine;
    __syncthreads();
    tally all = {0, 0};
    for (int w = 0; w < WARPS; w++)
        all += warps[w];
    return all;
}

} // namespace

#endif
