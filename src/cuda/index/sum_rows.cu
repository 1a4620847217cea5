/* sum_rows.cu: rows added up by the place that each belongs to, after the sort (sort.h): the gradient of an embedding.
 *
 * Every unit of the result is one thread's, which adds what comes to it in the index's order. Teams of neighbouring threads
 * take neighbouring units of a row. Most rows have few entries, and a team takes ROWS of them at once so that it waits for
 * memory once. A row with more than FEW entries is left to the whole block: its teams add up a part each, and then their
 * sums. Blocks take rows far from each other, since frequent ones are often neighbours. */
#include "cuda/index/rows.h"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/index/sum_of.cuh"

namespace
{

constexpr int THREADS = 256, BLOCKS = 4, MOST_LANES = 64, ROWS = 2, FEW = 24;

/* Units of a column: of one place after the other in base and whole, of one entry after the other in picked. */
template <class T, int N> struct column {
    typedef vector<T, N> V;
    const V *base, *picked;
    V *whole;
    int64_t row;

    __device__ __forceinline__ sum_of<T, N> start(int64_t place) const
    {
        sum_of<T, N> sum = {};
        if (base)
            sum += base[place * row];
        return sum;
    }
    __device__ __forceinline__ V entry(unsigned i) const
    {
        return picked[i * row];
    }
    /* entries order[from] to order[to - 1], AT_ONCE of them under way */
    template <int AT_ONCE>
    __device__ __forceinline__ void add(sum_of<T, N> &sum, const unsigned *order, unsigned from, unsigned to) const
    {
        for (; from + AT_ONCE <= to; from += AT_ONCE) {
            V x[AT_ONCE];
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++)
                x[u] = entry(order[from + u]);
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++)
                sum += x[u];
        }
        for (; from < to; from++)
            sum += entry(order[from]);
    }
};

/* The places of a block: number i is first + i * step. */
struct share {
    int64_t first, step;
};

__device__ __forceinline__ share share_of(unsigned places, bool apart)
{
    if (apart)
        return {static_cast<int64_t>(blockIdx.x), static_cast<int64_t>(gridDim.x)};
    return {static_cast<int64_t>(blockIdx.x) * places, 1};
}

/* A row that the whole block adds up. */
template <class T, int N>
__device__ void add_long(const pc__cuda_picking &p, const column<T, N> &c, bool in, int64_t place, unsigned lanes,
                         sum_of<T, N> (&parts)[THREADS])
{
    const unsigned team = threadIdx.x / lanes, teams = THREADS / lanes, from = p.start[place], to = p.start[place + 1];
    const unsigned each = (to - from + teams - 1) / teams, begin = min(from + team * each, to),
                   end = min(begin + each, to);
    sum_of<T, N> sum = {};
    if (in)
        c.template add<8>(sum, p.order, begin, end);
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (team == 0 && in) {
        sum = c.start(place);
        for (unsigned t = 0; t < teams; t++)
            sum += parts[t * lanes + threadIdx.x];
        c.whole[place * p.row] = sum.rounded();
    }
    __syncthreads();
}

template <class T, int N>
__global__ void __launch_bounds__(THREADS, sizeof(T) > 1 ? BLOCKS : 1)
    sum_rows(const __grid_constant__ pc__cuda_picking p, const T *base, const T *picked, T *whole, unsigned lanes,
             bool apart)
{
    typedef vector<T, N> V;
    __shared__ sum_of<T, N> parts[THREADS];
    __shared__ unsigned longs[THREADS * ROWS], count;
    const unsigned lane = threadIdx.x % lanes, team = threadIdx.x / lanes, teams = THREADS / lanes;
    const share own = share_of(teams * ROWS, apart);
    const int64_t columns = p.outer * p.row;
    if (threadIdx.x == 0)
        count = 0;
    __syncthreads();
    pc::wait_for_earlier();
    const auto place = [&](int u) { return own.first + (u * teams + team) * own.step; };
    unsigned from[ROWS], to[ROWS], first[ROWS];
#pragma unroll
    for (int u = 0; u < ROWS; u++) {
        const bool there = place(u) < p.n;
        from[u] = there ? p.start[place(u)] : 0;
        to[u] = there ? p.start[place(u) + 1] : 0;
    }
#pragma unroll
    for (int u = 0; u < ROWS; u++) {
        first[u] = to[u] > from[u] ? p.order[from[u]] : 0;
        if (to[u] - from[u] > FEW && lane == 0)
            longs[atomicAdd(&count, 1u)] = u * teams + team;
    }
    __syncthreads();
    for (int64_t slab = blockIdx.y; slab * lanes < columns; slab += gridDim.y) {
        const int64_t at = slab * lanes + lane, outer = at / p.row, unit = at - outer * p.row;
        const bool in = at < columns;
        const int64_t of_whole = outer * p.n * p.row + unit, of_picked = outer * p.count * p.row + unit;
        const column<T, N> c = {base ? reinterpret_cast<const V *>(base) + of_whole : nullptr,
                                reinterpret_cast<const V *>(picked) + of_picked,
                                reinterpret_cast<V *>(whole) + of_whole, p.row};
        V x[ROWS] = {};
#pragma unroll
        for (int u = 0; u < ROWS; u++)
            if (in && to[u] > from[u])
                x[u] = c.entry(first[u]);
#pragma unroll
        for (int u = 0; u < ROWS; u++) {
            if (!in || place(u) >= p.n || to[u] - from[u] > FEW)
                continue;
            sum_of<T, N> sum = c.start(place(u));
            if (to[u] > from[u]) {
                sum += x[u];
                c.template add<2>(sum, p.order, from[u] + 1, to[u]);
            }
            c.whole[place(u) * p.row] = sum.rounded();
        }
        for (unsigned k = 0; k < count; k++)
            add_long<T, N>(p, c, in, own.first + longs[k] * own.step, lanes, parts);
    }
}

template <class T, int N> void sum_units(const pc__cuda_picking *p, const void *base, const void *picked, void *whole)
{
    const int64_t columns = p->outer * p->row, most = 65535;
    unsigned lanes = 1;
    while (lanes < MOST_LANES && lanes < columns)
        lanes *= 2;
    const int64_t places = THREADS / lanes * ROWS, wide = (p->n + places - 1) / places;
    const int64_t slabs = (columns + lanes - 1) / lanes, high = slabs < most ? slabs : most;
    pc::start_grid(sum_rows<T, N>, dim3(static_cast<unsigned>(wide), static_cast<unsigned>(high)), dim3(THREADS), 0,
                   p->queue, p->early, *p, static_cast<const T *>(base), static_cast<const T *>(picked),
                   static_cast<T *>(whole), lanes, lanes >= 8);
}

template <class T> void sum_as(const pc__cuda_picking *p, int packed, const void *base, const void *picked, void *whole)
{
    if (packed)
        sum_units<T, 16 / sizeof(T)>(p, base, picked, whole);
    else
        sum_units<T, 1>(p, base, picked, whole);
}

} // namespace

void pc__cuda_sum_rows(const pc__cuda_picking *p, int dtype, int packed, const void *base, const void *picked,
                       void *whole)
{
    switch (dtype) {
    case PC__CUDA_BOOL:
        return sum_as<bool>(p, packed, base, picked, whole);
    case PC__CUDA_U8:
        return sum_as<uint8_t>(p, packed, base, picked, whole);
    case PC__CUDA_I32:
        return sum_as<uint32_t>(p, packed, base, picked, whole);
    case PC__CUDA_I64:
        return sum_as<uint64_t>(p, packed, base, picked, whole);
    case PC__CUDA_F16:
        return sum_as<pc::f16>(p, packed, base, picked, whole);
    case PC__CUDA_BF16:
        return sum_as<pc::bf16>(p, packed, base, picked, whole);
    case PC__CUDA_F32:
        return sum_as<float>(p, packed, base, picked, whole);
    default:
        return sum_as<double>(p, packed, base, picked, whole);
    }
}
