/* score.cuh: from products of queries and keys to weights, one by one: scale, mask, triangle, dropout. */
#ifndef PC__CUDA_ATTENTION_SCORE_CUH
#define PC__CUDA_ATTENTION_SCORE_CUH

#include "base/philox.h"
#include "cuda/attention/attention.h"
#include "cuda/shared/half.cuh"
#include "cuda/shared/real.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

/* at[n] = the first element of matrix i, of a batch of fewer than 2^31, in *of[n]. */
template <int N>
__device__ inline void find_matrices(const pc__cuda_attention &a, const pc__cuda_matrices *const (&of)[N], unsigned i,
                                     int64_t (&at)[N])
{
#pragma unroll
    for (int n = 0; n < N; n++)
        at[n] = 0;
#pragma unroll 1
    for (int d = a.dims - 1; d > 0; d--) {
        const unsigned size = static_cast<unsigned>(a.shape[d]), outer = i / size, inner = i - outer * size;
#pragma unroll
        for (int n = 0; n < N; n++)
            at[n] += inner * of[n]->batch[d];
        i = outer;
    }
#pragma unroll
    for (int n = 0; n < N; n++)
        at[n] += i * of[n]->batch[0];
}

/* The first element of matrix i of the batch. */
template <class T> __device__ inline T *matrix(const pc__cuda_attention &a, const pc__cuda_matrices &m, int64_t i)
{
    const pc__cuda_matrices *const of[] = {&m};
    int64_t at[1];
    find_matrices(a, of, static_cast<unsigned>(i), at);
    return static_cast<T *>(m.data) + at[0];
}

/* Of one matrix of the batch; R: the type that scores have. */
template <class R> struct scoring {
    const pc__cuda_attention &a;
    R scale, kept;
    int64_t first_row; /* of the batch's rows, that of query 0 */
    const bool *allowed;
    const R *added;
    uint64_t stream;
    unsigned least;

    __device__ scoring(const pc__cuda_attention &of, int64_t batch)
        : a(of), scale(static_cast<R>(of.scale)), kept(of.p < 1 ? static_cast<R>(1 / (1 - of.p)) : R(0)),
          first_row(batch * of.l), allowed(nullptr), added(nullptr), stream(of.stream),
          least(static_cast<unsigned>(ceil(of.p * 0x1p24)))
    {
        if (of.mask.data && of.mask_is_bool)
            allowed = matrix<bool>(of, of.mask, batch);
        else if (of.mask.data)
            added = matrix<R>(of, of.mask, batch);
        if (of.p > 0 && of.base)
            stream += 4 * *of.base;
    }

    __device__ bool is_seen(int query, int key) const
    {
        return query < a.l && key < a.s && !(a.causal && key > query);
    }

    /* The score of a product, minus infinity where the query does not attend to the key. */
    __device__ R of(R product, int query, int key) const
    {
        const R none = -static_cast<R>(INFINITY);
        if (!is_seen(query, key))
            return none;
        const int64_t at = query * a.mask.row + key * a.mask.column;
        if (allowed)
            return allowed[at] ? product * scale : none;
        return added ? product * scale + added[at] : product * scale;
    }

    /* What a dropout multiplies a weight by. */
    __device__ R factor(int query, int key) const
    {
        const int64_t block = (first_row + query) * ((a.s + 3) / 4) + key / 4;
        const pc__words drawn = pc__philox(a.seed, stream, static_cast<uint64_t>(block));
        const unsigned word = key % 4 == 0   ? drawn.w[0]
                              : key % 4 == 1 ? drawn.w[1]
                              : key % 4 == 2 ? drawn.w[2]
                                             : drawn.w[3];
        return (word >> 8) >= least ? kept : R(0);
    }
};

/* From weights [l][s] and their gradients to those of scores, in place of these; weights become what dropout leaves of them. A
 * warp has a query. */
template <int WARPS, class R>
__device__ inline void find_slopes(const pc__cuda_attention &a, const scoring<R> &score, R *weights, R *slopes)
{
    const int lane = threadIdx.x % 32;
    for (int i = threadIdx.x / 32; i < a.l; i += WARPS) {
        R mean = 0;
        for (int n = i * a.s + lane; n < (i + 1) * a.s; n += 32)
            mean += weights[n] * slopes[n];
        mean = warp_join<plus>(mean);
        for (int n = i * a.s + lane; n < (i + 1) * a.s; n += 32) {
            slopes[n] = weights[n] * (slopes[n] - mean);
            weights[n] = a.p > 0 ? weights[n] * score.factor(i, n - i * a.s) : weights[n];
        }
    }
}

/* Whether a row is whole packs of so many numbers, each of which lies on so many bytes. */
inline bool lies_in_packs(const pc__cuda_attention *a, const pc__cuda_matrices *m, int size, int pack, size_t bytes)
{
    bool whole = size % pack == 0 && m->column == 1 && m->row % pack == 0;
    for (int d = 0; d < a->dims; d++)
        whole &= m->batch[d] % pack == 0;
    return whole && reinterpret_cast<uintptr_t>(m->data) % bytes == 0;
}

/* Keys, from the first tile of so many on, that one of the queries before `end` attends to; and the first query, in whole
 * tiles, that attends to one of the keys from `key` on. */
__device__ inline int keys_before(const pc__cuda_attention &a, int end)
{
    return a.causal && end < a.s ? end : a.s;
}

__device__ inline int first_query(const pc__cuda_attention &a, int key, int tile)
{
    return a.causal ? key / tile * tile : 0;
}

} // namespace

#endif
