/* outer.cu: products with sums of at most 16, which are outer products, a few of them added up. The result is larger than
 * both operands, so that writing it takes the time: a thread holds its columns of b for all its rows, and writes 16 bytes
 * an access where rows of the result lie so; a's rows lie in shared memory. Blocks are as many as fit at once, for each brings
 * its columns of b first; where these lie along k, as weights do, by shared memory, so that neighbours are read together. */
#include "cuda/matmul/outer.h"

#include "cuda/matmul/spread.cuh"
#include "cuda/shared/activations.cuh"
#include "cuda/shared/dependent_launch.cuh"

namespace
{

constexpr int THREADS = 256, LANES = 32;

/* Of a thread with sums of K elements T: columns, of b too, which its registers hold; blocks of a multiprocessor; floats in
 * shared memory, of a's rows or b's columns. */
template <class T, int K> struct sizes {
    static constexpr int PACK = 16 / sizeof(T), V = PACK * K > 64 ? 64 / K : PACK;
    static constexpr int BLOCKS = V * K >= 32 ? 2 : V * K > 8 ? 3 : 4, HELD = K > 8 ? 8192 : 4096;
};

struct outer {
    pc__cuda_gemm g;
    bool wide, wide_b;  /* packs of the result, and of b, lie on their size */
    bool along_k;       /* neighbours of b in memory are along k */
    bool columns_first; /* of a: neighbours in memory are along m */
    int across;         /* threads side by side along a row */
    int rows;           /* a block's */
    int row_blocks, column_blocks;
};

/* Threads `across` lines of which lie one below the other; `step` is the way from an element of a pack to the next. */
template <class T, int K, int V> struct columns {
    float b[K][V], bias[V];
    int first, step, live; /* columns of the result */

    __device__ __forceinline__ columns(const outer &p, long long batch, int block, float *held)
    {
        const pc__cuda_gemm &g = p.g;
        const int x = threadIdx.x % p.across, begin = block * p.across * V, left = (int)g.n - begin;
        step = p.wide ? 1 : p.across;
        first = begin + (p.wide ? x * V : x);
        live = p.wide ? (x * V < left ? V : 0) : (left - x + step - 1) / step;
        const T *from = static_cast<const T *>(g.b) + batch * g.b_batch;
        if (p.along_k)
            turn(p, from + begin * g.b_cs, min(left, p.across * V), first - begin, held);
        else
            bring(p, from + first * g.b_cs);
#pragma unroll
        for (int v = 0; v < V; v++)
            bias[v] = g.bias && v < live ? float(static_cast<const T *>(g.bias)[first + v * step]) : 0.0f;
    }

    __device__ __forceinline__ void bring(const outer &p, const T *from)
    {
        const pc__cuda_gemm &g = p.g;
        vector<T, V> some[K];
        read(some, from, g.b_rs, step * g.b_cs, p.wide_b, live == V && g.k == K,
             [&](int k) { return k < g.k ? live : 0; });
#pragma unroll
        for (int k = 0; k < K; k++)
#pragma unroll
            for (int v = 0; v < V; v++)
                b[k][v] = float(some[k].at[v]);
    }

    /* The block's columns, `count` of them, as many at a time as shared memory holds, of which the thread's first is `own`. */
    __device__ __forceinline__ void turn(const outer &p, const T *from, int count, int own, float *held)
    {
        constexpr int PITCH = K + 1, AT_ONCE = 8, MOST = sizes<T, K>::HELD / PITCH / 32 * 32;
        const pc__cuda_gemm &g = p.g;
#pragma unroll 1
        for (int done = 0; done < count; done += MOST) {
            const int some = min(count - done, MOST);
            if (done)
                __syncthreads();
#pragma unroll 1
            for (int i = threadIdx.x; i < some * K; i += THREADS * AT_ONCE) {
                T x[AT_ONCE]; /* all under way before one is used */
#pragma unroll
                for (int u = 0; u < AT_ONCE; u++) {
                    const int at = i + u * THREADS, column = at / K, k = at % K;
                    x[u] = k < g.k && column < some ? from[(done + column) * g.b_cs + k * g.b_rs] : T(0.0f);
                }
#pragma unroll
                for (int u = 0; u < AT_ONCE; u++) {
                    const int at = i + u * THREADS;
                    if (at < some * K)
                        held[at / K * PITCH + at % K] = float(x[u]);
                }
            }
            __syncthreads();
#pragma unroll
            for (int v = 0; v < V; v++) {
                const int column = own + v * step - done;
                if (column >= 0 && column < some)
#pragma unroll
                    for (int k = 0; k < K; k++)
                        b[k][v] = held[column * PITCH + k];
            }
        }
        __syncthreads();
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

template <class T, int K>
__global__ void __launch_bounds__(THREADS, sizes<T, K>::BLOCKS) outer_kernel(const __grid_constant__ outer p)
{
    constexpr int V = sizes<T, K>::V, F = K < 4 ? K : 4;
    __shared__ alignas(16) float held[sizes<T, K>::HELD];
    const pc__cuda_gemm &g = p.g;
    const int column_block = blockIdx.x % p.column_blocks, rest = blockIdx.x / p.column_blocks;
    const long long batch = rest / p.row_blocks, first = (long long)(rest % p.row_blocks) * p.rows;
    const int rows = (int)min((long long)p.rows, g.m - first), below = THREADS / p.across;
    pc::wait_for_earlier();
    const columns<T, K, V> own(p, batch, column_block, held);
    hold<T, K>(p, static_cast<const T *>(g.a) + batch * g.a_batch + first * g.a_rs, rows, held);
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
    constexpr int V = sizes<T, K>::V, most = sizes<T, K>::HELD / K;
    outer p = {};
    p.g = *g;
    p.wide = g->n % V == 0 && (uintptr_t)g->c % 16 == 0;
    p.wide_b = p.wide && g->b_cs == 1 && (g->k == 1 || g->b_rs % V == 0) && (g->batch == 1 || g->b_batch % V == 0) &&
               (uintptr_t)g->b % (V * sizeof(T)) == 0;
    p.columns_first = g->a_rs == 1 && g->a_cs != 1;
    p.along_k = g->b_cs != 1 && g->k > 1;
    const int packs = parts(g->n, V), line = g->n < LANES ? (int)g->n : LANES;
    p.across = p.wide || packs > line ? packs : line;
    const int side = p.along_k ? THREADS / 4 : THREADS; /* what shared memory holds at a time, and soon */
    p.across = p.across < side ? p.across : side;
    p.column_blocks = parts(g->n, (long long)p.across * V);
    const int below = THREADS / p.across;
    const long long at_once = (long long)sizes<T, K>::BLOCKS * multiprocessors;
    const long long wanted = parts(parts(g->m * g->batch * p.column_blocks, at_once), below) * (long long)below;
    p.rows = (int)(wanted < most ? wanted : most);
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
    return g->dtype != PC__CUDA_F64 && g->k > 0 && g->k <= 16 && g->m < most && g->n < most && g->batch < most &&
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

/* Measured on an H200, 506 drawn products beside cuBLASLt's: few of k keep up with the memory. With TF32 and 16-bit numbers
 * matrix units, which cuBLASLt has, gain for more of k; but where an access of 16 bytes is not whole it is slow, with an activation
 * behind the sum most of all. */
bool pc__cuda_outer_suits(const pc__cuda_gemm *g, bool tf32)
{
    enum { TINY = 1 << 16, SMALL = 1 << 20, LARGE = 1 << 23, PACK = 4, FEW = 64 /* results of a block */ };
    const bool floats = g->dtype == PC__CUDA_F32, activated = g->activation != ACTIVATION_NONE;
    const double bytes = (double)g->batch * (double)g->m * (double)g->n * (floats || g->wide ? 4 : 2);
    if (bytes <= TINY) /* a launch, and theirs is the longer one */
        return floats && g->k <= 8 && g->b_cs == 1;
    if (g->batch > 1 && g->m * g->n < FEW)
        return false;
    if (tf32)
        return g->k <= 4 ||
               ((g->n % PACK || g->k % PACK) && (activated ? g->k <= 8 || bytes < SMALL : g->k <= 8 && g->n >= 1024));
    if (floats)
        return g->k <= 2 || (activated && g->k <= 8) || (bytes >= LARGE && (g->k <= 4 || g->n >= 512));
    if (bytes >= LARGE && g->k <= 8)
        return g->k <= 4 || g->n >= 2048;
    return g->k <= 2 ? g->n >= 256 : g->k <= 4 && (g->n >= 160 || bytes < SMALL);
}
