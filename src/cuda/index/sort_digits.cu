/* sort_digits.cu: indices sorted by the place they name, by digits: what long lists, and those of few places, take. */
#include "cuda/index/radix.cuh"
#include "cuda/index/sort.h"
#include "cuda/runtime/fault.cuh"

namespace
{

/* What is left out, or names no place, comes behind all places. */
struct from_index {
    typedef narrow I;
    typedef int64_t raw;
    const int64_t *index, *list;
    int64_t inner, count, n, skip;
    pc__cuda_fault *fault;

    __device__ __forceinline__ from_index of(int64_t l) const
    {
        const int64_t outer = quotient(l, inner);
        return {index, index + outer * count * inner + (l - outer * inner), inner, count, n, skip, fault};
    }
    __device__ __forceinline__ int64_t load(unsigned i) const
    {
        return list[i * inner];
    }
    __device__ __forceinline__ I make(int64_t place, unsigned i) const
    {
        const bool there = place >= 0 && place < n;
        if (!there)
            pc::fault(fault, PC__FAULT_INDEX, (list - index) + static_cast<long long>(i) * inner, place, n);
        return I::of(static_cast<uint64_t>(there && place != skip ? place : n), i, false);
    }
};

struct to_order {
    unsigned *order, *places;
    int64_t count;

    __device__ __forceinline__ to_order of(int64_t list) const
    {
        return {order + list * count, places + list * count, count};
    }
    __device__ __forceinline__ void put(unsigned i, const narrow &item) const
    {
        order[i] = item.place();
        places[i] = static_cast<unsigned>(item.both >> 32);
    }
};

/* How many of the sorted places are below this one: a thread halves what is left, */
__device__ __forceinline__ unsigned count_below(const unsigned *places, unsigned count, int64_t place)
{
    unsigned low = 0, high = count;
    while (low < high) {
        const unsigned middle = (low + high) / 2;
        if (places[middle] < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* or a warp parts it by 32, which takes a fifth of the loads behind each other. */
__device__ __forceinline__ unsigned count_below_by_warp(const unsigned *places, unsigned count, int64_t place)
{
    unsigned low = 0, high = count;
    while (low < high) {
        const unsigned width = (high - low + 31) / 32, at = low + threadIdx.x % 32 * width;
        const unsigned below = __popc(__ballot_sync(ALL, at < high && places[min(at, high - 1)] < place));
        high = min(high, low + below * width);
        low = below ? low + (below - 1) * width + 1 : low;
    }
    return low;
}

/* Where each place's entries begin. */
template <bool BY_WARP>
__global__ void __launch_bounds__(THREADS) find_starts(const __grid_constant__ pc__cuda_lists p, const unsigned *sorted)
{
    constexpr unsigned LANES = BY_WARP ? 32 : 1;
    pc::wait_for_earlier();
    const int64_t starts = p.n + 1, total = p.lists * starts, step = static_cast<int64_t>(gridDim.x) * THREADS / LANES;
    for (int64_t at = (static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x) / LANES; at < total; at += step) {
        const int64_t list = quotient(at, starts), place = at - list * starts;
        const unsigned *places = sorted + list * p.count, count = static_cast<unsigned>(p.count);
        const unsigned start = BY_WARP ? count_below_by_warp(places, count, place) : count_below(places, count, place);
        if (threadIdx.x % LANES == 0)
            p.start[at] = start;
    }
}

} // namespace

void pc__cuda_sort_places_by_digits(const pc__cuda_lists *p)
{
    const digit_lists lists = {p->lists, p->count, p->digits, p->early, p->queue};
    const from_index index = {p->index, p->index, p->inner, p->count, p->n, p->skip, p->fault};
    const to_order order = {p->order, p->places, p->count};
    unsigned last = 0;
    while (p->n >> last >> 8)
        last += 8;
    if (last == 0)
        sort_by(lists, 0, index, order);
    else
        sort_by_all<narrow>(lists, last, index, order, p->room);
    enum { FEW = 16384 /* starts, for each of which there is a warp */ };
    const int64_t starts = p->lists * (p->n + 1), most = p->multiprocessors * 32;
    const int64_t blocks = ((starts <= FEW ? 32 : 1) * starts + THREADS - 1) / THREADS;
    pc::start(starts <= FEW ? find_starts<true> : find_starts<false>,
              static_cast<unsigned>(blocks < most ? blocks : most), THREADS, p->queue, p->early, *p,
              static_cast<const unsigned *>(p->places));
}
