/* few_rows.cu: rows added up by the place that each belongs to, where they are few: each block looks through all of the index
 * for what its part of the result gets, which costs less than to sort it. Most blocks get nothing, and only write. */
#include "cuda/index/rows.h"
#include "cuda/index/sum_of.cuh"
#include "cuda/runtime/fault.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

constexpr int THREADS = 256, WARPS = THREADS / 32, BLOCKS = 3 /* on a multiprocessor at once */, TURN = 4;
constexpr unsigned AHEAD = 8; /* entries that are on their way at once */
static_assert(PC__CUDA_FEW_ROWS <= THREADS, "an entry a thread");

/* Entries that a block needs, by their places, counted from the block's lowest; those of one place in ascending order. */
struct entries {
    unsigned place[PC__CUDA_FEW_ROWS], number[PC__CUDA_FEW_ROWS];
    unsigned found[PC__CUDA_FEW_ROWS], warp[WARPS]; /* places in the order of the index */
};

/* Of the places of the first `count` those that go in front of number `mine`. */
__device__ __forceinline__ unsigned rank_of(const unsigned *place, unsigned count, unsigned mine)
{
    const unsigned own = place[mine];
    unsigned rank = 0;
    for (unsigned i = 0; i < count; i++)
        rank += place[i] < own || (place[i] == own && i < mine);
    return rank;
}

/* Those for places from `low` to `high`. Returns their number. */
__device__ __forceinline__ unsigned take_entries(const pc__cuda_picking &p, int64_t skip, int64_t low, int64_t high,
                                                 entries &of)
{
    const bool there = threadIdx.x < p.count;
    const int64_t place = there ? p.index[threadIdx.x] : -1;
    if (blockIdx.x == 0 && there && (place < 0 || place >= p.n))
        pc::fault(p.fault, PC__FAULT_INDEX, static_cast<long long>(threadIdx.x), place, p.n);
    const bool mine = there && place != skip && place >= low && place <= high;
    const unsigned all = __ballot_sync(0xffffffffu, mine), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (lane == 0)
        of.warp[warp] = __popc(all);
    __syncthreads();
    unsigned before = __popc(all & ((1u << lane) - 1)), count = 0;
#pragma unroll
    for (unsigned w = 0; w < WARPS; w++) {
        before += w < warp ? of.warp[w] : 0;
        count += of.warp[w];
    }
    if (count == 0)
        return 0;
    if (mine)
        of.found[before] = static_cast<unsigned>(place - low);
    __syncthreads();
    if (mine) {
        const unsigned rank = rank_of(of.found, count, before);
        of.place[rank] = of.found[before], of.number[rank] = threadIdx.x;
    }
    __syncthreads();
    return count;
}

/* The first entry of a place, or of those behind it. */
__device__ __forceinline__ unsigned first_of(const entries &of, unsigned count, unsigned place)
{
    unsigned low = 0, high = count;
    while (low < high) {
        const unsigned middle = (low + high) / 2;
        const bool is_below = of.place[middle] < place;
        low = is_below ? middle + 1 : low;
        high = is_below ? high : middle;
    }
    return low;
}

/* sum += the entries of a place, in its column: entry i is `row` times number i behind `from`. */
template <class T, int N>
__device__ __forceinline__ void add_entries(const entries &of, unsigned count, unsigned place, const vector<T, N> *from,
                                            int64_t row, sum_of<T, N> &sum)
{
    for (unsigned i = first_of(of, count, place); i < count && of.place[i] == place; i += AHEAD) {
        bool mine[AHEAD];
        vector<T, N> part[AHEAD];
#pragma unroll
        for (unsigned k = 0; k < AHEAD; k++) {
            mine[k] = i + k < count && of.place[i + k] == place;
            if (mine[k])
                part[k] = from[of.number[i + k] * row];
        }
#pragma unroll
        for (unsigned k = 0; k < AHEAD; k++)
            if (mine[k])
                sum += part[k];
    }
}

/* What no entry is for: `base`, or zeros. */
template <class V> __device__ __forceinline__ void keep_units(const V *base, V *whole, unsigned units)
{
    for (unsigned at = threadIdx.x; at < units; at += TURN * THREADS) {
        V unit[TURN] = {};
        if (base) {
#pragma unroll
            for (unsigned u = 0; u < TURN; u++)
                if (at + u * THREADS < units)
                    unit[u] = base[at + u * THREADS];
        }
#pragma unroll
        for (unsigned u = 0; u < TURN; u++)
            if (at + u * THREADS < units)
                whole[at + u * THREADS] = unit[u];
    }
}

/* Units narrower than an access go together, where both begin on its size. */
template <class V> __device__ __forceinline__ void keep(const V *base, V *whole, unsigned units)
{
    constexpr unsigned TOGETHER = 16 / sizeof(V);
    const bool aligned = (reinterpret_cast<uintptr_t>(base) | reinterpret_cast<uintptr_t>(whole)) % 16 == 0;
    const unsigned packs = TOGETHER > 1 && aligned ? units / TOGETHER : 0, done = packs * TOGETHER;
    if (packs)
        keep_units(reinterpret_cast<const uint4 *>(base), reinterpret_cast<uint4 *>(whole), packs);
    keep_units(base ? base + done : base, whole + done, units - done);
}

/* A block has `each` neighbouring units of `whole`, in memory order. Of rows of one unit those without an entry are only kept. */
template <class T, int N>
__global__ void __launch_bounds__(THREADS, BLOCKS) add_few(const __grid_constant__ pc__cuda_picking p, unsigned each,
                                                           int64_t skip, const T *base, const T *picked, T *whole)
{
    typedef vector<T, N> V;
    __shared__ entries of;
    const int64_t begin = static_cast<int64_t>(blockIdx.x) * each, all = p.outer * p.n * p.row;
    const unsigned units = static_cast<unsigned>(min(static_cast<int64_t>(each), all - begin));
    const int64_t first = quotient(begin, p.row), last = quotient(begin + units - 1, p.row);
    const int64_t outer = quotient(first, p.n), top = first - outer * p.n, left = begin - first * p.row;
    const bool one = last - first < p.n - top; /* else places start anew on the way */
    pc::wait_for_earlier();
    const unsigned count = take_entries(p, skip, one ? top : 0, one ? top + (last - first) : p.n - 1, of);
    const V *before = base ? reinterpret_cast<const V *>(base) + begin : nullptr;
    V *to = reinterpret_cast<V *>(whole) + begin;
    if (count == 0)
        return keep(before, to, units);
    if (p.row == 1 && one) {
        keep(before, to, units);
        __syncthreads();
        const unsigned i = threadIdx.x;
        if (i < count && (i == 0 || of.place[i] != of.place[i - 1])) {
            sum_of<T, N> sum = {};
            if (before)
                sum.take(before[of.place[i]]);
            add_entries(of, count, of.place[i], reinterpret_cast<const V *>(picked) + outer * p.count, 1, sum);
            to[of.place[i]] = sum.rounded();
        }
        return;
    }
    for (unsigned at = threadIdx.x; at < units; at += THREADS) {
        const int64_t r = quotient(left + at, p.row), column = left + at - r * p.row;
        const int64_t more = one ? 0 : quotient(top + r, p.n);
        const unsigned place = static_cast<unsigned>(one ? r : top + r - more * p.n);
        const V *from = reinterpret_cast<const V *>(picked) + (outer + more) * p.count * p.row + column;
        sum_of<T, N> sum = {};
        if (before)
            sum.take(before[at]);
        add_entries(of, count, place, from, p.row, sum);
        to[at] = sum.rounded();
    }
}

/* All blocks are there at once: each goes through the index first. */
template <class T, int N>
void add_units(const pc__cuda_picking *p, int64_t skip, const void *base, const void *picked, void *whole)
{
    const int64_t units = p->outer * p->n * p->row, most = static_cast<int64_t>(p->multiprocessors) * BLOCKS;
    const int64_t all = (units + THREADS - 1) / THREADS, blocks = all < most ? all : most;
    const int64_t each = (all + blocks - 1) / blocks * THREADS;
    pc::start(add_few<T, N>, static_cast<unsigned>((units + each - 1) / each), THREADS, p->queue, p->early, *p,
              static_cast<unsigned>(each), skip, static_cast<const T *>(base), static_cast<const T *>(picked),
              static_cast<T *>(whole));
}

template <class T>
void add_as(const pc__cuda_picking *p, int packed, int64_t skip, const void *base, const void *picked, void *whole)
{
    if (packed)
        add_units<T, 16 / sizeof(T)>(p, skip, base, picked, whole);
    else
        add_units<T, 1>(p, skip, base, picked, whole);
}

} // namespace

void pc__cuda_add_few_rows(const pc__cuda_picking *p, int dtype, int packed, int64_t skip, const void *base,
                           const void *picked, void *whole)
{
    switch (dtype) {
    case PC__CUDA_F16:
        return add_as<pc::f16>(p, packed, skip, base, picked, whole);
    case PC__CUDA_BF16:
        return add_as<pc::bf16>(p, packed, skip, base, picked, whole);
    default:
        return add_as<float>(p, packed, skip, base, picked, whole);
    }
}
