/* outer.cu: products with sums of at most 16, which are outer products, a few of them added up. The result is larger than
 * both operands, so that writing it takes the time: a thread holds its columns of b for all its rows, and writes 16 bytes
 * an access where rows of the result lie so; a's rows lie in shared memory. */
#include "cuda/matmul/outer.h"

#include "cuda/matmul/spread.cuh"
#include "cuda/shared/activations.cuh"
#include "cuda/shared/dependent_launch.cuh"

namespace
{

constexpr int THREADS = 256, LANES = 32, HELD = 4096; /* floats of a in shared memory */
constexpr int BLOCKS = 8;                             /* for each multiprocessor, where rows are many */
constexpr int ROWS_LEAST = 8;                         /* of a thread, for its columns of b */

struct outer {
    pc__cuda_gemm g;
    bool wide, wide_b;  /* packs of the result, and of b, lie on their size */
    bool columns_first; /* of a: neighbours in memory are along m */
    int across;         /* threads side by side along a row */
    int rows;           /* a block's */
    int row_blocks, column_blocks;
};

/* Threads `across` lines of which lie one below the other; `step` is the way from an element of a pack to the next. */
template <class T, int K, int V> struct columns {
    float b[K][V], bias[V];
    int first, step, live; /* columns of the result */

    __device__ __forceinline__ columns(const outer &p, long long batch, int block)
    {
        const pc__cuda_gemm &g = p.g;
        const int x = threadIdx.x % p.across, begin = block * p.across * V, left = (int)g.n - begin;
        step = p.wide ? 1 : p.across;
        first = begin + (p.wide ? x * V : x);
        live = p.wide ? (x * V < left ? V : 0) : (left - x + step - 1) / step;
        const T *from = static_cast<const T *>(g.b) + batch * g.b_batch + first * g.b_cs;
        vector<T, V> some[K];
        read(some, from, g.b_rs, step * g.b_cs, p.wide_b, live == V && g.k == K,
             [&](int k) { return k < g.k ? live : 0; });
#pragma unroll
        for (int k = 0; k < K; k++)
#pragma unroll
            for (int v = 0; v < V; v++)
                b[k][v] = float(some[k].at[v]);
#pragma unroll
        for (int v = 0; v < V; v++)
            bias[v] = g.bias && v < live ? float(static_cast<const T *>(g.bias)[first + v * step]) : 0.0f;
    }

    template <class O> __device__ __forceinline__ void give(const outer &p, O *row, const float (&sum)[V]) const
    {
        if (p.wide) {
            vector<O, V> all;
#pragma unroll
            for (int v = 0; v < V; v++)
                all.at[v] = O(sum[v]);
            *reinterpret_cast<vector<O, V> *>(row + first) = all;
            return;
        }
#pragma unroll
        for (int v = 0; v < V; v++)
            if (v < live)
                row[first + v * step] = O(sum[v]);
    }
};

/* a's rows, to held[row][k] with zeros behind the last k. */
template <class T, int K> __device__ __forceinline__ void hold(const outer &p, const T *a, int rows, float *held)
{
    constexpr int AT_ONCE = 4;
#pragma unroll 1
    for (int first = threadIdx.x; first < rows * K; first += THREADS * AT_ONCE) {
        T x[AT_ONCE]; /* all under way before one is used */
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const int i = first + u * THREADS;
            const int row = p.columns_first ? i % rows : i / K, k = p.columns_first ? i / rows : i % K;
            x[u] = k < p.g.k && row < rows ? a[row * p.g.a_rs + k * p.g.a_cs] : T(0.0f);
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const int i = first + u * THREADS;
            if (i < rows * K)
                held[p.columns_first ? i % rows * K + i / rows : i] = float(x[u]);
        }
    }
}

template <class T, int K> __global__ void __launch_bounds__(THREADS, 2) outer_kernel(const __grid_constant__ outer p)
{
    constexpr int PACK = 16 / sizeof(T), V = PACK * K > 64 ? 64 / K : PACK, F = K < 4 ? K : 4;
    __shared__ alignas(16) float held[HELD];
    const pc__cuda_gemm &g = p.g;
    const int column_block = blockIdx.x % p.column_blocks, rest = blockIdx.x / p.column_blocks;
    const long long batch = rest / p.row_blocks, first = (long long)(rest % p.row_blocks) * p.rows;
    const int rows = (int)min((long long)p.rows, g.m - first), below = THREADS / p.across;
    pc::wait_for_earlier();
    hold<T, K>(p, static_cast<const T *>(g.a) + batch * g.a_batch + first * g.a_rs, rows, held);
    const columns<T, K, V> own(p, batch, column_block);
    __syncthreads();
    if (own.live <= 0 || (int)threadIdx.x >= below * p.across)
        return;
#pragma unroll 2
    for (int row = threadIdx.x / p.across; row < rows; row += below) {
        float sum[V] = {};
#pragma unroll
        for (int k = 0; k < K; k += F) {
            const vector<float, F> a = *reinterpret_cast<const vector<float, F> *>(held + row * K + k);
#pragma unroll
            for (int i = 0; i < F; i++)
#pragma unroll
                for (int v = 0; v < V; v++)
                    sum[v] = fmaf(a.at[i], own.b[k + i][v], sum[v]);
        }
        if (g.bias || g.activation)
#pragma unroll
            for (int v = 0; v < V; v++)
                sum[v] = activated(g.activation, sum[v] + own.bias[v]);
        const long long at = (batch * g.m + first + row) * g.n;
        if (g.wide)
            own.give(p, static_cast<float *>(g.c) + at, sum);
        else
            own.give(p, static_cast<T *>(g.c) + at, sum);
    }
}

int parts(long long n, long long size)
{
    return (int)((n + size - 1) / size);
}

template <class T, int K> void launch(cudaStream_t queue, const pc__cuda_gemm *g, int multiprocessors, int early)
{
    constexpr int PACK = 16 / sizeof(T), V = PACK * K > 64 ? 64 / K : PACK;
    outer p = {};
    p.g = *g;
    p.wide = g->n % V == 0 && (uintptr_t)g->c % 16 == 0;
    p.wide_b = p.wide && g->b_cs == 1 && (g->k == 1 || g->b_rs % V == 0) && (g->batch == 1 || g->b_batch % V == 0) &&
               (uintptr_t)g->b % (V * sizeof(T)) == 0;
    p.columns_first = g->a_rs == 1 && g->a_cs != 1;
    const int packs = parts(g->n, V), line = g->n < LANES ? (int)g->n : LANES;
    p.across = p.wide || packs > line ? packs : line;
    p.across = p.across < THREADS ? p.across : THREADS;
    p.column_blocks = parts(g->n, (long long)p.across * V);
    const int below = THREADS / p.across, most = HELD / K;
    const long long wanted = parts(g->m * g->batch * p.column_blocks, (long long)BLOCKS * multiprocessors);
    const long long least = (long long)below * ROWS_LEAST;
    p.rows = (int)(wanted < least ? least : wanted);
    p.rows = p.rows < most ? p.rows : most;
    p.row_blocks = parts(g->m, p.rows);
    (void)pc::start(outer_kernel<T, K>, (unsigned)(p.row_blocks * p.column_blocks * g->batch), THREADS, queue, early,
                    p);
}

template <class T> void of_type(cudaStream_t queue, const pc__cuda_gemm *g, int multiprocessors, int early)
{
    if (g->k <= 2)
        launch<T, 2>(queue, g, multiprocessors, early);
    else if (g->k <= 4)
        launch<T, 4>(queue, g, multiprocessors, early);
    else if (g->k <= 8)
        launch<T, 8>(queue, g, multiprocessors, early);
    else
        launch<T, 16>(queue, g, multiprocessors, early);
}

} // namespace

bool pc__cuda_outer_fits(const pc__cuda_gemm *g)
{
    const int64_t most = 1 << 29;
    return g->dtype != PC__CUDA_F64 && g->k > 0 && g->k <= 16 && g->m < most && g->n < most &&
           (double)g->batch * (double)g->m * (double)g->n < 1e11;
}

void pc__cuda_outer(cudaStream_t queue, const pc__cuda_gemm *g, int multiprocessors, int early)
{
    if (g->dtype == PC__CUDA_F32)
        of_type<float>(queue, g, multiprocessors, early);
    else if (g->dtype == PC__CUDA_F16)
        of_type<pc::f16>(queue, g, multiprocessors, early);
    else
        of_type<pc::bf16>(queue, g, multiprocessors, early);
}

/* Measured on an H200: plain products keep up with the memory for so many of k; matrix units, which cuBLASLt has 16-bit
 * numbers go to, for more. */
bool pc__cuda_outer_suits(const pc__cuda_gemm *g)
{
    const bool floats = g->dtype == PC__CUDA_F32;
    const double bytes = (double)g->batch * (double)g->m * (double)g->n * (floats || g->wide ? 4 : 2);
    if (bytes <= 1 << 16) /* a launch, and theirs is the longer one */
        return floats && g->k <= 8 && g->b_cs == 1;
    return g->n >= 64 && bytes >= 1 << 20 &&
           g->k <= (floats ? (bytes >= 32 << 20 ? 16 : 4) : (bytes >= 16 << 20 ? 5 : 3));
}
