/* short_lists.cu: lists of few entries for few places, the places of a list side by side in memory. A thread adds up a list, in
 * shared memory, in the order of its entries; what a block reads and writes lies together. An index that is out of range goes into the
 * stream's record; its entry is left out. */
#include "cuda/index/element.h"
#include "cuda/runtime/fault.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/dtype.cuh"

namespace
{

constexpr unsigned THREADS = 128, BYTES = 48 << 10; /* of a block */
constexpr unsigned LEAST = 4;                       /* lists of a block, at most one for each thread */
constexpr int8_t NONE = -1;

/* Elements from list to list in shared memory: odd, for its banks. */
__host__ __device__ __forceinline__ unsigned pitch_of(int64_t count)
{
    return static_cast<unsigned>(count) | 1;
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    scatter_short(const __grid_constant__ pc__cuda_lists p, const T *base, const T *part, T *whole, unsigned of_block)
{
    typedef pc::math<T> M;
    extern __shared__ __align__(16) char shared[];
    const unsigned n = static_cast<unsigned>(p.n), count = static_cast<unsigned>(p.count);
    const unsigned across = pitch_of(n), along = pitch_of(count);
    M *const sums = reinterpret_cast<M *>(shared);
    T *const parts = reinterpret_cast<T *>(sums + of_block * across);
    int8_t *const places = reinterpret_cast<int8_t *>(parts + of_block * along);
    const int64_t first = static_cast<int64_t>(blockIdx.x) * of_block;
    const unsigned lists = static_cast<unsigned>(min(p.lists - first, static_cast<int64_t>(of_block)));
    pc::wait_for_earlier();
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < lists * count; i += THREADS) {
        const int64_t at = first * count + i, place = p.index[at];
        const unsigned list = i / count, to = list * along + i - list * count;
        const bool there = place >= 0 && place < n;
        if (!there)
            pc::fault(p.fault, PC__FAULT_INDEX, at, place, n);
        places[to] = there ? static_cast<int8_t>(place) : NONE;
        parts[to] = part[at];
    }
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < lists * n; i += THREADS) {
        const unsigned list = i / n;
        sums[list * across + i - list * n] = base ? M(base[first * n + i]) : M(0);
    }
    __syncthreads();
    for (unsigned k = 0; threadIdx.x < lists && k < count; k++) {
        const int8_t place = places[threadIdx.x * along + k];
        M *const sum = &sums[threadIdx.x * across + place];
        if (place != NONE)
            *sum = M(*sum + M(parts[threadIdx.x * along + k]));
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < lists * n; i += THREADS) {
        const unsigned list = i / n;
        whole[first * n + i] = T(sums[list * across + i - list * n]);
    }
}

/* Few of them go to all multiprocessors. */
unsigned lists_of_block(const pc__cuda_lists *p)
{
    const int64_t each = p->lists / (2 * p->multiprocessors);
    return each < LEAST ? LEAST : each < THREADS ? static_cast<unsigned>(each) : THREADS;
}

template <class T> bool start(const pc__cuda_lists *p, const void *base, const void *part, void *whole)
{
    const unsigned lists = lists_of_block(p);
    const size_t each = pitch_of(p->n) * sizeof(pc::math<T>) + pitch_of(p->count) * (sizeof(T) + 1);
    const int64_t blocks = (p->lists + lists - 1) / lists;
    if (p->n > INT8_MAX || each > BYTES / THREADS || blocks > INT32_MAX)
        return false;
    pc::start_grid(scatter_short<T>, dim3(static_cast<unsigned>(blocks)), dim3(THREADS), lists * each, p->queue,
                   p->early, *p, static_cast<const T *>(base), static_cast<const T *>(part), static_cast<T *>(whole),
                   lists);
    return true;
}

} // namespace

bool pc__cuda_scatter_short(const pc__cuda_lists *p, int dtype, const void *base, const void *part, void *whole)
{
    if (p->inner != 1 || p->count > BYTES || p->count == 0)
        return false;
    return with_element(dtype, [&](auto element) { return start<decltype(element)>(p, base, part, whole); });
}
