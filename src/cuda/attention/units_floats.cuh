/* units_floats.cuh: products of tiles of float32 by matrix units, three for each (shared/mma.cuh). Of the eight numbers that a
 * matrix unit adds up at a time any order will do, if both factors have the same: sums of a product are the left factor of
 * the next as a lane has them, columns 2 t and 2 t + 1 where the unit says t and t + 4. */
#ifndef PC__CUDA_ATTENTION_UNITS_FLOATS_CUH
#define PC__CUDA_ATTENTION_UNITS_FLOATS_CUH

#include "cuda/shared/mma.cuh"

namespace
{

constexpr int EIGHT = 8;

#if TENSOR_UNITS

template <int N> __device__ inline void clear(float (&sums)[N][4])
{
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            sums[n][i] = 0;
}

constexpr int GROUP = 4; /* eights of columns whose sums take turns */

/* sums[16][8 G] += left[16][8] right[8][8 G]. Sums take turns, for each product waits for the one before it. */
template <int G> __device__ inline void add_threes(float (*sums)[4], const halves<4> &left, const halves<2> (&right)[G])
{
#pragma unroll
    for (int pass = 0; pass < 3; pass++)
#pragma unroll
        for (int n = 0; n < G; n++)
            add_tensor(sums[n], pass == 0 ? left.low : left.high, pass == 1 ? right[n].low : right[n].high);
}

/* sums[16][N] = the warp's rows of `mine` times rows of `theirs`, N of them; all of D numbers, P apart. */
template <int D, int N, int P>
__device__ inline void multiply_floats(const float *mine, const float *theirs, float (&sums)[N / EIGHT][4])
{
    constexpr int G = N / EIGHT < GROUP ? N / EIGHT : GROUP;
    const int lane = threadIdx.x % 32, at = lane / 4 * P + lane % 4;
    clear(sums);
#pragma unroll
    for (int e = 0; e < D; e += EIGHT) {
        halves<4> left;
#pragma unroll
        for (int i = 0; i < 4; i++)
            left.template take<true>(i, mine[at + i % 2 * EIGHT * P + e + i / 2 * 4]);
#pragma unroll
        for (int n = 0; n < N / EIGHT; n += G) {
            halves<2> right[G];
#pragma unroll
            for (int k = 0; k < 2 * G; k++)
                right[k / 2].template take<true>(k % 2, theirs[at + (n + k / 2) * EIGHT * P + e + k % 2 * 4]);
            add_threes<G>(&sums[n], left, right);
        }
    }
}

/* sums[16][D] += weights[16][N] times rows of `theirs`, N of them, P apart. */
template <int D, int N, int P>
__device__ inline void add_floats(const float (&weights)[N / EIGHT][4], const float *theirs,
                                  float (&sums)[D / EIGHT][4])
{
    constexpr int G = GROUP;
    const int lane = threadIdx.x % 32, at = lane % 4 * 2 * P + lane / 4;
#pragma unroll
    for (int k = 0; k < N / EIGHT; k++) {
        halves<4> left;
#pragma unroll
        for (int i = 0; i < 4; i++)
            left.template take<true>(i, weights[k][i % 2 * 2 + i / 2]);
#pragma unroll
        for (int e = 0; e < D / EIGHT; e += G) {
            halves<2> right[G];
#pragma unroll
            for (int n = 0; n < 2 * G; n++)
                right[n / 2].template take<true>(n % 2, theirs[at + (k * EIGHT + n % 2) * P + (e + n / 2) * EIGHT]);
            add_threes<G>(&sums[e], left, right);
        }
    }
}
#endif

} // namespace

#endif
