/* search.cu: where values belong in what is sorted. */
#include "cuda/index/rank.h"
#include "cuda/index/rank_key.cuh"
#include "cuda/shared/dependent_launch.cuh"

namespace
{

constexpr int THREADS = 256;

template <class T>
__global__ void __launch_bounds__(THREADS)
    search(const __grid_constant__ pc__cuda_search p, const T *sorted, const T *values, int64_t *to)
{
    pc::wait_for_earlier();
    const int64_t step = static_cast<int64_t>(gridDim.x) * THREADS;
    for (int64_t at = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x; at < p.count; at += step) {
        const T *row = sorted + at / p.each * p.n;
        const T value = values[at];
        int64_t low = 0, high = p.n;
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            const T here = row[middle];
            if (p.right ? here > value : here >= value)
                high = middle;
            else
                low = middle + 1;
        }
        to[at] = low;
    }
}

template <class T> struct searched {
    static void run(const pc__cuda_search *p, const void *sorted, const void *values, int64_t *to)
    {
        const int64_t most = static_cast<int64_t>(p->multiprocessors) * 32, all = (p->count + THREADS - 1) / THREADS;
        pc::start(search<T>, static_cast<unsigned>(all < most ? all : most), THREADS, p->queue, p->early, *p,
                  static_cast<const T *>(sorted), static_cast<const T *>(values), to);
    }
};

} // namespace

void pc__cuda_search_sorted(const pc__cuda_search *p, const void *sorted, const void *values, int64_t *to)
{
    by_key<searched>(p->dtype, p, sorted, values, to);
}
