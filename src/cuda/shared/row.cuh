/* row.cuh: rows that begin anywhere in memory, read 16 bytes an access by some threads: what lies in front of the first
 * boundary of 16 bytes, and behind the last, goes by single elements. */
#ifndef PC__CUDA_ROW_CUH
#define PC__CUDA_ROW_CUH

#include "cuda/shared/half.cuh"

namespace pc
{

/* 16 bytes */
template <class T> struct alignas(16) row_pack {
    static constexpr int size = 16 / sizeof(T);
    T at[size];
};

/* f(neighbours, the first one's place) for what falls to thread `mine` of `threads` of row[n], n below 2^31; one element
 * or a pack of them, an array each. Those of a thread come in ascending order, AT_ONCE packs of it under way. */
template <int AT_ONCE, class T, class F>
__device__ __forceinline__ void each_in_row(const T *row, unsigned n, unsigned mine, unsigned threads, F &&f)
{
    typedef row_pack<T> pack;
    const unsigned before = static_cast<unsigned>(-reinterpret_cast<intptr_t>(row) & 15) / sizeof(T);
    const unsigned head = before < n ? before : n, packs = (n - head) / pack::size;
    const pack *body = reinterpret_cast<const pack *>(row + head);
    for (unsigned k = mine; k < head; k += threads)
        f(reinterpret_cast<const T(&)[1]>(row[k]), k);
    unsigned i = mine;
#pragma unroll 1
    for (; i + (AT_ONCE - 1) * threads < packs; i += AT_ONCE * threads) {
        pack x[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            x[u] = body[i + u * threads];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            f(x[u].at, head + (i + u * threads) * pack::size);
    }
    pack x[AT_ONCE - 1];
#pragma unroll
    for (int u = 0; u < AT_ONCE - 1; u++)
        if (i + u * threads < packs)
            x[u] = body[i + u * threads];
#pragma unroll
    for (int u = 0; u < AT_ONCE - 1; u++)
        if (i + u * threads < packs)
            f(x[u].at, head + (i + u * threads) * pack::size);
    for (unsigned k = head + packs * pack::size + mine; k < n; k += threads)
        f(reinterpret_cast<const T(&)[1]>(row[k]), k);
}

} // namespace pc

#endif
