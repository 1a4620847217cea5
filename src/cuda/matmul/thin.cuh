/* thin.cuh: the pieces of a product with few columns: thin.cu says how they go together. */
#ifndef PC__CUDA_THIN_CUH
#define PC__CUDA_THIN_CUH

#include "cuda/matmul/gemm.h"

#include "cuda/matmul/spread.cuh"
#include "cuda/shared/activations.cuh"

namespace
{

constexpr int LANES = 32, WARPS = 4, THREADS = WARPS * LANES;
constexpr int HELD = 8192;       /* floats of the few columns in shared memory */
constexpr int HOLD_AT_ONCE = 16; /* of these, a thread's loads */
constexpr int OWN = 64;          /* sums a thread holds */
constexpr int PLACE = LANES + 1; /* of the sums of a warp's lanes in shared memory: in different banks */

/* c[row][column] = sum over k of many[row][k] few[k][column], strides in elements. */
struct thin {
    const void *many, *few, *bias;
    void *c;
    long long many_row, many_k, many_batch, few_k, few_column, few_batch, c_row, c_column, c_batch;
    int rows, columns, k, activation;
    bool wide;        /* packs of `many` lie on their size */
    bool few_by_k;    /* few's neighbours in memory are along k */
    bool bias_rows;   /* a bias for each row: the product is a transposed one */
    bool floats;      /* c is float32 whatever the operands are */
    int k_bits;       /* of the number of a warp's lanes side by side along k; the others are along rows */
    int chunk_bits;   /* of the number of k whose few columns are held */
    int tiles;        /* of rows, a batch */
    int splits, each; /* parts of k */
};

/* The few columns of `size` of k from `from` on, to held[place(k, column)]: zeros behind the last of either. */
template <class T, int N, class P>
__device__ __forceinline__ void hold(const thin &p, const T *few, int from, int size, int padded, float *held, P place)
{
    const T *at = few + from * p.few_k;
    const int all = p.few_by_k ? N << p.chunk_bits : N * padded, mask = (1 << p.chunk_bits) - 1;
#pragma unroll 1
    for (int first = threadIdx.x; first < all; first += THREADS * HOLD_AT_ONCE) {
        T x[HOLD_AT_ONCE]; /* all under way before one is used */
#pragma unroll
        for (int u = 0; u < HOLD_AT_ONCE; u++) {
            const int i = first + u * THREADS, k = p.few_by_k ? i & mask : i / N;
            const int column = p.few_by_k ? i >> p.chunk_bits : i % N;
            x[u] = k < size && column < p.columns ? at[k * p.few_k + column * p.few_column] : T(0.0f);
        }
#pragma unroll
        for (int u = 0; u < HOLD_AT_ONCE; u++) {
            const int i = first + u * THREADS, k = p.few_by_k ? i & mask : i / N;
            const int column = p.few_by_k ? i >> p.chunk_bits : i % N;
            if (k < padded && column < N)
                held[place(k, column)] = float(x[u]);
        }
    }
}

template <class T> __device__ __forceinline__ void give(const thin &p, int batch, int row, int column, float sum)
{
    const long long at = batch * p.c_batch + row * p.c_row + column * p.c_column;
    const float bias = p.bias ? float(static_cast<const T *>(p.bias)[p.bias_rows ? row : column]) : 0.0f;
    const float value = activated(p.activation, sum + bias);
    if (p.floats)
        static_cast<float *>(p.c)[at] = value;
    else
        static_cast<T *>(p.c)[at] = T(value);
}

} // namespace

#endif
