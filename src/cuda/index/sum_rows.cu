/* sum_rows.cu: rows added up by the place that each belongs to, after the sort (sort.h): the gradient of an embedding.
 *
 * Every unit of the result is one thread's, which adds what comes to it in the index's order. Teams of neighbouring threads
 * take neighbouring units of a row. Most rows have few entries, and a team takes ROWS of them at once so that it waits for
 * memory once. A row with more than FEW entries is left to the whole block: its teams add up a part each, and then their
 * sums; narrow rows, of which a block has hundreds, only beyond PC__CUDA_LONG_ROW. Of a row with more than PC__CUDA_LONG_ROW the parts are the sums that long_rows.cu has made. Blocks take rows far
 * from each other, since frequent ones are often neighbours. */
#include "cuda/index/sum_column.cuh"

namespace
{

constexpr int ROWS = 2, FEW = 24, NARROW = 8 /* lanes */;

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

/* A team's share of the sums of a long row's windows; a window's first sum is that of the row its first entry belongs to. */
template <class S>
__device__ __forceinline__ void add_windows(const pc__cuda_picking &p, S &sum, unsigned from, unsigned to, int64_t at,
                                            unsigned team, unsigned teams)
{
    const S *parts = static_cast<const S *>(p.parts) + at;
    const int64_t columns = p.outer * p.row;
    const unsigned first = from / PC__CUDA_WINDOW, windows = (to - 1) / PC__CUDA_WINDOW + 1 - first;
    const unsigned each = (windows + teams - 1) / teams, end = min((team + 1) * each, windows);
#pragma unroll 4
    for (unsigned w = team * each; w < end; w++)
        sum += parts[((first + w) * 2 + ((first + w) * PC__CUDA_WINDOW < from)) * columns];
}

/* A row that the whole block adds up. */
template <class T, int N>
__device__ void add_long(const pc__cuda_picking &p, const column<T, N> &c, bool in, int64_t at, int64_t place,
                         unsigned lanes, sum_of<T, N> (&parts)[THREADS])
{
    const unsigned team = threadIdx.x / lanes, teams = THREADS / lanes, from = p.start[place], to = p.start[place + 1];
    const unsigned each = (to - from + teams - 1) / teams, begin = min(from + team * each, to),
                   end = min(begin + each, to);
    sum_of<T, N> sum = {};
    if (in && to - from > PC__CUDA_LONG_ROW)
        add_windows(p, sum, from, to, at, team, teams);
    else if (in)
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
    const unsigned few = lanes < NARROW ? PC__CUDA_LONG_ROW : FEW;
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
        if (to[u] - from[u] > few && lane == 0)
            longs[atomicAdd(&count, 1u)] = u * teams + team;
    }
    __syncthreads();
    for (int64_t slab = blockIdx.y; slab * lanes < columns; slab += gridDim.y) {
        const int64_t at = slab * lanes + lane;
        const bool in = at < columns;
        const column<T, N> c = column_of<T, N>(p, base, picked, whole, at);
        V x[ROWS] = {};
#pragma unroll
        for (int u = 0; u < ROWS; u++)
            if (in && to[u] > from[u])
                x[u] = c.entry(first[u]);
#pragma unroll
        for (int u = 0; u < ROWS; u++) {
            if (!in || place(u) >= p.n || to[u] - from[u] > few)
                continue;
            sum_of<T, N> sum = c.start(place(u));
            if (to[u] > from[u]) {
                sum += x[u];
                if (to[u] - from[u] > FEW)
                    c.template add<8>(sum, p.order, from[u] + 1, to[u]);
                else
                    c.template add<2>(sum, p.order, from[u] + 1, to[u]);
            }
            c.whole[place(u) * p.row] = sum.rounded();
        }
        for (unsigned k = 0; k < count; k++)
            add_long<T, N>(p, c, in, at, own.first + longs[k] * own.step, lanes, parts);
    }
}

/* Where places are few, blocks have fewer of them than they could; narrow rows if they have many entries each. */
template <class T, int N> struct summed {
    static void run(const pc__cuda_picking *p, const void *base, const void *picked, void *whole)
    {
        const int64_t columns = p->outer * p->row, most = 65535, device = static_cast<int64_t>(p->multiprocessors) * 2;
        const unsigned lanes = lanes_for(columns);
        const int64_t slabs = (columns + lanes - 1) / lanes, high = slabs < most ? slabs : most;
        const int64_t places = THREADS / lanes * ROWS, least = (p->n + places - 1) / places;
        const int64_t apart = p->n < device / high ? p->n : device / high;
        const bool spread = lanes >= NARROW || p->count > p->n * PC__CUDA_WINDOW;
        pc::start_grid(
            sum_rows<T, N>,
            dim3(static_cast<unsigned>(spread && apart > least ? apart : least), static_cast<unsigned>(high)),
            dim3(THREADS), 0, p->queue, p->early, *p, static_cast<const T *>(base), static_cast<const T *>(picked),
            static_cast<T *>(whole), lanes, spread);
    }
};

} // namespace

void pc__cuda_sum_rows(const pc__cuda_picking *p, int dtype, int packed, const void *base, const void *picked,
                       void *whole)
{
    by_row<summed>(dtype, packed, p, base, picked, whole);
}
