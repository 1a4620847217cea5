/* cumsum.cu: running sums along a dimension. A warp, or a part of one, takes a chunk of a list whose elements are neighbours in
 * memory, a block where chunks are few, a thread one of a list among neighbouring lists. A list of several chunks takes three
 * kernels: the sums of the chunks, what is in front of each, and then the running sums. How a list is cut follows from the shape
 * alone, and what a lane adds up from where the list begins within 16 bytes. */
#include "cuda/index/cumsum_packs.cuh"

namespace
{

constexpr int AT_ONCE = 4, FEW = 1024; /* chunks that leave a GPU idle where they have a warp each */

/* What number `i` of a list is in memory order, from its end where sums are reversed. */
__device__ __forceinline__ int64_t place_of(const pc__cuda_line &p, int64_t list, int64_t i)
{
    const int64_t outer = list / p.inner, at = p.reversed ? p.n - 1 - i : i;
    return (outer * p.n + at) * p.inner + (list - outer * p.inner);
}

/* The same where inner is 1: the place of element 0, and the way to the next. No division stands between loads so. */
struct row {
    int64_t begin;
    int way;
};

__device__ __forceinline__ row row_of(const pc__cuda_line &p, int64_t list)
{
    return {list * p.n + (p.reversed ? p.n - 1 : 0), p.reversed ? -1 : 1};
}

/* How many of the numbers from `first` on are there, up to `most`. */
__device__ __forceinline__ int count_from(int64_t first, int64_t end, int most)
{
    return static_cast<int>(min(end - first, static_cast<int64_t>(most)));
}

/* The sum of the values of this lane and those before it; `all` gets that of all lanes. */
template <class M> __device__ __forceinline__ M sum_up_to(M value, M &all)
{
    M sum = value, total = value;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const M other = __shfl_xor_sync(0xffffffffu, total, step);
        if (threadIdx.x & step)
            sum = other + sum;
        total = threadIdx.x & step ? other + total : total + other;
    }
    all = total;
    return sum;
}

/* A block has a chunk: a thread AT_ONCE neighbours, which it adds up before its warp's and its block's are. */
template <class T, class M, bool WRITES>
__global__ void __launch_bounds__(THREADS)
    add_blocks(const __grid_constant__ pc__cuda_line p, const T *from, T *to, M *sums)
{
    constexpr int WARPS = THREADS / 32;
    __shared__ M of_warps[WARPS];
    pc::wait_for_earlier();
    const piece w = piece_of(p, blockIdx.x);
    const row r = row_of(p, w.list);
    M total = WRITES && p.chunks > 1 ? sums[w.list * p.chunks + w.chunk] : M(0);
    for (int64_t base = w.first; base < w.end; base += THREADS * AT_ONCE) {
        const int64_t first = base + threadIdx.x * AT_ONCE, at = r.begin + first * r.way;
        const int count = count_from(first, w.end, AT_ONCE);
        M x[AT_ONCE], sum = M(0), all, before = total;
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            x[u] = u < count ? M((from + at)[u * r.way]) : M(0);
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            sum = x[u] = u > 0 ? sum + x[u] : x[u];
        const M up_to = sum_up_to(sum, all);
        M in_front = __shfl_sync(0xffffffffu, up_to, (threadIdx.x + 31) % 32);
        if (threadIdx.x % 32 == 31)
            of_warps[threadIdx.x / 32] = up_to;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < WARPS; i++) {
            if (i == static_cast<int>(threadIdx.x / 32))
                before = total;
            total += of_warps[i];
        }
        __syncthreads();
        in_front = threadIdx.x % 32 > 0 ? before + in_front : before;
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            if (WRITES && u < count)
                (to + at)[u * r.way] = T(in_front + x[u]);
    }
    if (!WRITES && threadIdx.x == 0)
        sums[w.list * p.chunks + w.chunk] = total;
}

template <class T, class M, bool WRITES>
__global__ void __launch_bounds__(THREADS)
    add_threads(const __grid_constant__ pc__cuda_line p, const T *from, T *to, M *sums)
{
    pc::wait_for_earlier();
    const int64_t items = p.lists * p.chunks, step = static_cast<int64_t>(gridDim.x) * THREADS;
    for (int64_t item = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x; item < items; item += step) {
        const piece w = piece_of(p, item);
        const int64_t way = p.reversed ? -p.inner : p.inner;
        M total = WRITES && p.chunks > 1 ? sums[w.list * p.chunks + w.chunk] : M(0);
        int64_t at = place_of(p, w.list, w.first);
        for (int64_t i = w.first; i < w.end; i += AT_ONCE) {
            M x[AT_ONCE];
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++)
                x[u] = i + u < w.end ? M(from[at + u * way]) : M(0);
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++, at += way) {
                total += x[u];
                if (WRITES && i + u < w.end)
                    to[at] = T(total);
            }
        }
        if (!WRITES)
            sums[w.list * p.chunks + w.chunk] = total;
    }
}

/* The sum of each chunk becomes that of all in front of it. */
template <class M>
__global__ void __launch_bounds__(THREADS) add_chunks(const __grid_constant__ pc__cuda_line p, M *sums)
{
    pc::wait_for_earlier();
    const int64_t items = p.lists, step = static_cast<int64_t>(gridDim.x) * (THREADS / 32);
    const unsigned lane = threadIdx.x % 32;
    for (int64_t list = (static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x) / 32; list < items; list += step) {
        M *own = sums + list * p.chunks, total = M(0);
        for (int64_t base = 0; base < p.chunks; base += 32) {
            const int64_t i = base + lane;
            const M x = i < p.chunks ? own[i] : M(0);
            M all;
            const M sum = sum_up_to(x, all), before = __shfl_sync(0xffffffffu, sum, (lane + 31) % 32);
            if (i < p.chunks)
                own[i] = lane > 0 ? total + before : total;
            total += all;
        }
    }
}

unsigned blocks_for(const pc__cuda_line *p, int64_t threads)
{
    const int64_t most = static_cast<int64_t>(p->multiprocessors) * 32, all = (threads + THREADS - 1) / THREADS;
    return static_cast<unsigned>(all < most ? all : most);
}

/* As many as have all of a short list at once, wherever it begins. */
template <class T> int lanes_for(const pc__cuda_line *p)
{
    constexpr int N = pc::row_pack<T>::size;
    int lanes = p->chunks > 1 ? 32 : 1;
    while (lanes < 32 && lanes * N < p->n + N - 1)
        lanes *= 2;
    return lanes;
}

template <class T, class M, bool WRITES> void add(const pc__cuda_line *p, const T *x, T *y, M *sums)
{
    const int64_t items = p->lists * p->chunks;
    const int lanes = lanes_for<T>(p);
    if (p->inner > 1)
        pc::start(add_threads<T, M, WRITES>, blocks_for(p, items), THREADS, p->queue, p->early, *p, x, y, sums);
    else if (items <= FEW && p->n > 32 * AT_ONCE)
        pc::start(add_blocks<T, M, WRITES>, static_cast<unsigned>(items), THREADS, p->queue, p->early, *p, x, y, sums);
    else
        pc::start(p->reversed ? add_packs<T, M, WRITES, true> : add_packs<T, M, WRITES, false>,
                  blocks_for(p, items * lanes), THREADS, p->queue, p->early, *p, lanes, x, y, sums);
}

template <class T, class M> void run(const pc__cuda_line *p, const void *from, void *to)
{
    M *sums = static_cast<M *>(p->sums);
    const T *x = static_cast<const T *>(from);
    T *y = static_cast<T *>(to);
    if (p->chunks > 1) {
        add<T, M, false>(p, x, y, sums);
        pc::start(add_chunks<M>, blocks_for(p, p->lists * 32), THREADS, p->queue, p->early, *p, sums);
    }
    add<T, M, true>(p, x, y, sums);
}

} // namespace

void pc__cuda_cumsum(const pc__cuda_line *p, const void *from, void *to)
{
    switch (p->dtype) {
    case PC__CUDA_F16:
        return run<pc::f16, float>(p, from, to);
    case PC__CUDA_BF16:
        return run<pc::bf16, float>(p, from, to);
    case PC__CUDA_F32:
        return run<float, float>(p, from, to);
    case PC__CUDA_F64:
        return run<double, double>(p, from, to);
    default:
        return run<unsigned long long, unsigned long long>(p, from, to);
    }
}
