/* few_rows.cu: rows added up by the place that each belongs to, where they are few: each block looks through all of the index
 * for what its part of the result gets, which costs less than to sort it. */
#include "cuda/index/rows.h"
#include "cuda/index/sum_of.cuh"
#include "cuda/runtime/fault.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr unsigned AHEAD = 8; /* entries that are on their way at once */
static_assert(PC__CUDA_FEW_ROWS <= THREADS, "an entry a thread");

/* Entries that a block needs, in ascending order. */
struct entries {
    int64_t place[PC__CUDA_FEW_ROWS];
    unsigned number[PC__CUDA_FEW_ROWS], warp[WARPS];
};

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
    if (mine)
        of.place[before] = place, of.number[before] = threadIdx.x;
    __syncthreads();
    return count;
}

/* A block has `each` neighbouring units of `whole`, in memory order. */
template <class T, int N>
__global__ void __launch_bounds__(THREADS) add_few(const __grid_constant__ pc__cuda_picking p, int64_t each,
                                                   int64_t skip, const T *base, const T *picked, T *whole)
{
    typedef vector<T, N> V;
    __shared__ entries of;
    pc::wait_for_earlier();
    const int64_t begin = blockIdx.x * each, units = p.outer * p.n * p.row,
                  end = begin + each < units ? begin + each : units;
    const int64_t first = quotient(begin, p.row), last = quotient(end - 1, p.row), outer = quotient(first, p.n);
    const bool one = quotient(last, p.n) == outer; /* else places start anew on the way */
    const unsigned count = take_entries(p, skip, one ? first - outer * p.n : 0, one ? last - outer * p.n : p.n - 1, of);
    for (int64_t at = begin + threadIdx.x; at < end; at += THREADS) {
        const int64_t r = quotient(at, p.row), column = at - r * p.row, o = quotient(r, p.n), place = r - o * p.n;
        const V *from = reinterpret_cast<const V *>(picked) + o * p.count * p.row + column;
        sum_of<T, N> sum = {};
        if (base)
            sum += reinterpret_cast<const V *>(base)[at];
        for (unsigned i = 0; i < count; i += AHEAD) {
            bool mine[AHEAD];
            V part[AHEAD];
#pragma unroll
            for (unsigned k = 0; k < AHEAD; k++) {
                mine[k] = i + k < count && of.place[i + k] == place;
                if (mine[k])
                    part[k] = from[of.number[i + k] * p.row];
            }
#pragma unroll
            for (unsigned k = 0; k < AHEAD; k++)
                if (mine[k])
                    sum += part[k];
        }
        reinterpret_cast<V *>(whole)[at] = sum.rounded();
    }
}

template <class T, int N>
void add_units(const pc__cuda_picking *p, int64_t skip, const void *base, const void *picked, void *whole)
{
    const int64_t units = p->outer * p->n * p->row, most = static_cast<int64_t>(p->multiprocessors) * 16;
    const int64_t all = (units + THREADS - 1) / THREADS, blocks = all < most ? all : most;
    const int64_t each = (all + blocks - 1) / blocks * THREADS;
    pc::start(add_few<T, N>, static_cast<unsigned>((units + each - 1) / each), THREADS, p->queue, p->early, *p, each,
              skip, static_cast<const T *>(base), static_cast<const T *>(picked), static_cast<T *>(whole));
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
