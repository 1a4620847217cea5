/* packs.cu: short rows picked by one index for all, in packs of 16 bytes of the output, each of neighbours in a row or in some: the
 * index is looked up for each row, not for each unit. */
#include "cuda/index/rows.h"
#include "cuda/runtime/fault.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/load.cuh"

namespace
{

constexpr int THREADS = 256;

/* Where units are in `whole`, N neighbours of the output from `at` on; NULL: there is none. */
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

/* An index that is out of range leaves what is its row's as it is. */
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

template <class T> void launch(const pc__cuda_picking *p, const void *whole, void *picked)
{
    constexpr int64_t PACK = 16 / sizeof(T),
                      FULL = 1056 * THREADS /* units, below which blocks are smaller, and more */;
    const int64_t total = p->count * p->row, packs = (total + PACK - 1) / PACK;
    const unsigned threads = total < FULL ? THREADS / 4 : THREADS;
    (void)pc::start(select_packs<T>, static_cast<unsigned>((packs + threads - 1) / threads), threads, p->queue,
                    p->early, *p, static_cast<const T *>(whole), static_cast<vector<T, PACK> *>(picked));
}

} // namespace

bool pc__cuda_select_packs(const pc__cuda_picking *p, int unit, const void *whole, void *picked)
{
    enum { LEAST = 1 << 12 /* packs, for each multiprocessor to have some */ };
    const int64_t pack = 16 / unit, total = p->count * p->row;
    if (unit == 16 || p->outer > 1 || p->row < 2 || p->row < pack / 2 || p->row >= PC__CUDA_LONG_PICK ||
        total < pack * LEAST || total >= int64_t(1) << 31 || reinterpret_cast<uintptr_t>(picked) % 16 != 0)
        return false;
    switch (unit) {
    case 8:
        launch<uint64_t>(p, whole, picked);
        break;
    case 4:
        launch<uint32_t>(p, whole, picked);
        break;
    case 2:
        launch<uint16_t>(p, whole, picked);
        break;
    default:
        launch<uint8_t>(p, whole, picked);
    }
    return true;
}
