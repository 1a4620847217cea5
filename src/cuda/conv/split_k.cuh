/* split_k.cuh: sums cut into parts (split-K). Where a product has fewer tiles than the chip holds blocks, each block would
 * walk alone along a sum of hundreds of steps. So several make a part of a tile's sums each, and the one that comes last
 * adds them up, always in the same order. */
#ifndef PC__CUDA_CONV_SPLIT_K_CUH
#define PC__CUDA_CONV_SPLIT_K_CUH

#include "cuda/conv/conv.h"
#include "cuda/shared/last_block.cuh"

namespace
{

constexpr int LEAST_STEPS = 8; /* that a part of a large tile is worth */

/* What a call has for parts of sums; the counters are PC__CUDA_CONV_COUNTERS zeros. */
struct parts_memory {
    float *partials;
    unsigned *counters;
};

/* Part p is of the steps from p * steps on, `steps` of them or what is left. */
struct split_k {
    int splits, steps;
    parts_memory in;
};

/* A product as a kernel makes it: tiles in all, floats of one's sums, steps of the longest sum, the fewest worth a block,
 * and blocks that are on the chip at once. */
struct cut_tiles {
    long long tiles;
    int floats, steps, least, at_once;
    int join; /* steps in which a block could leave its part, and one more for each that is read again; 0: no more parts than
                 fill the chip once */
};

/* In steps: the chip takes blocks in rounds, the last of which may be nearly empty. */
inline long long time_of(const cut_tiles &t, int splits)
{
    const long long rounds = (t.tiles * splits + t.at_once - 1) / t.at_once;
    return rounds * ((t.steps + splits - 1) / splits + (splits > 1 ? t.join + splits : 0));
}

inline int splits_of(const cut_tiles &t)
{
    enum { MOST = 4, BYTES = 64 << 20 }; /* beyond what fills the chip once */
    const int most = t.steps / t.least, wanted = (int)(t.at_once / t.tiles);
    if (wanted >= 2)
        return wanted < most ? wanted : most;
    int best = 1;
    const long long each = t.tiles * t.floats * (long long)sizeof(float);
    for (int splits = 2; t.join && splits <= MOST && splits <= most && splits * each <= BYTES; splits++)
        if (time_of(t, splits) * 10 < time_of(t, best) * 9)
            best = splits;
    return best;
}

inline split_k split_of(const cut_tiles &t, const parts_memory &in)
{
    if (t.tiles < 1 || t.tiles > PC__CUDA_CONV_COUNTERS || t.steps / t.least < 2)
        return {1, t.steps, in};
    const int splits = splits_of(t), each = (t.steps + splits - 1) / splits;
    return {(t.steps + each - 1) / each, each, in};
}

/* Bytes of the partials, in whole 256. */
inline size_t partial_bytes(const cut_tiles &t)
{
    const split_k k = split_of(t, {});
    return k.splits > 1 ? ((size_t)t.tiles * k.splits * t.floats * sizeof(float) + 255) / 256 * 256 : 0;
}

/* `sum`: FOURS * 4 of this thread's, of part `part` of this block's tile, of product `kind` in the grid. All threads of the
 * block call it, BLOCK of them; true in the block that comes last of the tile, whose sums are the whole ones now. Eight
 * loads are under way together. */
template <int FOURS, int BLOCK>
__device__ __forceinline__ bool join_parts(float *sum, const split_k &k, int kind, int part)
{
    const long long tile = ((long long)kind * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    constexpr int AT_ONCE = FOURS < 8 ? 8 / FOURS : 1; /* parts */
    float4 *first = reinterpret_cast<float4 *>(k.in.partials) + tile * k.splits * FOURS * BLOCK + threadIdx.x;
#pragma unroll
    for (int i = 0; i < FOURS; i++)
        first[(part * FOURS + i) * BLOCK] = make_float4(sum[i * 4], sum[i * 4 + 1], sum[i * 4 + 2], sum[i * 4 + 3]);
    if (!pc::comes_last(k.in.counters + tile, k.splits))
        return false;
#pragma unroll
    for (int i = 0; i < FOURS * 4; i++)
        sum[i] = 0;
#pragma unroll 1
    for (int p = 0; p < k.splits; p += AT_ONCE) {
        float4 more[AT_ONCE][FOURS];
#pragma unroll
        for (int i = 0; i < AT_ONCE * FOURS; i++)
            more[i / FOURS][i % FOURS] =
                p + i / FOURS < k.splits ? __ldcg(first + (p * FOURS + i) * BLOCK) : make_float4(0, 0, 0, 0);
#pragma unroll
        for (int i = 0; i < AT_ONCE * FOURS; i++) {
            const float4 value = more[i / FOURS][i % FOURS];
            float *to = sum + i % FOURS * 4;
            to[0] += value.x, to[1] += value.y, to[2] += value.z, to[3] += value.w;
        }
    }
    return true;
}

} // namespace

#endif
