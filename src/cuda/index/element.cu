/* element.cu: single elements put where indices along a dimension say. An index that is out of range goes into the stream's record; its
 * entry is left as it is. */
#include "cuda/runtime/fault.cuh"
#include "cuda/index/element.h"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/dtype.cuh"

namespace
{

constexpr int THREADS = 256;

__device__ __forceinline__ int64_t thread_in_grid()
{
    return static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
}

__device__ __forceinline__ int64_t threads_of_grid()
{
    return static_cast<int64_t>(gridDim.x) * THREADS;
}

/* Quotient and rest, by 32 bits where the numbers allow: several times as fast. */
struct parted {
    int64_t whole, rest;
    __device__ __forceinline__ parted(int64_t a, int64_t b)
    {
        whole = (a | b) >> 32 ? a / b : static_cast<int64_t>(static_cast<unsigned>(a) / static_cast<unsigned>(b));
        rest = a - whole * b;
    }
};

/* Where entry `at` of the index points to in `whole`; -1: nowhere, which is in the record then. */
__device__ __forceinline__ int64_t target_of(const pc__cuda_lists &p, int64_t at)
{
    const parted of_row(at, p.inner), of_list(of_row.whole, p.count);
    const int64_t place = p.index[at];
    if (place >= 0 && place < p.n)
        return (of_list.whole * p.n + place) * p.inner + of_row.rest;
    pc::fault(p.fault, PC__FAULT_INDEX, at, place, p.n);
    return -1;
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    scatter_apart(const __grid_constant__ pc__cuda_lists p, const T *part, T *whole)
{
    pc::wait_for_earlier();
    const int64_t total = p.lists * p.count;
    for (int64_t at = thread_in_grid(); at < total; at += threads_of_grid()) {
        const int64_t target = target_of(p, at);
        if (target >= 0)
            whole[target] = part[at];
    }
}

/* The first entry of those for one place adds all of them up. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    scatter_few(const __grid_constant__ pc__cuda_lists p, const T *base, const T *part, T *whole)
{
    typedef pc::math<T> M;
    pc::wait_for_earlier();
    const int64_t total = p.lists * p.count;
    for (int64_t at = thread_in_grid(); at < total; at += threads_of_grid()) {
        const int64_t target = target_of(p, at), place = p.index[at];
        const parted of_row(at, p.inner), of_list(of_row.whole, p.count);
        const int64_t first = of_list.whole * p.count * p.inner + of_row.rest, end = first + p.count * p.inner;
        bool mine = target >= 0;
        for (int64_t other = first; mine && other < at; other += p.inner)
            mine = p.index[other] != place;
        if (!mine)
            continue;
        M sum = base ? M(base[target]) : M(0);
        for (int64_t other = at; other < end; other += p.inner)
            if (p.index[other] == place)
                sum = M(sum + M(part[other]));
        whole[target] = T(sum);
    }
}

/* `lanes` neighbours for each element of whole, 1 or 32. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    scatter(const __grid_constant__ pc__cuda_lists p, const T *base, const T *part, T *whole, unsigned lanes)
{
    typedef pc::math<T> M;
    pc::wait_for_earlier();
    const int64_t total = p.lists * p.n;
    const unsigned lane = threadIdx.x % lanes;
    for (int64_t at = thread_in_grid() / lanes; at < total; at += threads_of_grid() / lanes) {
        const parted of_row(at, p.inner), of_list(of_row.whole, p.n);
        const int64_t list = p.shared ? 0 : of_list.whole * p.inner + of_row.rest;
        const unsigned *start = p.start + list * (p.n + 1) + of_list.rest, *order = p.order + list * p.count;
        const T *from = part + of_list.whole * p.count * p.inner + of_row.rest;
        M sum = M(0);
        for (unsigned k = start[0] + lane, end = start[1]; k < end; k += lanes)
            sum = M(sum + M(from[order[k] * p.inner]));
        if (lanes > 1)
#pragma unroll
            for (int step = 16; step > 0; step /= 2)
                sum = M(sum + __shfl_xor_sync(0xffffffffu, sum, step));
        if (lane == 0)
            whole[at] = T(base ? M(M(base[at]) + sum) : sum);
    }
}

__global__ void __launch_bounds__(THREADS) one_hot(const __grid_constant__ pc__cuda_lists p, int64_t *to)
{
    pc::wait_for_earlier();
    const int64_t total = p.count * p.n;
    for (int64_t at = thread_in_grid(); at < total; at += threads_of_grid()) {
        const parted of_row(at, p.n);
        const int64_t place = p.index[of_row.whole];
        if (of_row.rest == 0 && (place < 0 || place >= p.n))
            pc::fault(p.fault, PC__FAULT_INDEX, of_row.whole, place, p.n);
        to[at] = place == of_row.rest;
    }
}

unsigned blocks_for(const pc__cuda_lists *p, int64_t threads)
{
    const int64_t most = static_cast<int64_t>(p->multiprocessors) * 64, all = (threads + THREADS - 1) / THREADS;
    return static_cast<unsigned>(all < most ? all : most);
}

template <class T> void scatter_units(const pc__cuda_lists *p, const void *part, void *whole)
{
    pc::start(scatter_apart<T>, blocks_for(p, p->lists * p->count), THREADS, p->queue, p->early, *p,
              static_cast<const T *>(part), static_cast<T *>(whole));
}

struct few {
    template <class T> static void run(const pc__cuda_lists *p, const T *base, const T *part, T *whole)
    {
        pc::start(scatter_few<T>, blocks_for(p, p->lists * p->count), THREADS, p->queue, p->early, *p, base, part,
                  whole);
    }
};

struct sorted {
    template <class T> static void run(const pc__cuda_lists *p, const T *base, const T *part, T *whole)
    {
        const unsigned lanes = p->count / p->n >= 32 ? 32 : 1;
        pc::start(scatter<T>, blocks_for(p, p->lists * p->n * lanes), THREADS, p->queue, p->early, *p, base, part,
                  whole, lanes);
    }
};

template <class Way> void by_dtype(const pc__cuda_lists *p, int dtype, const void *base, const void *part, void *whole)
{
    with_element(dtype, [&](auto element) {
        typedef decltype(element) T;
        Way::run(p, static_cast<const T *>(base), static_cast<const T *>(part), static_cast<T *>(whole));
    });
}

} // namespace

void pc__cuda_scatter_apart(const pc__cuda_lists *p, int bytes, const void *part, void *whole)
{
    switch (bytes) {
    case 8:
        return scatter_units<uint64_t>(p, part, whole);
    case 4:
        return scatter_units<uint32_t>(p, part, whole);
    case 2:
        return scatter_units<uint16_t>(p, part, whole);
    default:
        return scatter_units<uint8_t>(p, part, whole);
    }
}

void pc__cuda_scatter_few(const pc__cuda_lists *p, int dtype, const void *base, const void *part, void *whole)
{
    by_dtype<few>(p, dtype, base, part, whole);
}

void pc__cuda_scatter(const pc__cuda_lists *p, int dtype, const void *base, const void *part, void *whole)
{
    by_dtype<sorted>(p, dtype, base, part, whole);
}

void pc__cuda_one_hot(const pc__cuda_lists *p, int64_t *to)
{
    pc::start(one_hot, blocks_for(p, p->count * p->n), THREADS, p->queue, p->early, *p, to);
}
