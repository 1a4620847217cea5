/* rows.cu: rows picked by an index along a dimension, and put in the place of others. An index that is out of range goes
 * into the stream's record; its entry is left as it is. */
#include "cuda/runtime/fault.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/load.cuh"
#include "cuda/shared/sums.cuh"
#include "cuda/index/rows.h"

namespace
{

constexpr int THREADS = 256, AT_ONCE = 4, PIECE = 512 /* units of a warp */, LONG = 64;

struct alignas(16) unit16 {
    uint64_t a, b;
};

/* A thread has AT_ONCE units of the output in a turn, a block's lying side by side: a GPU starts no more than a block in a
 * nanosecond or so, and each unit waits for its index first. I: what counts them. */
template <class T, class I>
__global__ void __launch_bounds__(THREADS) select(const __grid_constant__ pc__cuda_picking p, const T *whole, T *picked)
{
    const I row = static_cast<I>(p.row), count = static_cast<I>(p.count);
    const I total = static_cast<I>(p.outer) * count * row, step = static_cast<I>(gridDim.x) * (AT_ONCE * blockDim.x);
    pc::wait_for_earlier();
    for (I first = static_cast<I>(blockIdx.x) * (AT_ONCE * blockDim.x) + threadIdx.x; first < total; first += step) {
        const T *from[AT_ONCE];
        T unit[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const I at = min(first + u * blockDim.x, total - 1);
            const I entry = at / row, column = at - entry * row, outer = entry / count, i = entry - outer * count;
            const int64_t place = p.index[i];
            const bool there = place >= 0 && place < p.n;
            from[u] = there ? whole + (static_cast<int64_t>(outer) * p.n + place) * p.row + column : nullptr;
            if (!there && outer == 0 && column == 0)
                pc::fault(p.fault, PC__FAULT_INDEX, static_cast<long long>(i), place, p.n);
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            if (from[u])
                unit[u] = *from[u];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            if (from[u] && first + u * blockDim.x < total)
                picked[first + u * blockDim.x] = unit[u];
    }
}

/* Where units of one index for all are in `whole`, N neighbours of the output from `at` on; NULL: there is none. */
template <class T, unsigned N>
__device__ __forceinline__ void find_units(const pc__cuda_picking &p, const T *whole, unsigned at, unsigned total,
                                           const T *(&from)[N])
{
    const unsigned row = static_cast<unsigned>(p.row);
    unsigned entry = at / row, column = at - entry * row, last = entry;
    int64_t place = p.index[entry];
#pragma unroll
    for (unsigned k = 0; k < N; k++) {
        if (entry != last && at + k < total)
            place = p.index[entry], last = entry;
        const bool there = place >= 0 && place < p.n && at + k < total;
        from[k] = there ? whole + place * row + column : nullptr;
        if (!there && column == 0 && at + k < total)
            pc::fault(p.fault, PC__FAULT_INDEX, static_cast<long long>(entry), place, p.n);
        column = column + 1 == row ? 0 : column + 1;
        entry += column == 0;
    }
}

/* Of one index for all: whole packs of 16 bytes of the output, each of neighbours in a row or in some. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    select_packs(const __grid_constant__ pc__cuda_picking p, const T *whole, vector<T, 16 / sizeof(T)> *picked)
{
    constexpr unsigned N = 16 / sizeof(T);
    const unsigned total = static_cast<unsigned>(p.count * p.row), at = blockIdx.x * blockDim.x + threadIdx.x;
    const T *from[N];
    vector<T, N> pack;
    bool all = true;
    pc::wait_for_earlier();
    if (at * N >= total)
        return;
    find_units<T, N>(p, whole, at * N, total, from);
#pragma unroll
    for (unsigned k = 0; k < N; k++) {
        all &= from[k] != nullptr;
        if (from[k])
            pack.at[k] = *from[k];
    }
    if (all) {
        picked[at] = pack;
        return;
    }
#pragma unroll
    for (unsigned k = 0; k < N; k++)
        if (from[k])
            reinterpret_cast<T *>(picked)[at * N + k] = pack.at[k];
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

/* By packs, where these are of no more than a few rows, and enough for each multiprocessor to have some. */
template <class T> bool select_in_packs(const pc__cuda_picking *p, const T *whole, T *picked)
{
    if constexpr (sizeof(T) < 16) {
        constexpr int64_t PACK = 16 / sizeof(T), LEAST = 1 << 12;
        const int64_t total = p->outer * p->count * p->row, each = PACK * threads_for(total);
        if (p->outer > 1 || p->row < 2 || p->row < PACK / 2 || total < PACK * LEAST || total >= int64_t(1) << 31 ||
            reinterpret_cast<uintptr_t>(picked) % 16 != 0)
            return false;
        (void)pc::start(select_packs<T>, static_cast<unsigned>((total + each - 1) / each), threads_for(total), p->queue,
                        p->early, *p, whole, reinterpret_cast<vector<T, PACK> *>(picked));
        return true;
    }
    return false;
}

template <class T> void select_units(const pc__cuda_picking *p, const void *whole, void *picked)
{
    const int64_t total = p->outer * p->count * p->row;
    const unsigned blocks = blocks_for(p, total), threads = threads_for(total);
    const T *from = static_cast<const T *>(whole);
    T *to = static_cast<T *>(picked);
    const int64_t pieces = (p->row + PIECE - 1) / PIECE, piece = (p->row + pieces - 1) / pieces,
                  warps = p->outer * p->count * pieces, most = 1 << 30;
    if (p->row >= LONG && warps < most)
        (void)pc::start(select_pieces<T>, static_cast<unsigned>((warps + THREADS / 32 - 1) / (THREADS / 32)), THREADS,
                        p->queue, p->early, *p, static_cast<unsigned>(pieces), static_cast<int>((piece + 31) / 32 * 32),
                        from, to);
    else if (select_in_packs<T>(p, from, to))
        return;
    else if (total < (int64_t(1) << 31))
        (void)pc::start(select<T, uint32_t>, blocks, threads, p->queue, p->early, *p, from, to);
    else
        (void)pc::start(select<T, uint64_t>, blocks, threads, p->queue, p->early, *p, from, to);
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
