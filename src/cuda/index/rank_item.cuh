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

/* Lists of a power of two of items, side by side in `tile`: an item is `unit` items from its list's next one, which is 1 where
 * lists lie one after the other, or their number. A warp has 64 neighbours where steps are small, and waits for no other.
 * Bitonic: Batcher, "Sorting networks and their applications", 1968. */
template <class I> __device__ __forceinline__ void sort_tile(I *tile, unsigned size, unsigned unit, unsigned length)
{
    unsigned before = size;
    for (unsigned whole = 2 * unit; whole <= length * unit; whole *= 2)
        for (unsigned step = whole / 2; step >= unit; step /= 2) {
            if (step > 32 || before > 32)
                __syncthreads();
            else
                __syncwarp();
            before = step;
            for (unsigned t = threadIdx.x; t < size / 2; t += blockDim.x) {
                const unsigned within = t & (step - 1), a = 2 * (t - within) + within, b = a + step;
                const bool up = whole == length * unit || (a & whole) == 0;
                const I low = tile[a], high = tile[b];
                if ((high < low) == up) {
                    tile[a] = high;
                    tile[b] = low;
                }
            }
        }
    __syncthreads();
}

} // namespace

#endif
