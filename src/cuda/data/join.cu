/* join.cu: picking entries along a dimension, and adding them back. An index that is out of range goes into the
 * stream's record; its entry is left as it is. */
#include "cuda/runtime/fault.cuh"
#include "cuda/data/join.h"

namespace
{

constexpr int THREADS = 256, WARPS = THREADS / 32;

struct alignas(16) unit16 {
    uint64_t a, b;
};

/* A thread for each unit of the output, in memory order. I: what counts them. */
template <class T, class I>
__global__ void __launch_bounds__(THREADS) select(const __grid_constant__ pc__cuda_picking p, const T *whole, T *picked)
{
    const I row = static_cast<I>(p.row), count = static_cast<I>(p.count);
    const I total = static_cast<I>(p.outer) * count * row, step = static_cast<I>(gridDim.x) * THREADS;
    for (I at = static_cast<I>(blockIdx.x) * THREADS + threadIdx.x; at < total; at += step) {
        const I entry = at / row, column = at - entry * row, outer = entry / count, i = entry - outer * count;
        const int64_t place = p.index[i];
        if (place >= 0 && place < p.n)
            picked[at] = whole[(static_cast<int64_t>(outer) * p.n + place) * p.row + column];
        else if (outer == 0 && column == 0)
            pc::fault(p.fault, PC__FAULT_INDEX, static_cast<long long>(i), place, p.n);
    }
}

template <class T> void select_units(const pc__cuda_picking *p, const void *whole, void *picked)
{
    const int64_t total = p->outer * p->count * p->row, most = static_cast<int64_t>(p->multiprocessors) * 64;
    const int64_t all = (total + THREADS - 1) / THREADS;
    const unsigned blocks = static_cast<unsigned>(all < most ? all : most);
    const T *from = static_cast<const T *>(whole);
    T *to = static_cast<T *>(picked);
    if (total < (int64_t(1) << 31))
        select<T, uint32_t><<<blocks, THREADS, 0, p->queue>>>(*p, from, to);
    else
        select<T, uint64_t><<<blocks, THREADS, 0, p->queue>>>(*p, from, to);
}

/* Entries whose place is the block's, in order. */
struct matches {
    int64_t place[THREADS], entry[THREADS];
    int warps[WARPS];
};

/* Of THREADS entries from `base`, those with places in [first, end) go into the list; how many they are. */
__device__ int find(const pc__cuda_picking &p, matches &list, int64_t base, int64_t first, int64_t end)
{
    const int64_t i = base + threadIdx.x, place = i < p.count ? p.index[i] : -1;
    const bool mine = place >= first && place < end;
    const unsigned both = __ballot_sync(0xffffffffu, mine), before = (1u << threadIdx.x % 32) - 1;
    if (threadIdx.x % 32 == 0)
        list.warps[threadIdx.x / 32] = __popc(both);
    if (blockIdx.x == 0 && blockIdx.y == 0 && i < p.count && (place < 0 || place >= p.n))
        pc::fault(p.fault, PC__FAULT_INDEX, i, place, p.n);
    __syncthreads();
    int at = __popc(both & before), total = 0;
    for (int w = 0; w < WARPS; w++) {
        at += w < threadIdx.x / 32 ? list.warps[w] : 0;
        total += list.warps[w];
    }
    if (mine) {
        list.place[at] = place;
        list.entry[at] = i;
    }
    __syncthreads();
    return total;
}

/* Every element of `whole` belongs to one thread, which adds what comes to it in the index's order: no atomics, the
 * same bits every time. Blocks own ranges of places (x) and of columns (y), a column being one of the outer * row
 * elements of a place; `lanes` threads take neighbouring columns, THREADS / lanes such teams share the places. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    add_rows(const __grid_constant__ pc__cuda_picking p, T *whole, const T *picked, int64_t places, int lanes)
{
    __shared__ matches list;
    const int lane = threadIdx.x % lanes, team = threadIdx.x / lanes, teams = THREADS / lanes;
    const int64_t first = blockIdx.x * places, end = min(first + places, p.n), columns = p.outer * p.row;
    for (int64_t base = 0; base < p.count; base += THREADS) {
        const int n = find(p, list, base, first, end);
        for (int64_t c = static_cast<int64_t>(blockIdx.y) * lanes + lane; c < columns;
             c += static_cast<int64_t>(gridDim.y) * lanes) {
            const int64_t outer = c / p.row, column = c - outer * p.row;
            T *to = whole + outer * p.n * p.row + column;
            const T *from = picked + outer * p.count * p.row + column;
            for (int m = 0; m < n; m++)
                if ((list.place[m] & (teams - 1)) == team)
                    to[list.place[m] * p.row] += from[list.entry[m] * p.row];
        }
        __syncthreads();
    }
}

template <class T> void add(const pc__cuda_picking *p, void *whole, const void *picked)
{
    const int64_t columns = p->outer * p->row, blocks = static_cast<int64_t>(p->multiprocessors) * 4;
    int lanes = 1;
    while (lanes < THREADS && lanes < columns)
        lanes *= 2;
    int64_t high = (columns + lanes - 1) / lanes;
    high = high < 1 ? 1 : high > blocks ? blocks : high;
    const int64_t wide = blocks / high, places = (p->n + wide - 1) / wide > 0 ? (p->n + wide - 1) / wide : 1;
    const int64_t groups = p->n > 0 ? (p->n + places - 1) / places : 1;
    add_rows<<<dim3(static_cast<unsigned>(groups), static_cast<unsigned>(high)), THREADS, 0, p->queue>>>(
        *p, static_cast<T *>(whole), static_cast<const T *>(picked), places, lanes);
}

} // namespace

void pc__cuda_select(const pc__cuda_picking *p, int unit, const void *whole, void *picked)
{
    switch (unit) {
    case 16:
        return select_units<unit16>(p, whole, picked);
    case 8:
        return select_units<uint64_t>(p, whole, picked);
    case 4:
        return select_units<uint32_t>(p, whole, picked);
    case 2:
        return select_units<uint16_t>(p, whole, picked);
    default:
        return select_units<uint8_t>(p, whole, picked);
    }
}

void pc__cuda_add_rows(const pc__cuda_picking *p, int dtype, void *whole, const void *picked)
{
    if (dtype == PC__CUDA_F32)
        add<float>(p, whole, picked);
    else
        add<double>(p, whole, picked);
}
