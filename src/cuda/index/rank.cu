/* rank.cu: sorts along a dimension. A block sorts a tile of a list in its own memory; tiles are merged, two and two, each
 * element looking up its place in the other run. Runs never have more elements than are kept. No two items are equal,
 * since they hold their place; those that fill up a tile are behind all others. */
#include "cuda/index/rank.h"
#include "cuda/index/rank_key.cuh"
#include "cuda/shared/dependent_launch.cuh"

namespace
{

constexpr int THREADS = 256, TILE = PC__CUDA_TILE;
constexpr uint64_t LAST = ~uint64_t(0);

/* A key of 32 bits and its place. */
struct narrow {
    uint64_t both;
    static __device__ __forceinline__ narrow of(uint64_t key, unsigned place, bool down)
    {
        return {(down ? key ^ 0xffffffffu : key) << 32 | place};
    }
    static __device__ __forceinline__ narrow last()
    {
        return {LAST};
    }
    __device__ __forceinline__ unsigned place() const
    {
        return static_cast<unsigned>(both);
    }
    __device__ __forceinline__ bool operator<(const narrow &other) const
    {
        return both < other.both;
    }
};

struct alignas(16) wide {
    uint64_t key, at;
    static __device__ __forceinline__ wide of(uint64_t key, unsigned place, bool down)
    {
        return {down ? ~key : key, place};
    }
    static __device__ __forceinline__ wide last()
    {
        return {LAST, LAST};
    }
    __device__ __forceinline__ unsigned place() const
    {
        return static_cast<unsigned>(at);
    }
    __device__ __forceinline__ bool operator<(const wide &other) const
    {
        return key < other.key || (key == other.key && at < other.at);
    }
};

template <bool> struct item_of {
    typedef narrow type;
};
template <> struct item_of<true> {
    typedef wide type;
};
template <class T> using item = typename item_of<sizeof(T) == 8>::type;

/* Where a list begins in a tensor of so many elements along the dimension. */
__device__ __forceinline__ int64_t list_at(const pc__cuda_ranking &p, int64_t list, int64_t along)
{
    const int64_t outer = list / p.inner;
    return outer * along * p.inner + (list - outer * p.inner);
}

template <class T>
__device__ __forceinline__ void put(const pc__cuda_ranking &p, const T *from, T *values, int64_t *places, int64_t list,
                                    int64_t i, unsigned place)
{
    const int64_t to = list_at(p, list, p.count) + i * p.inner;
    values[to] = from[list_at(p, list, p.n) + place * p.inner];
    places[to] = place;
}

/* Bitonic: Batcher, "Sorting networks and their applications", 1968. */
template <class I> __device__ __forceinline__ void sort_tile(I *tile, unsigned size)
{
    for (unsigned whole = 2; whole <= size; whole *= 2)
        for (unsigned step = whole / 2; step > 0; step /= 2) {
            __syncthreads();
            for (unsigned t = threadIdx.x; t < size / 2; t += blockDim.x) {
                const unsigned a = t / step * 2 * step + t % step, b = a + step;
                const bool up = (a & whole) == 0;
                const I low = tile[a], high = tile[b];
                if ((high < low) == up) {
                    tile[a] = high;
                    tile[b] = low;
                }
            }
        }
    __syncthreads();
}

template <class T>
__global__ void __launch_bounds__(TILE / 4)
    sort_tiles(const __grid_constant__ pc__cuda_ranking p, const T *from, T *values, int64_t *places, item<T> *runs)
{
    typedef item<T> I;
    __shared__ I tile[TILE];
    pc::wait_for_earlier();
    const int64_t list = blockIdx.x / p.tiles, number = blockIdx.x - list * p.tiles;
    const T *own = from + list_at(p, list, p.n);
    const unsigned size = static_cast<unsigned>(p.tile);
    for (unsigned t = threadIdx.x; t < size; t += blockDim.x) {
        const int64_t i = number * size + t;
        tile[t] = i < p.n ? I::of(key_of(own[i * p.inner]), static_cast<unsigned>(i), p.descending) : I::last();
    }
    sort_tile(tile, size);
    const unsigned kept = static_cast<unsigned>(p.count < p.tile ? p.count : p.tile);
    for (unsigned t = threadIdx.x; t < kept; t += blockDim.x) {
        if (p.tiles == 1)
            put(p, from, values, places, list, t, tile[t].place());
        else
            runs[blockIdx.x * static_cast<int64_t>(kept) + t] = tile[t];
    }
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
        const unsigned threads = static_cast<unsigned>(p->tile < 64 ? 32 : p->tile > TILE / 2 ? TILE / 4 : p->tile / 2);
        pc::start(sort_tiles<T>, static_cast<unsigned>(p->lists * p->tiles), threads, p->queue, p->early, *p, x, y,
                  places, runs);
        if (p->tiles == 1)
            return;
        merging m = {p->lists, p->tiles, p->count < p->tile ? p->count : p->tile, 0};
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
    return p->lists * tiles * p->tile * static_cast<int64_t>(is_wide ? sizeof(wide) : sizeof(narrow));
}

void pc__cuda_rank(const pc__cuda_ranking *p, const void *from, void *values, int64_t *places)
{
    by_key<ranked>(p->dtype, p, from, values, places);
}
