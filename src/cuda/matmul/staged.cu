/* staged.cu: products with short sums and few results, of any strides. A block's rows of a and columns of b come to shared memory
 * whole, so that memory is waited for once; then each thread adds up its results in order of k, in floats. */
#include "cuda/matmul/staged.h"

#include "cuda/shared/activations.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/half.cuh"

namespace
{

constexpr int THREADS = 128, MANY = 4 /* results of a thread, where they are many */;
constexpr int COLUMNS_MOST = 32, COLUMNS_LEAST = 4, BLOCKS = 132;
constexpr int AT_ONCE = 4; /* a thread's loads of each operand */

struct staged {
    pc__cuda_gemm g;
    int columns, rows; /* a block's: columns a power of two, THREADS / columns threads one below the other */
    int row_tiles, column_tiles;
    unsigned by_k; /* 2^32 / k, rounded up: numbers below 2^16 are divided by a product; 0 for k of 1 */
};

/* Numbers i of [count][along] of an operand, its dimension of sums `along` or the other one fastest in memory. */
struct lying {
    bool along_k;
    int k, shift; /* 1 << shift others */
    unsigned by_k;

    __device__ __forceinline__ void place(int i, int &other, int &kk) const
    {
        if (along_k) {
            other = by_k ? static_cast<int>(__umulhi(static_cast<unsigned>(i), by_k)) : i;
            kk = i - other * k;
        } else {
            other = i & ((1 << shift) - 1), kk = i >> shift;
        }
    }
};

template <class T, int EACH> __global__ void __launch_bounds__(THREADS) staged_kernel(const __grid_constant__ staged p)
{
    extern __shared__ __align__(16) char shared[];
    const pc__cuda_gemm &g = p.g;
    const int k = static_cast<int>(g.k), pitch_a = k | 1, pitch_b = p.columns + 1;
    float *const held_a = reinterpret_cast<float *>(shared), *const held_b = held_a + p.rows * pitch_a;
    const int tile = blockIdx.x / p.column_tiles, batch = tile / p.row_tiles;
    const int row = (tile - batch * p.row_tiles) * p.rows, column = (blockIdx.x - tile * p.column_tiles) * p.columns;
    const int rows = min(p.rows, static_cast<int>(g.m) - row), columns = min(p.columns, static_cast<int>(g.n) - column);
    const T *a = static_cast<const T *>(g.a) + batch * g.a_batch + row * g.a_rs;
    const T *b = static_cast<const T *>(g.b) + batch * g.b_batch + column * g.b_cs;
    const lying of_a = {g.a_cs == 1, k, __popc(p.rows - 1), p.by_k};
    const lying of_b = {g.b_rs == 1 && g.b_cs != 1, k, __popc(p.columns - 1), p.by_k};
    const int all_a = p.rows * k, all_b = p.columns * k, most = max(all_a, all_b);
    pc::wait_for_earlier();
    for (int first = threadIdx.x; first < most; first += AT_ONCE * THREADS) {
        T x[AT_ONCE], y[AT_ONCE];
        int at_a[AT_ONCE], at_b[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const int i = first + u * THREADS;
            int other, kk;
            of_a.place(i, other, kk);
            at_a[u] = i < all_a ? other * pitch_a + kk : -1;
            x[u] = i < all_a && other < rows ? a[other * g.a_rs + kk * g.a_cs] : T(0.0f);
            of_b.place(i, other, kk);
            at_b[u] = i < all_b ? kk * pitch_b + other : -1;
            y[u] = i < all_b && other < columns ? b[kk * g.b_rs + other * g.b_cs] : T(0.0f);
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            if (at_a[u] >= 0)
                held_a[at_a[u]] = static_cast<float>(x[u]);
            if (at_b[u] >= 0)
                held_b[at_b[u]] = static_cast<float>(y[u]);
        }
    }
    __syncthreads();
    const int mine = threadIdx.x & (p.columns - 1), down = threadIdx.x / p.columns, step = THREADS / p.columns;
    float sum[EACH] = {};
    if (mine >= columns)
        return;
#pragma unroll 4
    for (int i = 0; i < k; i++) {
        const float y = held_b[i * pitch_b + mine];
#pragma unroll
        for (int e = 0; e < EACH; e++)
            sum[e] = fmaf(held_a[(down + e * step) * pitch_a + i], y, sum[e]);
    }
    const float bias = g.bias ? static_cast<float>(static_cast<const T *>(g.bias)[column + mine]) : 0.0f;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        if (down + e * step >= rows)
            continue;
        const long long to = (batch * g.m + row + down + e * step) * g.pitch + column + mine;
        const float value = activated(g.activation, sum[e] + bias);
        if (g.wide)
            static_cast<float *>(g.c)[to] = value;
        else
            static_cast<T *>(g.c)[to] = T(value);
    }
}

int64_t tiles(int64_t n, int64_t of)
{
    return (n + of - 1) / of;
}

/* A thread has one result, or MANY where blocks are enough all the same. */
staged cut(const pc__cuda_gemm *g, int &each)
{
    staged p = {*g, COLUMNS_LEAST, 0, 0, 0, g->k > 1 ? UINT32_MAX / (unsigned)g->k + 1 : 0};
    p.g.pitch = pc__cuda_gemm_row(g);
    while (p.columns < COLUMNS_MOST && p.columns < g->n)
        p.columns *= 2;
    p.rows = THREADS / p.columns;
    p.column_tiles = static_cast<int>(tiles(g->n, p.columns));
    const int64_t blocks = g->batch * p.column_tiles * tiles(g->m, p.rows * MANY);
    each = blocks >= BLOCKS ? MANY : 1;
    p.rows *= each;
    p.row_tiles = static_cast<int>(tiles(g->m, p.rows));
    return p;
}

template <class T> void launch(cudaStream_t queue, const pc__cuda_gemm *g, int early)
{
    int each;
    const staged p = cut(g, each);
    const int k = static_cast<int>(g->k), floats = p.rows * (k | 1) + k * (p.columns + 1);
    (void)pc::start_grid(each == 1 ? staged_kernel<T, 1> : staged_kernel<T, MANY>,
                         dim3(static_cast<unsigned>(g->batch * p.row_tiles * p.column_tiles)), dim3(THREADS),
                         static_cast<size_t>(floats) * sizeof(float), queue, early, p);
}

} // namespace

bool pc__cuda_staged_fits(const pc__cuda_gemm *g)
{
    const int64_t most = 1 << 29;
    return g->dtype != PC__CUDA_F64 && g->k > 0 && g->k <= PC__CUDA_STAGED_MOST && g->m < most && g->n < most &&
           g->batch < most && (double)g->batch * (double)g->m * (double)g->n < 1e9;
}

/* Fewer blocks than a large GPU runs at once, and sums that it adds up in about the time of a launch. Where rows of 16-bit numbers
 * are whole accesses, cuBLASLt's kernels take no longer. */
bool pc__cuda_staged_suits(const pc__cuda_gemm *g)
{
    enum { RESULTS = 1 << 17, PRODUCTS = 1 << 21, PACK = 8 };
    const double results = (double)g->batch * (double)g->m * (double)g->n;
    const bool whole = g->dtype != PC__CUDA_F32 && (g->m | g->n | g->k) % PACK == 0;
    return results <= RESULTS && results * (double)g->k <= PRODUCTS && !whole;
}

void pc__cuda_staged(cudaStream_t queue, const pc__cuda_gemm *g, int early)
{
    if (g->dtype == PC__CUDA_F32)
        launch<float>(queue, g, early);
    else if (g->dtype == PC__CUDA_F16)
        launch<pc::f16>(queue, g, early);
    else
        launch<pc::bf16>(queue, g, early);
}
