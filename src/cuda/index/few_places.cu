/* few_places.cu: rows added up by the place that each belongs to, where places are few and have many entries each. A block has a
 * chunk of the index, whose entries it sorts by their places in its own memory, and adds up what each place has there: a second
 * kernel adds up the chunks. Teams of neighbouring threads take neighbouring units of a row, and as many of the sorted entries each,
 * whatever places these have; entries of one place that several teams have meet behind that, in order. */
#include "cuda/index/radix_block.cuh"
#include "cuda/index/rows.h"
#include "cuda/index/sum_of.cuh"
#include "cuda/runtime/fault.cuh"

namespace
{

constexpr unsigned AT_ONCE = 8;
static_assert(PC__CUDA_CHUNK % THREADS == 0 && PC__CUDA_LONG_CHUNK % THREADS == 0, "entries of a thread");

/* The entries from `first` on by their places, those of one in order; behind them what has none. */
template <int ITEMS>
__device__ __forceinline__ void sort_chunk(const pc__cuda_picking &p, int64_t skip, int64_t first,
                                           list_room<ITEMS> &room)
{
    const unsigned here = static_cast<unsigned>(min(p.count - first, static_cast<int64_t>(ITEMS * THREADS)));
    const unsigned begin = threadIdx.x / 32 * ITEMS * 32 + threadIdx.x % 32;
    int64_t place[ITEMS];
    narrow items[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        place[k] = p.index[first + min(begin + k * 32, here - 1)];
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const unsigned i = begin + k * 32;
        const bool there = place[k] >= 0 && place[k] < p.n;
        if (!there && i < here && blockIdx.y == 0)
            pc::fault(p.fault, PC__FAULT_INDEX, first + i, place[k], p.n);
        items[k] = narrow::of(static_cast<uint64_t>(there && place[k] != skip ? place[k] : p.n), i, false);
        if (i >= here)
            items[k] = narrow::last();
    }
#pragma unroll 1
    for (unsigned shift = 0;; shift += 8) {
        pass(items, shift, room);
        if (p.n >> shift >> 8 == 0)
            break;
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            items[k] = room.items[begin + k * 32];
    }
}

/* What a chunk has for each place: the sums of a thread's unit of it, which are all written, with zeros where it has none. */
template <class T, int N> struct chunk_sums {
    sum_of<T, N> *to; /* of place 0 */
    int64_t columns, places;
    bool in, first; /* whether there is such a unit, and whether it is the team's first */
    bool *has;

    __device__ __forceinline__ void put(unsigned place, const sum_of<T, N> &sum) const
    {
        if (place >= places)
            return;
        if (in)
            to[place * columns] = sum;
        if (first)
            has[place] = true;
    }
};

/* A team's entries, begin to end - 1 of the sorted ones: what is of one place alone is put, but for its last place, whose sum is `open`,
 * and its first one, where entries in front of these are of the same place: that is left to the team that has the first. */
template <class T, int N, int ITEMS>
__device__ __forceinline__ bool add_entries(const list_room<ITEMS> &room, const chunk_sums<T, N> &sums,
                                            const vector<T, N> *from, int64_t row, unsigned begin, unsigned end,
                                            sum_of<T, N> &open, sum_of<T, N> &head)
{
    const auto place_of = [&](unsigned i) { return static_cast<unsigned>(room.items[i].both >> 32); };
    unsigned place = place_of(begin);
    bool own = begin == 0 || place_of(begin - 1) != place, is_head = true;
    for (unsigned i = begin; i < end; i += AT_ONCE) {
        vector<T, N> x[AT_ONCE] = {};
#pragma unroll
        for (unsigned u = 0; u < AT_ONCE; u++)
            if (sums.in && i + u < end && place_of(i + u) < sums.places)
                x[u] = from[room.items[i + u].place() * row];
#pragma unroll
        for (unsigned u = 0; u < AT_ONCE; u++) {
            if (i + u >= end)
                break;
            if (place_of(i + u) != place) {
                if (is_head)
                    head = open;
                if (own)
                    sums.put(place, open);
                place = place_of(i + u), own = true, is_head = false, open = {};
            }
            open += x[u];
        }
    }
    if (is_head)
        head = open;
    return own;
}

template <class T, int N, int ITEMS>
__global__ void __launch_bounds__(THREADS)
    add_chunks(const __grid_constant__ pc__cuda_picking p, int64_t skip, const T *picked, unsigned lanes)
{
    typedef vector<T, N> V;
    __shared__ list_room<ITEMS> room;
    __shared__ sum_of<T, N> heads[THREADS];
    __shared__ bool has[PC__CUDA_FEW_PLACES];
    const unsigned lane = threadIdx.x % lanes, team = threadIdx.x / lanes, each = ITEMS * lanes;
    const int64_t columns = p.outer * p.row, at = static_cast<int64_t>(blockIdx.y) * lanes + lane;
    const int64_t outer = quotient(at, p.row), first = static_cast<int64_t>(blockIdx.x) * (ITEMS * THREADS);
    const V *from = reinterpret_cast<const V *>(picked) + (outer * p.count + first) * p.row + (at - outer * p.row);
    const chunk_sums<T, N> sums = {static_cast<sum_of<T, N> *>(p.parts) + blockIdx.x * p.n * columns + at,
                                   columns,
                                   p.n,
                                   at < columns,
                                   lane == 0,
                                   has};
    for (unsigned i = threadIdx.x; i < p.n; i += THREADS)
        has[i] = false;
    pc::wait_for_earlier();
    sort_chunk<ITEMS>(p, skip, first, room);
    sum_of<T, N> open = {}, head;
    const bool own = add_entries<T, N, ITEMS>(room, sums, from, p.row, team * each, (team + 1) * each, open, head);
    heads[threadIdx.x] = head;
    __syncthreads();
    const uint64_t place = room.items[(team + 1) * each - 1].both >> 32;
    if (own) {
        for (unsigned next = team + 1; next < THREADS / lanes && room.items[next * each].both >> 32 == place; next++)
            open += heads[next * lanes + lane];
        sums.put(static_cast<unsigned>(place), open);
    }
    __syncthreads();
    if (sums.in)
        for (unsigned i = team; i < p.n; i += THREADS / lanes)
            if (!has[i])
                sums.to[i * columns] = {};
}

/* A unit of the result is a block's UNITS-th: teams have some of the chunks each. */
template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    join_chunks(const __grid_constant__ pc__cuda_picking p, unsigned chunks, const T *base, T *whole)
{
    typedef vector<T, N> V;
    constexpr unsigned UNITS = PC__CUDA_CHUNK_LANES, TEAMS = THREADS / UNITS;
    __shared__ sum_of<T, N> of_teams[TEAMS][UNITS];
    const unsigned unit = threadIdx.x % UNITS, team = threadIdx.x / UNITS, each = (chunks + TEAMS - 1) / TEAMS;
    const unsigned begin = min(team * each, chunks), end = min(begin + each, chunks);
    const int64_t columns = p.outer * p.row, total = p.n * columns,
                  at = static_cast<int64_t>(blockIdx.x) * UNITS + unit;
    const sum_of<T, N> *parts = static_cast<const sum_of<T, N> *>(p.parts) + at;
    sum_of<T, N> sum = {};
    pc::wait_for_earlier();
    for (unsigned c = begin; at < total && c < end; c += AT_ONCE) {
        sum_of<T, N> x[AT_ONCE] = {};
#pragma unroll
        for (unsigned u = 0; u < AT_ONCE; u++)
            if (c + u < end)
                x[u] = parts[(c + u) * total];
#pragma unroll
        for (unsigned u = 0; u < AT_ONCE; u++)
            sum += x[u];
    }
    of_teams[team][unit] = sum;
    __syncthreads();
    if (team > 0 || at >= total)
        return;
    const int64_t place = quotient(at, columns), column = at - place * columns, outer = quotient(column, p.row),
                  to = (outer * p.n + place) * p.row + (column - outer * p.row);
    sum = {};
    if (base)
        sum += reinterpret_cast<const V *>(base)[to];
    for (unsigned t = 0; t < TEAMS; t++)
        sum += of_teams[t][unit];
    reinterpret_cast<V *>(whole)[to] = sum.rounded();
}

template <class T, int N>
void add_units(const pc__cuda_picking *p, int64_t skip, int64_t chunk, const void *base, const void *picked,
               void *whole)
{
    const int64_t columns = p->outer * p->row, chunks = (p->count + chunk - 1) / chunk, units = PC__CUDA_CHUNK_LANES;
    unsigned lanes = 1;
    while (lanes < units && lanes < columns)
        lanes *= 2;
    const dim3 grid(static_cast<unsigned>(chunks), static_cast<unsigned>((columns + lanes - 1) / lanes));
    pc::start_grid(chunk == PC__CUDA_CHUNK ? add_chunks<T, N, PC__CUDA_CHUNK / THREADS>
                                           : add_chunks<T, N, PC__CUDA_LONG_CHUNK / THREADS>,
                   grid, dim3(THREADS), 0, p->queue, p->early, *p, skip, static_cast<const T *>(picked), lanes);
    pc::start(join_chunks<T, N>, static_cast<unsigned>((p->n * columns + units - 1) / units), THREADS, p->queue,
              p->early, *p, static_cast<unsigned>(chunks), static_cast<const T *>(base), static_cast<T *>(whole));
}

template <class T>
void add_as(const pc__cuda_picking *p, int packed, int64_t skip, int64_t chunk, const void *base, const void *picked,
            void *whole)
{
    if (packed)
        add_units<T, 16 / sizeof(T)>(p, skip, chunk, base, picked, whole);
    else
        add_units<T, 1>(p, skip, chunk, base, picked, whole);
}

} // namespace

void pc__cuda_add_few_places(const pc__cuda_picking *p, int dtype, int packed, int64_t skip, int64_t chunk,
                             const void *base, const void *picked, void *whole)
{
    switch (dtype) {
    case PC__CUDA_F16:
        return add_as<pc::f16>(p, packed, skip, chunk, base, picked, whole);
    case PC__CUDA_BF16:
        return add_as<pc::bf16>(p, packed, skip, chunk, base, picked, whole);
    default:
        return add_as<float>(p, packed, skip, chunk, base, picked, whole);
    }
}
