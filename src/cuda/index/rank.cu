/* rank.cu: sorts along a dimension, of lists that have several tiles. A block sorts a tile in its own memory; tiles are
 * merged, two and two, each element looking up its place in the other run. Runs never have more elements than are kept. Items
 * that fill up a tile are behind all others. */
#include "cuda/index/rank.h"
#include "cuda/index/rank_item.cuh"
#include "cuda/shared/dependent_launch.cuh"

namespace
{

constexpr int THREADS = 256, TILE = PC__CUDA_TILE;

template <class T>
__global__ void __launch_bounds__(TILE / 4)
    sort_tiles(const __grid_constant__ pc__cuda_ranking p, const T *from, item<T> *runs)
{
    typedef item<T> I;
    __shared__ I tile[TILE];
    pc::wait_for_earlier();
    const int64_t list = blockIdx.x / p.tiles, number = blockIdx.x - list * p.tiles;
    const T *own = from + list_at(p, list, p.n);
    for (unsigned t = threadIdx.x; t < TILE; t += blockDim.x) {
        const int64_t i = number * TILE + t;
        tile[t] = i < p.n ? I::of(key_of(own[i * p.inner]), static_cast<unsigned>(i), p.descending) : I::last();
    }
    sort_tile(tile, TILE, 1, TILE);
    const unsigned kept = static_cast<unsigned>(p.count < TILE ? p.count : TILE);
    for (unsigned t = threadIdx.x; t < kept; t += blockDim.x)
        runs[blockIdx.x * static_cast<int64_t>(kept) + t] = tile[t];
}

/* How many of a run are less, or not greater. */
template <class I> __device__ __forceinline__ int64_t rank_in(const I *run, int64_t length, const I &item, bool equals)
{
    int64_t low = 0, high = length;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (run[middle] < item || (equals && !(item < run[middle])))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Runs of a list, and what two of them become. */
struct merging {
    int64_t lists, runs, length, merged;
};

template <class I>
__global__ void __launch_bounds__(THREADS) merge_runs(const __grid_constant__ merging m, const I *from, I *to)
{
    pc::wait_for_earlier();
    const int64_t items = m.lists * m.runs * m.length, step = static_cast<int64_t>(gridDim.x) * THREADS;
    for (int64_t at = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x; at < items; at += step) {
        const int64_t run = at / m.length, i = at - run * m.length, list = run / m.runs, own = run - list * m.runs;
        const bool second = own & 1, alone = !second && own + 1 == m.runs;
        I *result = to + (list * ((m.runs + 1) / 2) + own / 2) * m.merged;
        const I mine = from[at];
        const I *other = from + (second ? run - 1 : run + 1) * m.length;
        const int64_t place = i + (alone ? 0 : rank_in(other, m.length, mine, second));
        if (place < m.merged)
            result[place] = mine;
        if (alone && i + m.length < m.merged)
            result[i + m.length] = I::last();
    }
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    put_all(const __grid_constant__ pc__cuda_ranking p, const T *from, T *values, int64_t *places, const item<T> *run)
{
    pc::wait_for_earlier();
    const int64_t items = p.lists * p.count, step = static_cast<int64_t>(gridDim.x) * THREADS;
    for (int64_t at = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x; at < items; at += step) {
        const int64_t list = at / p.count;
        put(p, from, values, places, list, at - list * p.count, run[at].place());
    }
}

unsigned blocks_for(int multiprocessors, int64_t threads)
{
    const int64_t most = static_cast<int64_t>(multiprocessors) * 32, all = (threads + THREADS - 1) / THREADS;
    return static_cast<unsigned>(all < most ? all : most);
}

template <class T> struct ranked {
    static void run(const pc__cuda_ranking *p, const void *from, void *values, int64_t *places)
    {
        typedef item<T> I;
        const T *x = static_cast<const T *>(from);
        T *y = static_cast<T *>(values);
        I *runs = static_cast<I *>(p->room[0]), *next = static_cast<I *>(p->room[1]);
        pc::start(sort_tiles<T>, static_cast<unsigned>(p->lists * p->tiles), TILE / 4, p->queue, p->early, *p, x, runs);
        merging m = {p->lists, p->tiles, p->count < TILE ? p->count : TILE, 0};
        for (; m.runs > 1; m.runs = (m.runs + 1) / 2, m.length = m.merged) {
            m.merged = 2 * m.length < p->count ? 2 * m.length : p->count;
            pc::start(merge_runs<I>, blocks_for(p->multiprocessors, m.lists * m.runs * m.length), THREADS, p->queue,
                      p->early, m, static_cast<const I *>(runs), next);
            I *other = runs;
            runs = next;
            next = other;
        }
        pc::start(put_all<T>, blocks_for(p->multiprocessors, p->lists * p->count), THREADS, p->queue, p->early, *p, x,
                  y, places, static_cast<const I *>(runs));
    }
};

} // namespace

/* Each pass has at most as many runs as a power of two of tiles would leave. */
int64_t pc__cuda_rank_bytes(const pc__cuda_ranking *p)
{
    int64_t tiles = 1;
    while (tiles < p->tiles)
        tiles *= 2;
    const bool is_wide = p->dtype == PC__CUDA_I64 || p->dtype == PC__CUDA_F64;
    return p->lists * tiles * TILE * static_cast<int64_t>(is_wide ? sizeof(wide) : sizeof(narrow));
}

void pc__cuda_rank_long(const pc__cuda_ranking *p, const void *from, void *values, int64_t *places)
{
    by_key<ranked>(p->dtype, p, from, values, places);
}
