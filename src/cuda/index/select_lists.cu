/* select_lists.cu: the first few of lists, in order. Of a list that fits into a block's memory digits from the highest one say how
 * far they reach, until what is left is little enough to be sorted. Longer lists are cut into tiles, and what is first in these
 * is a list again. */
#include "cuda/index/radix_tensor.cuh"

namespace
{

constexpr unsigned LEFT = PC__CUDA_SELECT_LEFT; /* items that are sorted */

struct select_room {
    narrow items[LEFT];
    unsigned counts[WARPS][DIGITS], of_warps[WARPS];
    unsigned digit, before, here, found;
};

/* Of the items that are in reach, which are those up to `reach` in the digits counted so far, how many have each digit. */
template <int ITEMS>
__device__ __forceinline__ void count_digits(const narrow (&items)[ITEMS], uint64_t reach, unsigned shift,
                                             select_room &room)
{
    const unsigned warp = threadIdx.x / 32, earlier = (1u << threadIdx.x % 32) - 1;
#pragma unroll
    for (int w = 0; w < WARPS; w++)
        room.counts[w][threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const uint64_t both = items[k].both;
        const bool mine = both != LAST && both >> shift >> 8 == reach >> shift >> 8;
        const unsigned all = __ballot_sync(ALL, mine), digit = static_cast<unsigned>(both >> shift) & (DIGITS - 1);
        if (all == 0)
            continue;
        const unsigned peers = peers_of(digit) & all;
        if (mine && (peers & earlier) == 0)
            room.counts[warp][digit] += __popc(peers);
        __syncwarp();
    }
    __syncthreads();
}

/* The digit that the item number `wanted` of those has, from 0; what lies before it, and how many have it. */
__device__ __forceinline__ void find_digit(unsigned wanted, select_room &room)
{
    unsigned here = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++)
        here += room.counts[w][threadIdx.x];
    const unsigned before = sum_before(here, room.of_warps);
    if (wanted >= before && wanted < before + here)
        room.digit = threadIdx.x, room.before = before, room.here = here;
    __syncthreads();
}

/* Tiles of a list are as long as each other but for one element; a sink is asked for those of all lists. */
template <int ITEMS, class From, class To>
__global__ void __launch_bounds__(THREADS)
    select_lists(unsigned length, unsigned tiles, unsigned count, unsigned highest, From source, To sink)
{
    __shared__ select_room room;
    const unsigned list = blockIdx.x / tiles, tile = blockIdx.x - list * tiles;
    const unsigned begin = static_cast<unsigned>(static_cast<uint64_t>(length) * tile / tiles),
                   n = static_cast<unsigned>(static_cast<uint64_t>(length) * (tile + 1) / tiles) - begin;
    const From in = source.of(list);
    const To out = sink.of(blockIdx.x);
    narrow items[ITEMS];
    pc::wait_for_earlier();
    load_items(in, begin + threadIdx.x, THREADS, begin + n, items);
    uint64_t reach = in.make(in.load(begin), begin).both >> highest >>
                     8 << highest << 8; /* what is above the digits is the same for all */
    unsigned before = 0, shift = highest;
    for (;; shift -= 8) { /* no two items are equal: in the lowest digit of all the last one is alone */
        count_digits(items, reach, shift, room);
        find_digit(count - 1 - before, room);
        reach |= static_cast<uint64_t>(room.digit) << shift;
        if (before + room.before + room.here <= LEFT)
            break;
        before += room.before;
    }
    if (threadIdx.x == 0)
        room.found = 0;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        if (items[k].both != LAST && items[k].both >> shift <= reach >> shift)
            room.items[atomicAdd(&room.found, 1u)] = items[k];
    __syncthreads();
    unsigned size = 32;
    while (size < room.found)
        size *= 2;
    for (unsigned i = room.found + threadIdx.x; i < size; i += THREADS)
        room.items[i] = narrow::last();
    __syncthreads();
    sort_tile(room.items, size, 1, size);
    for (unsigned i = threadIdx.x; i < count; i += THREADS)
        out.put(i, room.items[i]);
}

constexpr int FEW_ITEMS = PC__CUDA_TILE / THREADS, MANY_ITEMS = PC__CUDA_RADIX_TILE / THREADS; /* of a thread */

/* Of lists of n items from the source the first ones, of each of the tiles. */
template <int ITEMS, class From, class To>
void select_from(const pc__cuda_ranking *p, int64_t n, int64_t tiles, unsigned highest, From source, To sink)
{
    pc::start(select_lists<ITEMS, From, To>, static_cast<unsigned>(p->lists * tiles), THREADS, p->queue, p->early,
              static_cast<unsigned>(n), static_cast<unsigned>(tiles), static_cast<unsigned>(p->count), highest, source,
              sink);
}

template <class T> struct selected {
    static void run(const pc__cuda_ranking *p, const void *from, void *values, int64_t *places)
    {
        typedef typename word_of<sizeof(T)>::type U;
        if constexpr (sizeof(T) <= 4) {
            constexpr unsigned HIGHEST = 32 + 8 * (sizeof(T) - 1), TILE = PC__CUDA_RADIX_TILE;
            const from_tensor<T> tensor = {static_cast<const T *>(from), p->n, p->inner, p->descending != 0};
            const to_tensors<U> results = {
                static_cast<const U *>(from), static_cast<U *>(values), places, p->n, p->inner, p->count};
            narrow *items = static_cast<narrow *>(p->room[0]), *next = static_cast<narrow *>(p->room[1]);
            if (p->n <= PC__CUDA_TILE)
                return select_from<FEW_ITEMS>(p, p->n, 1, HIGHEST, tensor, results);
            if (p->tiles == 1)
                return select_from<MANY_ITEMS>(p, p->n, 1, HIGHEST, tensor, results);
            select_from<MANY_ITEMS>(p, p->n, p->tiles, HIGHEST, tensor, to_items<narrow>{items, p->count});
            int64_t n = p->tiles * p->count, tiles;
            for (; (tiles = (n + TILE - 1) / TILE) > 1; n = tiles * p->count) {
                select_from<MANY_ITEMS>(p, n, tiles, HIGHEST, from_items<narrow>{items, n},
                                        to_items<narrow>{next, p->count});
                narrow *other = items;
                items = next;
                next = other;
            }
            select_from<MANY_ITEMS>(p, n, 1, HIGHEST, from_items<narrow>{items, n}, results);
        }
    }
};

} // namespace

void pc__cuda_select_lists(const pc__cuda_ranking *p, const void *from, void *values, int64_t *places)
{
    by_key<selected>(p->dtype, p, from, values, places);
}
