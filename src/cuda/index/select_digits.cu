/* select_digits.cu: the first of long lists, in order, however many. Counts of digits of 11 bits from the highest one, of all that has
 * the digits found so far, say which key the last of them has. Chunks then know how many of theirs come in front of it, and how many
 * have it, of which those in the lowest places are taken: so each item has its place among what is sorted. */
#include "cuda/index/select_reach.cuh"

namespace
{

__global__ void __launch_bounds__(THREADS) clear_bins(unsigned *bins)
{
    pc::wait_for_earlier();
    bins[static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x] = 0;
}

/* How many of the keys within reach, which in the FIRST pass are all, have each of the pass's digits. */
template <class T, bool FIRST>
__global__ void __launch_bounds__(THREADS, RESIDENT)
    count_bins(const __grid_constant__ search s, const __grid_constant__ digit d, keys<T> source)
{
    __shared__ unsigned bins[BINS];
    const part own = part_of(s);
    const keys<T> in = source.of(own.list);
    for (unsigned b = threadIdx.x; b < BINS; b += THREADS)
        bins[b] = 0;
    pc::wait_for_earlier();
    const reach r = reach_of(s, own, d.pass, BITS);
    tally mine = {0, 0};
    __syncthreads();
    each_tile(own, [&](unsigned tile, auto whole) {
        unsigned key[AT_ONCE];
        load_tile<whole.is>(in, tile, own.end, key);
#pragma unroll
        for (unsigned k = 0; k < AT_ONCE; k++) {
            const bool there = whole.is || first_of(tile) + k * 32 < own.end;
            const unsigned digits = FIRST ? 0 : key[k] >> d.found;
            mine.below += !FIRST && there && digits < r.digits;
            if (there && (FIRST || digits == r.digits)) {
                mine.same++;
                atomicAdd(&bins[key[k] >> d.shift & ((1u << d.bits) - 1)], 1u);
            }
        }
    });
    const tally all = sum_tallies(mine);
    if (threadIdx.x == 0)
        s.tallies[blockIdx.x] = all;
    unsigned *sums = s.bins_of(own.list, d.pass);
    for (unsigned b = threadIdx.x; b < BINS; b += THREADS)
        if (bins[b])
            atomicAdd(&sums[b], bins[b]);
}

/* The tallies by whole keys, others only where the last pass found its digits. */
template <class T>
__global__ void __launch_bounds__(THREADS, RESIDENT)
    count_tallies(const __grid_constant__ search s, const __grid_constant__ digit last, keys<T> source)
{
    const part own = part_of(s);
    const keys<T> in = source.of(own.list);
    pc::wait_for_earlier();
    const reach r = reach_of(s, own, last.pass + 1, last.bits);
    if (s.tallies[blockIdx.x].same == 0)
        return;
    tally mine = {0, 0};
    each_tile(own, [&](unsigned tile, auto whole) {
        unsigned key[AT_ONCE];
        load_tile<whole.is>(in, tile, own.end, key);
#pragma unroll
        for (unsigned k = 0; k < AT_ONCE; k++) {
            const bool there = whole.is || first_of(tile) + k * 32 < own.end;
            mine.below += there && key[k] < r.digits;
            mine.same += there && key[k] == r.digits;
        }
    });
    const tally all = sum_tallies(mine);
    if (threadIdx.x == 0)
        s.tallies[blockIdx.x] = all;
}

/* What chunks in front of this one have, in all threads. */
__device__ __forceinline__ tally in_front(const search &s, const part &own)
{
    __shared__ tally front;
    tally sum = {0, 0};
    for (unsigned c = threadIdx.x; c < own.chunk; c += THREADS)
        sum += s.tallies[own.list * s.chunks + c];
    sum = sum_tallies(sum);
    if (threadIdx.x == 0)
        front = sum;
    __syncthreads();
    return front;
}

/* What a warp takes of its part of a tile: items with smaller keys than the last one's from the front, those with its key from the
 * back, either in the order of their places. */
typedef narrow taken[AT_ONCE * 32];

template <bool WHOLE>
__device__ __forceinline__ tally take_keys(const unsigned (&key)[AT_ONCE], unsigned first, unsigned end, unsigned last,
                                           taken &to)
{
    const unsigned earlier = (1u << threadIdx.x % 32) - 1;
    tally all = {0, 0};
    bool has_same = false;
#pragma unroll
    for (unsigned k = 0; k < AT_ONCE; k++) {
        const bool below = key[k] < last && (WHOLE || first + k * 32 < end);
        const unsigned belows = __ballot_sync(ALL, below);
        if (below)
            to[all.below + __popc(belows & earlier)] = {static_cast<uint64_t>(key[k]) << 32 | (first + k * 32)};
        all.below += __popc(belows);
        has_same |= key[k] == last;
    }
    if (__ballot_sync(ALL, has_same) == 0)
        return all;
#pragma unroll
    for (unsigned k = 0; k < AT_ONCE; k++) {
        const bool same = key[k] == last && (WHOLE || first + k * 32 < end);
        const unsigned sames = __ballot_sync(ALL, same), before = all.same + __popc(sames & earlier);
        if (same)
            to[AT_ONCE * 32 - 1 - before] = {static_cast<uint64_t>(key[k]) << 32 | (first + k * 32)};
        all.same += __popc(sames);
    }
    return all;
}

/* The items within reach, those with smaller keys than the last one's first, either in the order of their places. */
template <class T>
__global__ void __launch_bounds__(THREADS, RESIDENT)
    take_items(const __grid_constant__ search s, unsigned passes, keys<T> source, narrow *items)
{
    __shared__ tally warps[2][WARPS];
    __shared__ taken of_warps[WARPS];
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const part own = part_of(s);
    const keys<T> in = source.of(own.list);
    narrow *to = items + static_cast<size_t>(own.list) * s.count, *own_items = of_warps[warp];
    pc::wait_for_earlier();
    const reach r = s.reaches_of(own.list)[passes];
    tally before = in_front(s, own);
    unsigned turn = 0;
    each_tile(own, [&](unsigned tile, auto whole) {
        unsigned key[AT_ONCE];
        load_tile<whole.is>(in, tile, own.end, key);
        __syncwarp();
        const tally all = take_keys<whole.is>(key, first_of(tile), own.end, r.digits, of_warps[warp]);
        if (lane == 0)
            warps[turn][warp] = all;
        __syncthreads();
        tally start = before;
        for (unsigned w = 0; w < WARPS; w++) {
            if (w < warp)
                start += warps[turn][w];
            before += warps[turn][w];
        }
#pragma unroll 1
        for (unsigned i = lane; i < all.below; i += 32)
            to[start.below + i] = own_items[i];
#pragma unroll 1
        for (unsigned i = lane; i < all.same && start.same + i <= r.wanted; i += 32)
            to[s.count - 1 - r.wanted + start.same + i] = own_items[AT_ONCE * 32 - 1 - i];
        turn ^= 1;
    });
}

template <class T> struct selected {
    static void run(const pc__cuda_ranking *p, const void *from, void *values, int64_t *places)
    {
        typedef typename word_of<sizeof(T)>::type U;
        if constexpr (sizeof(T) <= 4) {
            constexpr unsigned KEY_BITS = 8 * sizeof(T), FIRST_BITS = KEY_BITS < BITS ? KEY_BITS : BITS;
            const auto start = [p](auto kernel, auto... parameters) {
                (void)pc::start(kernel, static_cast<unsigned>(p->lists * p->tiles), THREADS, p->queue, p->early,
                                parameters...);
            };
            const int64_t words = p->lists * PC__CUDA_SELECT_PASSES * BINS;
            reach *reaches = reinterpret_cast<reach *>(p->bins + words);
            const search s = {static_cast<unsigned>(p->n),
                              static_cast<unsigned>(p->tile),
                              static_cast<unsigned>(p->tiles),
                              static_cast<unsigned>(p->count),
                              p->bins,
                              reaches,
                              reinterpret_cast<tally *>(reaches + p->lists * (PC__CUDA_SELECT_PASSES + 1))};
            const keys<T> source = {static_cast<const T *>(from), p->n, p->descending ? ~0u >> (32 - KEY_BITS) : 0};
            const to_tensors<U> results = {
                static_cast<const U *>(from), static_cast<U *>(values), places, p->n, 1, p->count};
            const digit_lists lists = {p->lists, p->count, p->digits, p->early, p->queue};
            narrow *items = static_cast<narrow *>(p->room[1]);
            (void)pc::start(clear_bins, static_cast<unsigned>(words / THREADS), THREADS, p->queue, p->early, p->bins);
            digit d = {0, KEY_BITS - FIRST_BITS, FIRST_BITS, KEY_BITS};
            start(count_bins<T, true>, s, d, source);
            while (d.shift > 0) {
                const unsigned bits = d.shift < BITS ? d.shift : BITS;
                d = {d.pass + 1, d.shift - bits, bits, d.shift};
                start(count_bins<T, false>, s, d, source);
            }
            start(count_tallies<T>, s, d, source);
            start(take_items<T>, s, d.pass + 1, source, items);
            const from_items<narrow> found = {items, p->count};
            if constexpr (sizeof(T) == 1)
                sort_by(lists, 0, found, results);
            else
                sort_by_all<narrow>(lists, KEY_BITS - 8, found, results, p->room);
        }
    }
};

} // namespace

void pc__cuda_select_digits(const pc__cuda_ranking *p, const void *from, void *values, int64_t *places)
{
    by_key<selected>(p->dtype, p, from, values, places);
}
