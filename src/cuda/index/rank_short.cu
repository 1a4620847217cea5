/* rank_short.cu: sorts along a dimension, of lists that fit into a block's memory: as many lists as a block has room for, read
 * and written in the order in which they lie. */
#include "cuda/index/rank_item.cuh"
#include "cuda/shared/dependent_launch.cuh"

namespace
{

constexpr int TILE = PC__CUDA_TILE, THREADS = TILE / 4;

/* The lists of a block. Where the elements of one are `inner` apart, neighbours in memory are of neighbouring lists, and so
 * they lie in the tile, too. */
struct bundle {
    int64_t outer, rest; /* of the first one */
    unsigned lists, shift;
    bool turned;

    __device__ __forceinline__ unsigned list(unsigned t) const
    {
        return turned ? t & ((1u << shift) - 1) : t >> shift;
    }
    __device__ __forceinline__ unsigned element(unsigned t) const
    {
        return turned ? t >> shift : t & ((1u << shift) - 1);
    }
    /* Where a list begins in a tensor of so many elements along the dimension. */
    __device__ __forceinline__ int64_t begin(unsigned list, int64_t along, int64_t inner) const
    {
        if (inner == 1)
            return (outer + list) * along;
        const int64_t at = rest + list, further = at < inner ? 0 : quotient(at, inner);
        return (outer + further) * along * inner + (at - further * inner);
    }
};

__device__ __forceinline__ unsigned bits_of(unsigned power)
{
    return __popc(power - 1);
}

__device__ __forceinline__ bundle bundle_of(const pc__cuda_ranking &p)
{
    const int64_t first = blockIdx.x * p.packed, outer = quotient(first, p.inner);
    const unsigned lists = static_cast<unsigned>(min(p.packed, p.lists - first));
    const bool turned = p.inner > 1;
    return {outer, first - outer * p.inner, lists, bits_of(static_cast<unsigned>(turned ? p.packed : p.tile)), turned};
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    sort_short(const __grid_constant__ pc__cuda_ranking p, const T *from, T *values, int64_t *places)
{
    typedef item<T> I;
    __shared__ I tile[TILE];
    const bundle b = bundle_of(p);
    const unsigned length = static_cast<unsigned>(p.tile), packed = static_cast<unsigned>(p.packed);
    const unsigned size = length * packed, n = static_cast<unsigned>(p.n), count = static_cast<unsigned>(p.count);
    pc::wait_for_earlier();
    for (unsigned t = threadIdx.x; t < size; t += blockDim.x) {
        const unsigned list = b.list(t), i = b.element(t);
        tile[t] = I::last();
        if (list < b.lists && i < n)
            tile[t] = I::of(key_of(from[b.begin(list, n, p.inner) + i * p.inner]), i, p.descending);
    }
    sort_tile(tile, size, b.turned ? packed : 1, length);
    for (unsigned t = threadIdx.x; t < size; t += blockDim.x) {
        const unsigned list = b.list(t), i = b.element(t);
        if (list >= b.lists || i >= count)
            continue;
        const unsigned place = tile[t].place();
        const int64_t to = b.begin(list, count, p.inner) + i * p.inner;
        values[to] = from[b.begin(list, n, p.inner) + place * p.inner];
        places[to] = place;
    }
}

template <class T> struct ranked {
    static void run(const pc__cuda_ranking *p, const void *from, void *values, int64_t *places)
    {
        const int64_t fours = p->tile * p->packed / 4;
        pc::start(sort_short<T>, static_cast<unsigned>((p->lists + p->packed - 1) / p->packed),
                  static_cast<unsigned>(fours < 32 ? 32 : fours), p->queue, p->early, *p, static_cast<const T *>(from),
                  static_cast<T *>(values), places);
    }
};

} // namespace

void pc__cuda_rank_short(const pc__cuda_ranking *p, const void *from, void *values, int64_t *places)
{
    by_key<ranked>(p->dtype, p, from, values, places);
}
