/* long_rows.cu: sums in front of sum_rows.cu, where a place may have so many entries that one block would read them for long.
 * Windows of the sorted entries are added up by a block each: what the row of the first entry has there, and that of the
 * last one, if these are long. Windows are cut by their number alone. */
#include "cuda/index/sum_column.cuh"

namespace
{

/* Entries from..to - 1 of the window's row, by all teams; the first one has the sum. */
template <class T, int N>
__device__ __forceinline__ void add_part(const pc__cuda_picking &p, const column<T, N> &c, bool in, unsigned from,
                                         unsigned to, unsigned lanes, sum_of<T, N> (&parts)[THREADS],
                                         sum_of<T, N> *result)
{
    const unsigned team = threadIdx.x / lanes, teams = THREADS / lanes, each = (to - from + teams - 1) / teams;
    const unsigned begin = min(from + team * each, to), end = min(begin + each, to);
    sum_of<T, N> sum = {};
    if (in)
        c.template add<8>(sum, p.order, begin, end);
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (team == 0 && in) {
        for (unsigned t = 1; t < teams; t++)
            sum += parts[t * lanes + threadIdx.x];
        *result = sum;
    }
    __syncthreads();
}

template <class T, int N>
__global__ void __launch_bounds__(THREADS, sizeof(T) > 1 ? BLOCKS : 1)
    add_windows(const __grid_constant__ pc__cuda_picking p, const T *picked, unsigned lanes)
{
    __shared__ sum_of<T, N> parts[THREADS];
    pc::wait_for_earlier();
    const unsigned entries = p.start[p.n], begin = blockIdx.x * PC__CUDA_WINDOW,
                   end = min(begin + PC__CUDA_WINDOW, entries);
    if (begin >= end)
        return;
    const int64_t first = p.index[p.order[begin]], last = p.index[p.order[end - 1]];
    const unsigned stop = min(p.start[first + 1], end), go_on = max(p.start[last], begin);
    const bool first_is_long = p.start[first + 1] - p.start[first] > PC__CUDA_LONG_ROW;
    const bool last_is_long = last != first && p.start[last + 1] - p.start[last] > PC__CUDA_LONG_ROW;
    const int64_t columns = p.outer * p.row;
    sum_of<T, N> *results = static_cast<sum_of<T, N> *>(p.parts) + blockIdx.x * 2 * columns;
    for (int64_t slab = blockIdx.y; slab * lanes < columns; slab += gridDim.y) {
        const int64_t at = slab * lanes + threadIdx.x % lanes;
        const bool in = at < columns;
        const column<T, N> c = column_of<T, N>(p, nullptr, picked, nullptr, at);
        if (first_is_long)
            add_part<T, N>(p, c, in, begin, stop, lanes, parts, results + at);
        if (last_is_long)
            add_part<T, N>(p, c, in, go_on, end, lanes, parts, results + columns + at);
    }
}

template <class T, int N> struct added {
    static void run(const pc__cuda_picking *p, const void *picked)
    {
        const int64_t columns = p->outer * p->row, most = 65535;
        const unsigned lanes = lanes_for(columns);
        const int64_t slabs = (columns + lanes - 1) / lanes,
                      windows = (p->count + PC__CUDA_WINDOW - 1) / PC__CUDA_WINDOW;
        pc::start_grid(add_windows<T, N>,
                       dim3(static_cast<unsigned>(windows), static_cast<unsigned>(slabs < most ? slabs : most)),
                       dim3(THREADS), 0, p->queue, p->early, *p, static_cast<const T *>(picked), lanes);
    }
};

} // namespace

void pc__cuda_add_windows(const pc__cuda_picking *p, int dtype, int packed, const void *picked)
{
    by_row<added>(dtype, packed, p, picked);
}
