/* sort.cu: indices sorted by the place they name, those of one place in their order.
 *
 * A block owns a range of places. It reads the whole list twice, some of it in each warp: first it counts, for each warp and
 * place, and what names places before its own; then each entry has its position. So blocks need nothing of each other,
 * and there are no atomics whose order shows. The list is in second-level memory for all but the first one. */
#include "cuda/runtime/fault.cuh"
#include "cuda/index/sort.h"
#include "cuda/shared/dependent_launch.cuh"

namespace
{

constexpr int WARPS = 16, THREADS = WARPS * 32, PLACES = THREADS; /* places of a block at most */
constexpr int AT_ONCE = 8;                                        /* loads of a thread under way */
constexpr unsigned ALL = 0xffffffffu;

/* f(entry, place, whether there is one), in all lanes of the warp, for the warp's share of a list. */
template <class F> __device__ __forceinline__ void each_entry(const pc__cuda_lists &p, const int64_t *list, F &&f)
{
    const unsigned count = static_cast<unsigned>(p.count), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const unsigned share = (count + THREADS - 1) / THREADS * 32;
    const uint64_t from = static_cast<uint64_t>(warp) * share, to = min(from + share, static_cast<uint64_t>(count));
    for (uint64_t base = from; base < to; base += 32 * AT_ONCE) {
        int64_t place[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const uint64_t i = base + u * 32 + lane;
            place[u] = i < to ? list[i * p.inner] : 0;
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const uint64_t i = base + u * 32 + lane;
            if (base + u * 32 < to)
                f(static_cast<unsigned>(i), place[u], i < to);
        }
    }
}

/* Which lanes of the warp have this one's place; 0 where none has one of the block. */
__device__ __forceinline__ unsigned peers_of(bool mine, unsigned own)
{
    unsigned peers = __ballot_sync(ALL, mine);
    if (peers == 0)
        return 0;
#pragma unroll
    for (unsigned bit = 1; bit < PLACES; bit *= 2) {
        const unsigned set = __ballot_sync(ALL, (own & bit) != 0);
        peers &= own & bit ? set : ~set;
    }
    return mine ? peers : 0;
}

/* The sum of the values of all threads before this one. */
__device__ __forceinline__ unsigned sum_before(unsigned value, unsigned *room)
{
    room[threadIdx.x] = value;
    __syncthreads();
    for (unsigned step = 1; step < THREADS; step *= 2) {
        const unsigned other = threadIdx.x >= step ? room[threadIdx.x - step] : 0;
        __syncthreads();
        room[threadIdx.x] += other;
        __syncthreads();
    }
    return room[threadIdx.x] - value;
}

struct block_memory {
    unsigned counts[WARPS][PLACES]; /* then where the warp's next entry of the place goes */
    unsigned room[THREADS];
    unsigned before;
};

/* Entries of each warp for each place, and those of places before `first`, which all threads get. */
__device__ unsigned count_entries(const pc__cuda_lists &p, const int64_t *list, int64_t first, int64_t end,
                                  block_memory &m, bool tells)
{
    const unsigned warp = threadIdx.x / 32, earlier = (1u << threadIdx.x % 32) - 1;
    unsigned before = 0;
    for (int w = 0; w < WARPS; w++)
        m.counts[w][threadIdx.x] = 0;
    if (threadIdx.x == 0)
        m.before = 0;
    __syncthreads();
    each_entry(p, list, [&](unsigned i, int64_t place, bool there) {
        if (tells && there && (place < 0 || place >= p.n))
            pc::fault(p.fault, PC__FAULT_INDEX, (list - p.index) + static_cast<long long>(i) * p.inner, place, p.n);
        there = there && place != p.skip;
        before += there && place >= 0 && place < first;
        const bool mine = there && place >= first && place < end;
        const unsigned own = mine ? static_cast<unsigned>(place - first) : 0, peers = peers_of(mine, own);
        if (mine && (peers & earlier) == 0)
            m.counts[warp][own] += __popc(peers);
        __syncwarp();
    });
    if (before)
        atomicAdd(&m.before, before);
    __syncthreads();
    return m.before;
}

__global__ void __launch_bounds__(THREADS) sort_places(const __grid_constant__ pc__cuda_lists p, unsigned places)
{
    __shared__ block_memory m;
    pc::wait_for_earlier();
    const int64_t first = static_cast<int64_t>(blockIdx.x) * places, end = min(first + places, p.n);
    const unsigned warp = threadIdx.x / 32, earlier = (1u << threadIdx.x % 32) - 1;
    for (int64_t l = blockIdx.y; l < p.lists; l += gridDim.y) {
        const int64_t *list = p.index + l / p.inner * p.count * p.inner + l % p.inner;
        const unsigned before = count_entries(p, list, first, end, m, blockIdx.x == 0);
        unsigned total = 0;
        for (int w = 0; w < WARPS; w++) {
            const unsigned n = m.counts[w][threadIdx.x];
            m.counts[w][threadIdx.x] = total;
            total += n;
        }
        const unsigned start = before + sum_before(total, m.room);
        for (int w = 0; w < WARPS; w++)
            m.counts[w][threadIdx.x] += start;
        unsigned *starts = p.start + l * (p.n + 1), *order = p.order + l * p.count;
        if (first + threadIdx.x < end)
            starts[first + threadIdx.x] = start;
        if (end == p.n && threadIdx.x == THREADS - 1)
            starts[p.n] = start + total;
        __syncthreads();
        each_entry(p, list, [&](unsigned i, int64_t place, bool there) {
            const bool mine = there && place != p.skip && place >= first && place < end;
            const unsigned own = mine ? static_cast<unsigned>(place - first) : 0, peers = peers_of(mine, own);
            const unsigned at = mine ? m.counts[warp][own] + __popc(peers & earlier) : 0;
            __syncwarp();
            if (mine)
                order[at] = i;
            if (mine && (peers & earlier) == 0)
                m.counts[warp][own] += __popc(peers);
            __syncwarp();
        });
        __syncthreads();
    }
}

} // namespace

/* Two blocks for each multiprocessor, where that leaves them places enough. */
static int64_t places_of(const pc__cuda_lists *p)
{
    const int64_t blocks = static_cast<int64_t>(p->multiprocessors) * 2;
    const int64_t groups = blocks / p->lists > 1 ? blocks / p->lists : 1, places = (p->n + groups - 1) / groups;
    return places < 32 ? 32 : places > PLACES ? PLACES : places;
}

int64_t pc__cuda_sort_blocks(const pc__cuda_lists *p)
{
    const int64_t places = places_of(p);
    return p->n ? (p->n + places - 1) / places : 1;
}

void pc__cuda_sort_places(const pc__cuda_lists *p)
{
    const int64_t most = 65535, high = p->lists < most ? p->lists : most;
    const dim3 grid(static_cast<unsigned>(pc__cuda_sort_blocks(p)), static_cast<unsigned>(high));
    pc::start_grid(sort_places, grid, dim3(THREADS), 0, p->queue, p->early, *p, static_cast<unsigned>(places_of(p)));
}
