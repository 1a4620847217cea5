/* linear_tile.cuh: a tile of a product of floats or 16-bit numbers, c[row][column] = sum over k of a[row][k]
 * b[k][column], by a block.
 *
 * A warp makes 32 rows x 8 N columns on matrix units (shared/mma.cuh); warps lie side by side in the tile, or share it and
 * take turns along k. Operands are sent to shared memory (linear_operand.cuh), up to DEPTH of k in one go: what takes
 * time here is one wait after the other. Matrix units read floats that were 16-bit numbers whole, so that one product
 * does for three, and two where a gradient comes through an activation.
 *
 * What matrix units make NaN, because a factor is infinite or too large to be halved, is computed again in floats.
 *
 * Small kernels run their code once, and wait for it to arrive from memory as they do for data: it is kept short, with
 * loops that are not unrolled and one place for what is rare. */
#ifndef PC__CUDA_LINEAR_TILE_CUH
#define PC__CUDA_LINEAR_TILE_CUH

#include "cuda/matmul/linear_operand.cuh"

namespace
{

constexpr int EXACT = 64; /* of k, after which sums leave the matrix units, which cut them short */

/* One step of 8 along k, from shared memory at a and b. Without EXACT their numbers have 11 bits at most, but for
 * gradients, which come through an activation. */
template <class L, bool EXACT>
__device__ inline void step8(float (&sum)[2][L::N][4], const float *a, strides of_a, const float *b, strides of_b)
{
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, warp = threadIdx.x / 32 / L::WK;
    a += warp / L::WC * 32 * of_a.outers;
    b += warp % L::WC * 8 * L::N * of_b.outers;
#if TENSOR_UNITS
    a += g * of_a.outers + t * of_a.ks;
    b += g * of_b.outers + t * of_b.ks;
    halves<4> left[2];
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            left[h].template take<EXACT>(i, a[(h * 16 + i % 2 * 8) * of_a.outers + i / 2 * 4 * of_a.ks]);
    halves<2> right[L::N];
#pragma unroll
    for (int n = 0; n < L::N; n++)
#pragma unroll
        for (int i = 0; i < 2; i++)
            right[n].template take<EXACT>(i, b[n * 8 * of_b.outers + i * 4 * of_b.ks]);
#pragma unroll
    for (int pass = EXACT || L::TURNS ? 0 : 2; pass < 3; pass += EXACT ? 1 : 2)
#pragma unroll
        for (int n = 0; n < L::N; n++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                add_tensor(sum[h][n], pass == 0 ? left[h].low : left[h].high, pass == 1 ? right[n].low : right[n].high);
#else
    for (int d = 0; d < 8; d++)
        for (int h = 0; h < 2; h++)
            for (int n = 0; n < L::N; n++)
                for (int i = 0; i < 4; i++)
                    sum[h][n][i] += a[(h * 16 + i / 2 * 8 + g) * of_a.outers + d * of_a.ks] *
                                    b[(n * 8 + t * 2 + i % 2) * of_b.outers + d * of_b.ks];
#endif
}

template <class L, class T> struct tile {
    typedef operands<L, T> sides;
    static constexpr int PLAIN = sides::most(sides::A + sides::B, L::TILE *L::WK),
                         GRADIENT = sides::most(2 * sides::A + sides::B, L::TILE *L::WK);

    /* The tile at (row, column), over k in [from, to): give(r, c, i, value, there) for each four of its elements, of
     * which (r, c) is number i and `there` exist. PLAIN floats at `memory`, or GRADIENT where a goes through an
     * activation. Each thread calls also(at, of, deep) for every part of a in shared memory, `deep` of k. The first of
     * b is read before the kernel in front is done where that is `ready` (shared/dependent_launch.cuh); all else waits for it here. */
    template <class Also, class Give>
    static __device__ void run(const source<T> &a, const source<T> &b, bool ready, int activation, int row, int column,
                               int from, int to, float *memory, const Also &also, const Give &give)
    {
        int ahead = ready && sides::passes(b);
        if (from >= to)
            pc::wait_for_earlier();
        float sum[2][L::N][4] = {}, total[2][L::N][4] = {};
        const strides of_a = sides::strides_of(a, L::ROWS), of_b = sides::strides_of(b, L::COLUMNS);
#pragma unroll 1
        for (int k = from; k < to; k += L::DEPTH) {
            const int deep = min(L::DEPTH, (to - k + L::GROUP - 1) / L::GROUP * L::GROUP);
            sides::fetch(a, b, activation, row, column, k, deep, to, memory, ahead);
            ahead = -1;
            __syncthreads();
            also(memory, of_a, deep);
#pragma unroll 1
            for (int d = threadIdx.x / 32 % L::WK * 8; d < deep; d += L::GROUP) {
                step8<L, sides::IS_FLOAT>(sum, memory + d * of_a.ks, of_a, memory + sides::A + d * of_b.ks, of_b);
                if ((d / L::GROUP + 1) % (EXACT / 8) == 0)
                    collect(sum, total);
            }
            __syncthreads();
        }
        collect(sum, total);
        put(total, memory);
        __syncthreads();
#pragma unroll 1
        for (int i = threadIdx.x * 4; i < L::TILE; i += THREADS * 4) {
            const int r = row + i / L::COLUMNS, c = column + i % L::COLUMNS;
            const int there = r < a.outers ? b.outers - c : 0;
            float4 *const four = reinterpret_cast<float4 *>(memory + i);
            float4 value = *four;
#pragma unroll
            for (int w = 1; w < L::WK; w++)
                value = sum_of(value, *reinterpret_cast<float4 *>(memory + w * L::TILE + i));
            if (there <= 0)
                continue;
            if (any_nan(value)) {
                *four = value;
#pragma unroll 1
                for (int j = 0; j < min(there, 4); j++)
                    if (memory[i + j] != memory[i + j])
                        memory[i + j] = again(a, b, activation, r, c + j, from, to);
                value = *four;
            }
            give(r, c, i, value, there);
        }
    }

  private:
    static __device__ void collect(float (&sum)[2][L::N][4], float (&total)[2][L::N][4])
    {
#pragma unroll
        for (int e = 0; e < 8 * L::N; e++) {
            (&total[0][0][0])[e] += (&sum[0][0][0])[e];
            (&sum[0][0][0])[e] = 0;
        }
    }

    /* The warps' sums, one after the other where they share the tile. */
    static __device__ void put(const float (&total)[2][L::N][4], float *memory)
    {
        const int warp = threadIdx.x / 32 / L::WK, lane = threadIdx.x % 32;
        const int row = warp / L::WC * 32 + lane / 4, column = warp % L::WC * 8 * L::N + lane % 4 * 2;
        float *to = memory + threadIdx.x / 32 % L::WK * L::TILE + row * L::COLUMNS + column;
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int n = 0; n < L::N; n++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    to[(h * 16 + i / 2 * 8) * L::COLUMNS + n * 8 + i % 2] = total[h][n][i];
    }

    static __device__ bool any_nan(float4 v)
    {
        return v.x != v.x || v.y != v.y || v.z != v.z || v.w != v.w;
    }

    static __device__ float again(const source<T> &a, const source<T> &b, int activation, int row, int column, int from,
                                  int to)
    {
        float value = 0;
#pragma unroll 1
        for (int k = from; k < to; k++)
            value += element(a, activation, row, k) * element(b, 0, column, k);
        return value;
    }
};

} // namespace

#endif
