/* rows.cu: rows picked by an index along a dimension, and put in the place of others. An index that is out of range goes
 * into the stream's record; its entry is left as it is. */
#include "cuda/runtime/fault.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/sums.cuh"
#include "cuda/index/rows.h"

namespace
{

constexpr int THREADS = 256, AT_ONCE = 4, PIECE = 512 /* units of a warp */;

struct alignas(16) unit16 {
    uint64_t a, b;
};

/* A thread has EACH units of the output in a turn, a block's lying side by side: a GPU starts no more than a block in a
 * nanosecond or so, and each unit waits for its index first. I: what counts them. */
template <class T, class I, int EACH>
__global__ void __launch_bounds__(THREADS) select(const __grid_constant__ pc__cuda_picking p, const T *whole, T *picked)
{
    const I row = static_cast<I>(p.row), count = static_cast<I>(p.count);
    const I total = static_cast<I>(p.outer) * count * row, step = static_cast<I>(gridDim.x) * (EACH * blockDim.x);
    pc::wait_for_earlier();
    for (I first = static_cast<I>(blockIdx.x) * (EACH * blockDim.x) + threadIdx.x; first < total; first += step) {
        const T *from[EACH];
        T unit[EACH];
#pragma unroll
        for (int u = 0; u < EACH; u++) {
            const I at = min(first + u * blockDim.x, total - 1);
            const I entry = at / row, column = at - entry * row, outer = entry / count, i = entry - outer * count;
            const int64_t place = p.index[i];
            const bool there = place >= 0 && place < p.n;
            from[u] = there ? whole + (static_cast<int64_t>(outer) * p.n + place) * p.row + column : nullptr;
            if (!there && outer == 0 && column == 0)
                pc::fault(p.fault, PC__FAULT_INDEX, static_cast<long long>(i), place, p.n);
        }
#pragma unroll
        for (int u = 0; u < EACH; u++)
            if (from[u])
                unit[u] = *from[u];
#pragma unroll
        for (int u = 0; u < EACH; u++)
            if (from[u] && first + u * blockDim.x < total)
                picked[first + u * blockDim.x] = unit[u];
    }
}

/* Rows of many units: a warp has a piece of one, whose index it reads once. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    select_pieces(const __grid_constant__ pc__cuda_picking p, unsigned pieces, int piece, const T *whole, T *picked)
{
    constexpr int TURN = 8;
    const int64_t id = static_cast<int64_t>(blockIdx.x) * (THREADS / 32) + threadIdx.x / 32,
                  entry = quotient(id, pieces);
    const int64_t outer = quotient(entry, p.count), i = entry - outer * p.count, first = (id - entry * pieces) * piece;
    pc::wait_for_earlier();
    if (outer >= p.outer)
        return;
    const int64_t place = p.index[i];
    if (place < 0 || place >= p.n) {
        if (outer == 0 && first == 0 && threadIdx.x % 32 == 0)
            pc::fault(p.fault, PC__FAULT_INDEX, static_cast<long long>(i), place, p.n);
        return;
    }
    const T *from = whole + (outer * p.n + place) * p.row + first;
    T *to = picked + entry * p.row + first;
    const int count = static_cast<int>(min(p.row - first, static_cast<int64_t>(piece)));
    for (int k = threadIdx.x % 32; k < count; k += TURN * 32) {
        T unit[TURN];
#pragma unroll
        for (int u = 0; u < TURN; u++)
            if (k + u * 32 < count)
                unit[u] = from[k + u * 32];
#pragma unroll
        for (int u = 0; u < TURN; u++)
            if (k + u * 32 < count)
                to[k + u * 32] = unit[u];
    }
}

/* The same for each unit of `whole`. */
template <class T, class I>
__global__ void __launch_bounds__(THREADS)
    put(const __grid_constant__ pc__cuda_picking p, const T *base, const T *picked, T *whole)
{
    const I row = static_cast<I>(p.row), n = static_cast<I>(p.n);
    const I total = static_cast<I>(p.outer) * n * row, step = static_cast<I>(gridDim.x) * (AT_ONCE * blockDim.x);
    pc::wait_for_earlier();
    for (I first = static_cast<I>(blockIdx.x) * (AT_ONCE * blockDim.x) + threadIdx.x; first < total; first += step) {
        T unit[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const I at = min(first + u * blockDim.x, total - 1);
            const I r = at / row, column = at - r * row, outer = r / n, place = r - outer * n;
            const unsigned from = p.start[place], to = p.start[place + 1];
            const T *entry = from == to
                                 ? base + at
                                 : picked + (static_cast<int64_t>(outer) * p.count + p.order[to - 1]) * p.row + column;
            unit[u] = *entry;
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            if (first + u * blockDim.x < total)
                whole[first + u * blockDim.x] = unit[u];
    }
}

/* Smaller blocks of few units, for each multiprocessor of a large GPU to have some. */
unsigned threads_for(int64_t total)
{
    enum { FULL = 264 * AT_ONCE * THREADS };
    return total < FULL ? THREADS / 4 : THREADS;
}

unsigned blocks_for(const pc__cuda_picking *p, int64_t total)
{
    const int64_t most = static_cast<int64_t>(p->multiprocessors) * 64, each = AT_ONCE * threads_for(total);
    const int64_t all = (total + each - 1) / each;
    return static_cast<unsigned>(all < most ? all : most);
}

template <class T> void select_units(const pc__cuda_picking *p, const void *whole, void *picked)
{
    const int64_t total = p->outer * p->count * p->row;
    const unsigned blocks = blocks_for(p, total), threads = threads_for(total);
    const unsigned few = static_cast<unsigned>((total + THREADS / 4 - 1) / (THREADS / 4)); /* with a unit a thread */
    const T *from = static_cast<const T *>(whole);
    T *to = static_cast<T *>(picked);
    const int64_t pieces = (p->row + PIECE - 1) / PIECE, piece = (p->row + pieces - 1) / pieces,
                  warps = p->outer * p->count * pieces, most = 1 << 30;
    if (p->row >= PC__CUDA_LONG_PICK && warps < most)
        (void)pc::start(select_pieces<T>, static_cast<unsigned>((warps + THREADS / 32 - 1) / (THREADS / 32)), THREADS,
                        p->queue, p->early, *p, static_cast<unsigned>(pieces), static_cast<int>((piece + 31) / 32 * 32),
                        from, to);
    else if (total <= static_cast<int64_t>(p->multiprocessors) * THREADS) /* all at once: the shortest way counts */
        (void)pc::start(select<T, uint32_t, 1>, few, THREADS / 4, p->queue, p->early, *p, from, to);
    else if (total < (int64_t(1) << 31))
        (void)pc::start(select<T, uint32_t, AT_ONCE>, blocks, threads, p->queue, p->early, *p, from, to);
    else
        (void)pc::start(select<T, uint64_t, AT_ONCE>, blocks, threads, p->queue, p->early, *p, from, to);
}

template <class T> void put_units(const pc__cuda_picking *p, const void *base, const void *picked, void *whole)
{
    const int64_t total = p->outer * p->n * p->row;
    const unsigned blocks = blocks_for(p, total), threads = threads_for(total);
    const T *before = static_cast<const T *>(base), *from = static_cast<const T *>(picked);
    T *to = static_cast<T *>(whole);
    if (total < (int64_t(1) << 31))
        (void)pc::start(put<T, uint32_t>, blocks, threads, p->queue, p->early, *p, before, from, to);
    else
        (void)pc::start(put<T, uint64_t>, blocks, threads, p->queue, p->early, *p, before, from, to);
}

} // namespace

void pc__cuda_select(const pc__cuda_picking *p, int unit, const void *whole, void *picked)
{
    if (pc__cuda_select_packs(p, unit, whole, picked))
        return;
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

void pc__cuda_put_rows(const pc__cuda_picking *p, int unit, const void *base, const void *picked, void *whole)
{
    switch (unit) {
    case 16:
        return put_units<unit16>(p, base, picked, whole);
    case 8:
        return put_units<uint64_t>(p, base, picked, whole);
    case 4:
        return put_units<uint32_t>(p, base, picked, whole);
    case 2:
        return put_units<uint16_t>(p, base, picked, whole);
    default:
        return put_units<uint8_t>(p, base, picked, whole);
    }
}
