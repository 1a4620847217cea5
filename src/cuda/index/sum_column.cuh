/* sum_column.cuh: sums of entries for one place, a unit of their rows each thread. */
#ifndef PC__CUDA_INDEX_SUM_COLUMN_CUH
#define PC__CUDA_INDEX_SUM_COLUMN_CUH

#include "cuda/index/rows.h"
#include "cuda/index/sum_of.cuh"
#include "cuda/shared/dependent_launch.cuh"

namespace
{

constexpr int THREADS = 256, BLOCKS = 4, MOST_LANES = 64;

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

/* Unit `at` of the columns, which are [outer][row]. */
template <class T, int N>
__device__ __forceinline__ column<T, N> column_of(const pc__cuda_picking &p, const T *base, const T *picked, T *whole,
                                                  int64_t at)
{
    typedef vector<T, N> V;
    const int64_t outer = at / p.row, unit = at - outer * p.row;
    const int64_t of_whole = outer * p.n * p.row + unit, of_picked = outer * p.count * p.row + unit;
    return {base ? reinterpret_cast<const V *>(base) + of_whole : nullptr,
            reinterpret_cast<const V *>(picked) + of_picked, whole ? reinterpret_cast<V *>(whole) + of_whole : nullptr,
            p.row};
}

/* Threads of a block that are side by side in a row: a power of two. */
inline unsigned lanes_for(int64_t columns)
{
    unsigned lanes = 1;
    while (lanes < MOST_LANES && lanes < columns)
        lanes *= 2;
    return lanes;
}

/* Way<T, N>::run(...) by the types that rows are made of. */
template <template <class, int> class Way, class T, class... A> void by_unit(int packed, A... arguments)
{
    if (packed)
        Way<T, 16 / sizeof(T)>::run(arguments...);
    else
        Way<T, 1>::run(arguments...);
}

template <template <class, int> class Way, class... A> void by_row(int dtype, int packed, A... arguments)
{
    switch (dtype) {
    case PC__CUDA_BOOL:
        return by_unit<Way, bool>(packed, arguments...);
    case PC__CUDA_U8:
        return by_unit<Way, uint8_t>(packed, arguments...);
    case PC__CUDA_I32:
        return by_unit<Way, uint32_t>(packed, arguments...);
    case PC__CUDA_I64:
        return by_unit<Way, uint64_t>(packed, arguments...);
    case PC__CUDA_F16:
        return by_unit<Way, pc::f16>(packed, arguments...);
    case PC__CUDA_BF16:
        return by_unit<Way, pc::bf16>(packed, arguments...);
    case PC__CUDA_F32:
        return by_unit<Way, float>(packed, arguments...);
    default:
        return by_unit<Way, double>(packed, arguments...);
    }
}

} // namespace

#endif
