/* sort_digits.cu: indices sorted by the place they name, by digits: what long lists, and those of few places, take. */
#include "cuda/index/radix.cuh"
#include "cuda/index/sort.h"
#include "cuda/runtime/fault.cuh"

namespace
{

/* What is left out, or names no place, comes behind all places. */
struct from_index {
    typedef narrow I;
    const int64_t *index, *list;
    int64_t inner, count, n, skip;
    pc__cuda_fault *fault;

    __device__ __forceinline__ from_index of(int64_t l) const
    {
        const int64_t outer = quotient(l, inner);
        return {index, index + outer * count * inner + (l - outer * inner), inner, count, n, skip, fault};
    }
    __device__ __forceinline__ I operator()(unsigned i) const
    {
        const int64_t place = list[i * inner];
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

/* Where each place's entries begin. */
__global__ void __launch_bounds__(THREADS) find_starts(const __grid_constant__ pc__cuda_lists p, const unsigned *sorted)
{
    pc::wait_for_earlier();
    const int64_t starts = p.n + 1, total = p.lists * starts, step = static_cast<int64_t>(gridDim.x) * THREADS;
    for (int64_t at = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x; at < total; at += step) {
        const int64_t list = quotient(at, starts), place = at - list * starts;
        const unsigned *places = sorted + list * p.count;
        unsigned low = 0, high = static_cast<unsigned>(p.count);
        while (low < high) {
            const unsigned middle = (low + high) / 2;
            if (places[middle] < place)
                low = middle + 1;
            else
                high = middle;
        }
        p.start[at] = low;
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
    const int64_t blocks = (p->lists * (p->n + 1) + THREADS - 1) / THREADS, most = p->multiprocessors * 32;
    pc::start(find_starts, static_cast<unsigned>(blocks < most ? blocks : most), THREADS, p->queue, p->early, *p,
              static_cast<const unsigned *>(p->places));
}
