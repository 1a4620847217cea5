/* rank_item.cuh: what sorts along a dimension move: a key (ops/sort_key.h) and its place, by which no two items are equal; and
 * where lists lie. */
#ifndef PC__CUDA_RANK_ITEM_CUH
#define PC__CUDA_RANK_ITEM_CUH

#include "cuda/index/rank.h"
#include "cuda/index/rank_key.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

constexpr uint64_t LAST = ~uint64_t(0);

/* A key of 32 bits and its place. */
struct narrow {
    uint64_t both;
    static __device__ __forceinline__ narrow of(uint64_t key, unsigned place, bool down)
    {
        return {(down ? key ^ 0xffffffffu : key) << 32 | place};
    }
    static __device__ __forceinline__ narrow last()
    {
        return {LAST};
    }
    __device__ __forceinline__ unsigned place() const
    {
        return static_cast<unsigned>(both);
    }
    __device__ __forceinline__ bool operator<(const narrow &other) const
    {
        return both < other.both;
    }
};

struct alignas(16) wide {
    uint64_t key, at;
    static __device__ __forceinline__ wide of(uint64_t key, unsigned place, bool down)
    {
        return {down ? ~key : key, place};
    }
    static __device__ __forceinline__ wide last()
    {
        return {LAST, LAST};
    }
    __device__ __forceinline__ unsigned place() const
    {
        return static_cast<unsigned>(at);
    }
    __device__ __forceinline__ bool operator<(const wide &other) const
    {
        return key < other.key || (key == other.key && at < other.at);
    }
};

template <bool> struct item_of {
    typedef narrow type;
};
template <> struct item_of<true> {
    typedef wide type;
};
template <class T> using item = typename item_of<sizeof(T) == 8>::type;

/* Where a list begins in a tensor of so many elements along the dimension. */
__device__ __forceinline__ int64_t list_at(const pc__cuda_ranking &p, int64_t list, int64_t along)
{
    const int64_t outer = quotient(list, p.inner);
    return outer * along * p.inner + (list - outer * p.inner);
}

template <class T>
__device__ __forceinline__ void put(const pc__cuda_ranking &p, const T *from, T *values, int64_t *places, int64_t list,
                                    int64_t i, unsigned place)
{
    const int64_t to = list_at(p, list, p.count) + i * p.inner;
    values[to] = from[list_at(p, list, p.n) + place * p.inner];
    places[to] = place;
}

template <class I> __device__ __forceinline__ void order(I &a, I &b, bool up)
{
    if ((b < a) == up) {
        const I other = a;
        a = b;
        b = other;
    }
}

/* A step of a bitonic sort, or with the one behind it two at once; t counts pairs, or fours. */
template <class I> __device__ __forceinline__ void step_once(I *tile, unsigned t, unsigned step, unsigned whole)
{
    const unsigned within = t & (step - 1), at = 2 * (t - within) + within;
    order(tile[at], tile[at + step], (at & whole) == 0);
}

template <class I> __device__ __forceinline__ void step_twice(I *tile, unsigned t, unsigned step, unsigned whole)
{
    const unsigned half = step / 2, within = t & (half - 1), at = 4 * (t - within) + within;
    const bool up = (at & whole) == 0;
    I a = tile[at], b = tile[at + half], c = tile[at + step], d = tile[at + step + half];
    order(a, c, up);
    order(b, d, up);
    order(a, b, up);
    order(c, d, up);
    tile[at] = a;
    tile[at + half] = b;
    tile[at + step] = c;
    tile[at + step + half] = d;
}

/* Lists of a power of two of items, side by side in `tile`: an item is `unit` items from its list's next one, which is 1 where
 * lists lie one after the other, or their number. A warp has 128 neighbours where steps are small, and waits for no other.
 * Bitonic: Batcher, "Sorting networks and their applications", 1968. */
template <class I> __device__ __forceinline__ void sort_tile(I *tile, unsigned size, unsigned unit, unsigned length)
{
    constexpr unsigned OWN = 64; /* the longest step within 128 */
    const unsigned fours = size / 4 > 32 ? size / 4 : 32;
    unsigned before = size;
    const auto meet = [&](unsigned step) {
        if (step > OWN || before > OWN)
            __syncthreads();
        else
            __syncwarp();
        before = step;
    };
    bool odd = true; /* the steps of a phase, each of which has one more */
    for (unsigned whole = 2 * unit; whole <= length * unit; whole *= 2, odd = !odd) {
        const unsigned ways = whole == length * unit ? 0 : whole; /* the last phase has one direction */
        unsigned step = whole / 2;
        if (odd) {
            meet(step);
            for (unsigned t = threadIdx.x; t < fours; t += blockDim.x) {
                const unsigned pair = t / 32 * 64 + t % 32;
                if (pair < size / 2)
                    step_once(tile, pair, step, ways);
                if (pair + 32 < size / 2)
                    step_once(tile, pair + 32, step, ways);
            }
            step /= 2;
        }
        for (; step > unit; step /= 4) {
            meet(step);
            for (unsigned t = threadIdx.x; t < size / 4; t += blockDim.x)
                step_twice(tile, t, step, ways);
        }
    }
    __syncthreads();
}

} // namespace

#endif
