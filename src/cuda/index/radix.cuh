/* radix.cuh: sorts by digits of 8 bits, the lowest first, each pass stable: tiles of a list are counted by digit, what lies in
 * front of each tile's share of a digit is added up, and the items go there, in runs which each block makes in its own memory.
 * Places follow from counts alone, so every run gives the same result. */
#ifndef PC__CUDA_RADIX_CUH
#define PC__CUDA_RADIX_CUH

#include "cuda/index/rank_item.cuh"
#include "cuda/shared/dependent_launch.cuh"

namespace
{

constexpr int DIGITS = PC__CUDA_RADIX_DIGITS, THREADS = DIGITS, WARPS = THREADS / 32;
constexpr int FEW = 32; /* tiles of a list, whose counts a block adds up as it comes */
constexpr unsigned ALL = 0xffffffffu;

template <class I> constexpr int TILE_OF = sizeof(I) == 8 ? PC__CUDA_RADIX_TILE : PC__CUDA_RADIX_TILE_WIDE;

struct digit_pass {
    unsigned n, tiles, shift;
    unsigned *counts; /* [list][digit][tile]; where there are many tiles, then what is in front of each */
    unsigned *totals; /* [list][digit], where there are many */
};

__device__ __forceinline__ unsigned digit_of(const narrow &item, unsigned shift)
{
    return static_cast<unsigned>(item.both >> (32 + shift)) & (DIGITS - 1);
}
__device__ __forceinline__ unsigned digit_of(const wide &item, unsigned shift)
{
    return static_cast<unsigned>(item.key >> shift) & (DIGITS - 1);
}

/* A pass reads from a source, of(list), what load(i) brings and make(that, i) makes an item of, and writes to a sink by
 * of(list).put(i, item). */
template <class Item> struct from_items {
    typedef Item I, raw;
    const I *items;
    int64_t n;

    __device__ __forceinline__ from_items of(int64_t list) const
    {
        return {items + list * n, n};
    }
    __device__ __forceinline__ I load(unsigned i) const
    {
        return items[i];
    }
    __device__ __forceinline__ I make(const I &it, unsigned) const
    {
        return it;
    }
};

template <class I> struct to_items {
    I *items;
    int64_t n;

    __device__ __forceinline__ to_items of(int64_t list) const
    {
        return {items + list * n, n};
    }
    __device__ __forceinline__ void put(unsigned i, const I &item) const
    {
        items[i] = item;
    }
};

/* Items from `first` on, so far from each other, all under way before the first is made; the last of all for those from `end` on. */
template <int ITEMS, class From>
__device__ __forceinline__ void load_items(const From &in, unsigned first, unsigned step, unsigned end,
                                           typename From::I (&items)[ITEMS])
{
    typename From::raw raw[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        raw[k] = in.load(min(first + k * step, end - 1));
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        items[k] = in.make(raw[k], min(first + k * step, end - 1));
        if (first + k * step >= end)
            items[k] = From::I::last();
    }
}

template <class From>
__global__ void __launch_bounds__(THREADS) count_digits(const __grid_constant__ digit_pass p, From source)
{
    typedef typename From::I I;
    constexpr unsigned TILE = TILE_OF<I>;
    constexpr int ITEMS = TILE / THREADS;
    __shared__ unsigned counts[DIGITS];
    const unsigned list = blockIdx.x / p.tiles, tile = blockIdx.x - list * p.tiles;
    const From in = source.of(list);
    counts[threadIdx.x] = 0;
    pc::wait_for_earlier();
    __syncthreads();
    const unsigned first = tile * TILE + threadIdx.x;
    I items[ITEMS];
    load_items(in, first, THREADS, p.n, items);
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        if (first + k * THREADS < p.n)
            atomicAdd(&counts[digit_of(items[k], p.shift)], 1u);
    __syncthreads();
    p.counts[(static_cast<int64_t>(list) * DIGITS + threadIdx.x) * p.tiles + tile] = counts[threadIdx.x];
}

/* The sum of the values of this lane and those before it. */
__device__ __forceinline__ unsigned sum_up_to(unsigned value, unsigned &all)
{
    unsigned sum = value;
    all = value;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const unsigned other = __shfl_xor_sync(ALL, all, step);
        sum += threadIdx.x & step ? other : 0;
        all += other;
    }
    return sum;
}

/* The sum of the values of all threads in front of this one. */
__device__ __forceinline__ unsigned sum_before(unsigned value, unsigned (&of_warps)[WARPS])
{
    unsigned all, before = sum_up_to(value, all) - value;
    if (threadIdx.x % 32 == 0)
        of_warps[threadIdx.x / 32] = all;
    __syncthreads();
#pragma unroll
    for (unsigned w = 0; w < WARPS; w++)
        before += w < threadIdx.x / 32 ? of_warps[w] : 0;
    __syncthreads();
    return before;
}

/* A warp for each digit of a list. */
__global__ void __launch_bounds__(THREADS) add_counts(const __grid_constant__ digit_pass p)
{
    const int64_t row = static_cast<int64_t>(blockIdx.x) * WARPS + threadIdx.x / 32;
    unsigned *counts = p.counts + row * p.tiles, before = 0, next;
    pc::wait_for_earlier();
    next = threadIdx.x % 32 < p.tiles ? counts[threadIdx.x % 32] : 0;
    for (unsigned i = threadIdx.x % 32; i - threadIdx.x % 32 < p.tiles; i += 32) {
        const unsigned count = next;
        next = i + 32 < p.tiles ? counts[i + 32] : 0;
        unsigned all;
        const unsigned sum = sum_up_to(count, all);
        if (i < p.tiles)
            counts[i] = before + sum - count;
        before += all;
    }
    if (threadIdx.x % 32 == 0)
        p.totals[row] = before;
}

/* Which lanes have this one's digit. */
__device__ __forceinline__ unsigned peers_of(unsigned digit)
{
    unsigned peers = ALL;
#pragma unroll
    for (unsigned bit = 1; bit < DIGITS; bit *= 2) {
        const unsigned set = __ballot_sync(ALL, (digit & bit) != 0);
        peers &= digit & bit ? set : ~set;
    }
    return peers;
}

/* Of each item how many of its warp's with the same digit are in front of it; with `counts` of digits goes what was there. */
template <class I, int ITEMS>
__device__ __forceinline__ void rank_items(const I (&items)[ITEMS], unsigned (&ranks)[ITEMS], unsigned shift,
                                           unsigned *counts)
{
    const unsigned earlier = (1u << threadIdx.x % 32) - 1;
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const unsigned digit = digit_of(items[k], shift), peers = peers_of(digit);
        ranks[k] = counts[digit] + __popc(peers & earlier);
        __syncwarp();
        if ((peers & earlier) == 0)
            counts[digit] += __popc(peers);
        __syncwarp();
    }
}

/* The counts of the thread's digit become where each warp's first item of it goes; where the first of all goes, and `here`
 * how many there are. */
__device__ __forceinline__ unsigned place_warps(unsigned (&counts)[WARPS][DIGITS], unsigned (&of_warps)[WARPS],
                                                unsigned &here)
{
    here = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
        const unsigned count = counts[w][threadIdx.x];
        counts[w][threadIdx.x] = here;
        here += count;
    }
    const unsigned start = sum_before(here, of_warps);
#pragma unroll
    for (int w = 0; w < WARPS; w++)
        counts[w][threadIdx.x] += start;
    return start;
}

/* How many items of the thread's digit there are in the list, and in tiles in front of this one. */
struct share {
    unsigned total, before;
};

__device__ __forceinline__ share share_of(const digit_pass &p, unsigned list, unsigned tile, unsigned here)
{
    if (p.tiles == 1)
        return {here, 0};
    const int64_t row = static_cast<int64_t>(list) * DIGITS + threadIdx.x;
    const unsigned *counts = p.counts + row * p.tiles;
    if (p.tiles > FEW)
        return {p.totals[row], counts[tile]};
    share s = {0, 0};
    for (unsigned i = 0; i < p.tiles; i++) {
        const unsigned count = counts[i];
        s.total += count;
        s.before += i < tile ? count : 0;
    }
    return s;
}

template <class I> struct digit_room {
    I items[TILE_OF<I>];
    unsigned counts[WARPS][DIGITS]; /* then where the warp's first item of the digit goes in `items` */
    unsigned of_warps[WARPS];
    unsigned further[DIGITS]; /* from there to its place in the list */
};

/* What the counts of the tile's warps become, and what its digits go on by. */
template <class I>
__device__ __forceinline__ void place_digits(const digit_pass &p, unsigned list, unsigned tile, digit_room<I> &room)
{
    unsigned here;
    const unsigned start = place_warps(room.counts, room.of_warps, here);
    const share s = share_of(p, list, tile, here);
    room.further[threadIdx.x] = sum_before(s.total, room.of_warps) + s.before - start;
}

/* A warp has neighbours, 32 at a time. What fills up the last tile has the last digit and comes behind all that is there. */
template <class From, class To>
__global__ void __launch_bounds__(THREADS, 3) scatter_digits(const __grid_constant__ digit_pass p, From source, To sink)
{
    typedef typename From::I I;
    constexpr unsigned TILE = TILE_OF<I>;
    constexpr int ITEMS = TILE / THREADS;
    __shared__ digit_room<I> room;
    const unsigned list = blockIdx.x / p.tiles, tile = blockIdx.x - list * p.tiles, first = tile * TILE;
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const From in = source.of(list);
    const To out = sink.of(list);
    for (int w = 0; w < WARPS; w++)
        room.counts[w][threadIdx.x] = 0;
    pc::wait_for_earlier();
    __syncthreads();
    I items[ITEMS];
    unsigned ranks[ITEMS];
    load_items(in, first + warp * ITEMS * 32 + lane, 32, p.n, items);
    rank_items(items, ranks, p.shift, room.counts[warp]);
    __syncthreads();
    place_digits<I>(p, list, tile, room);
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        room.items[room.counts[warp][digit_of(items[k], p.shift)] + ranks[k]] = items[k];
    __syncthreads();
    const unsigned there = min(TILE, p.n - first);
#pragma unroll 8
    for (int k = 0; k < ITEMS; k++) {
        const unsigned at = k * THREADS + threadIdx.x;
        if (at < there) {
            const I mine = room.items[at];
            out.put(room.further[digit_of(mine, p.shift)] + at, mine);
        }
    }
}

/* Of lists of n items, in tiles of TILE_OF of them; `digits` has room for lists * DIGITS * (tiles + 1). */
struct digit_lists {
    int64_t lists, n;
    unsigned *digits;
    int early;
    cudaStream_t queue;
};

template <class From, class To> void sort_by(const digit_lists &l, unsigned shift, const From &source, const To &sink)
{
    const int64_t tile = TILE_OF<typename From::I>, tiles = (l.n + tile - 1) / tile;
    const unsigned blocks = static_cast<unsigned>(l.lists * tiles);
    digit_pass pass = {static_cast<unsigned>(l.n), static_cast<unsigned>(tiles), shift, l.digits, NULL};
    pass.totals = l.digits + l.lists * DIGITS * tiles;
    if (tiles > 1)
        pc::start(count_digits<From>, blocks, THREADS, l.queue, l.early, pass, source);
    if (tiles > FEW)
        pc::start(add_counts, static_cast<unsigned>(l.lists) * (DIGITS / WARPS), THREADS, l.queue, l.early, pass);
    pc::start(scatter_digits<From, To>, blocks, THREADS, l.queue, l.early, pass, source, sink);
}

/* By all digits up to that at `last`, which is not the lowest one; between them items are in the two rooms in turn. */
template <class I, class From, class To>
void sort_by_all(const digit_lists &l, unsigned last, const From &source, const To &sink, void *const room[2])
{
    I *items = static_cast<I *>(room[0]), *next = static_cast<I *>(room[1]);
    sort_by(l, 0, source, to_items<I>{items, l.n});
    for (unsigned shift = 8; shift < last; shift += 8) {
        sort_by(l, shift, from_items<I>{items, l.n}, to_items<I>{next, l.n});
        I *other = items;
        items = next;
        next = other;
    }
    sort_by(l, last, from_items<I>{items, l.n}, sink);
}

} // namespace

#endif
