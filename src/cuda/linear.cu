/* linear.cu: linear layers forward in one launch and backward in one. Training steps of small networks wait for
 * launches more than for arithmetic: the library's kernels need two or three launches forward and five backward.
 *
 * Forward, k is cut into as many parts as it takes to occupy the chip; the last block to finish a tile adds up its
 * parts, always in the same order. Backward, the same launch makes tiles of both products, those of dweight first since
 * they may be longer; the gradient goes through the activation as it is read. */
#include "cuda/linear.h"

#include "cuda/linear_tile.cuh"

namespace
{

/* 32 x 16 of a result, the warps taking turns along k; and 32 x 64. */
typedef layout<1, 1, 8, 2, 192> narrow;
typedef layout<1, 4, 2, 2, 64> flat;

struct nothing {
    __device__ void operator()(const float *, int) const
    {
    }
};

__host__ __device__ inline int parts_of(int n, int size)
{
    return (n + size - 1) / size;
}

__host__ __device__ inline stored rows_of(const float *data, int64_t row, int slows, int fasts)
{
    return {data, row, slows, fasts, row % 4 == 0 && reinterpret_cast<uintptr_t>(data) % 16 == 0};
}

__device__ inline void finish(const pc__cuda_linear &l, int row, int column, float value)
{
    l.y[static_cast<int64_t>(row) * l.n + column] = activated(l.activation, value + (l.bias ? l.bias[column] : 0.0f));
}

/* True in the block that comes last of `count`; what the others wrote before is there to be read. */
__device__ inline bool comes_last(unsigned *counter, unsigned count)
{
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(counter, 1) == count - 1;
        if (last)
            *counter = 0;
    }
    __syncthreads();
    __threadfence();
    return last;
}

/* Add up the parts of a tile: SHARES groups of threads each a share of them, four neighbours to a thread. */
template <class L>
__device__ inline void join(const pc__cuda_linear &l, int row, int column, const float *parts, int splits,
                            float *shared)
{
    constexpr int FOURS = L::TILE / 4, SHARES = THREADS / FOURS;
    const int mine = threadIdx.x % FOURS * 4, share = threadIdx.x / FOURS;
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (int s = share; s < splits; s += SHARES) {
        const float4 part = __ldcg(reinterpret_cast<const float4 *>(parts + s * L::TILE + mine));
        sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
    }
    *reinterpret_cast<float4 *>(shared + share * L::TILE + mine) = sum;
    __syncthreads();
#pragma unroll 1
    for (int i = threadIdx.x; i < L::TILE; i += THREADS) {
        const int r = row + i / L::COLUMNS, c = column + i % L::COLUMNS;
        float value = shared[i];
#pragma unroll
        for (int k = 1; k < SHARES; k++)
            value += shared[k * L::TILE + i];
        if (r < l.m && c < l.n)
            finish(l, r, c, value);
    }
}

template <class L>
__global__ void __launch_bounds__(THREADS)
    forward_kernel(const __grid_constant__ pc__cuda_linear l, int splits, int each)
{
    typedef operand<true, L::ROWS, L::DEPTH> A;
    typedef operand<true, L::COLUMNS, L::DEPTH> B;
    typedef tile<L, A, B> product;
    __shared__ alignas(16) float shared[product::PLAIN];
    const int at = blockIdx.x / splits, split = blockIdx.x % splits, across = parts_of(l.n, L::COLUMNS);
    const int row = at / across * L::ROWS, column = at % across * L::COLUMNS;
    const stored x = rows_of(l.x, l.x_row, l.m, l.k), weight = rows_of(l.weight, l.k, l.n, l.k);
    float *parts = l.scratch + static_cast<int64_t>(at) * splits * L::TILE;
    pc::wait_for_earlier();
    product::run(x, weight, row, column, split * each, min(split * each + each, l.k), shared, nothing(),
                 [&](int r, int c, int i, float value) {
                     if (splits > 1)
                         parts[split * L::TILE + i] = value;
                     else
                         finish(l, r, c, value);
                 });
    if (splits > 1 && comes_last(l.counters + at, splits))
        join<L>(l, row, column, parts, splits, shared);
}

/* Sums along k of the rows of a tile, a row to a thread, as the operand passes through shared memory. */
template <class A, int ROWS> struct summing {
    double *sum;

    __device__ void operator()(const float *shared, int deep) const
    {
        if (!sum || threadIdx.x >= ROWS)
            return;
        float s = 0;
#pragma unroll 8
        for (int k = 0; k < deep; k++)
            s += A::get(shared, threadIdx.x, k);
        *sum += s;
    }
};

template <class L>
__device__ inline void weight_tile(const pc__cuda_linear &l, const gradient &g, const stored &x, int at, float *shared)
{
    typedef operand<false, L::ROWS, L::DEPTH> A;
    typedef operand<false, L::COLUMNS, L::DEPTH> B;
    const int across = parts_of(l.k, L::COLUMNS), row = at / across * L::ROWS, column = at % across * L::COLUMNS;
    const int n = row + static_cast<int>(threadIdx.x);
    double sum = 0;
    const summing<A, L::ROWS> sums = {l.db && column == 0 ? &sum : nullptr};
    tile<L, A, B>::run(g, x, row, column, 0, l.m, shared, sums,
                       [&](int r, int c, int, float value) { l.dweight[static_cast<int64_t>(r) * l.k + c] = value; });
    if (l.db && column == 0 && threadIdx.x < L::ROWS && n < l.n)
        l.db[n] = static_cast<float>(sum);
}

template <class L>
__device__ inline void input_tile(const pc__cuda_linear &l, const gradient &g, const stored &weight, int at,
                                  float *shared)
{
    typedef operand<true, L::ROWS, L::DEPTH> A;
    typedef operand<false, L::COLUMNS, L::DEPTH> B;
    const int across = parts_of(l.k, L::COLUMNS), row = at / across * L::ROWS, column = at % across * L::COLUMNS;
    tile<L, A, B>::run(g, weight, row, column, 0, l.n, shared, nothing(),
                       [&](int r, int c, int, float value) { l.dx[static_cast<int64_t>(r) * l.k + c] = value; });
}

template <class L> __host__ __device__ inline int weight_tiles(const pc__cuda_linear &l)
{
    return l.dweight ? parts_of(l.n, L::ROWS) * parts_of(l.k, L::COLUMNS) : 0;
}

template <class L> __global__ void __launch_bounds__(THREADS) backward_kernel(const __grid_constant__ pc__cuda_linear l)
{
    typedef operand<false, L::COLUMNS, L::DEPTH> B;
    constexpr int ONE = tile<L, operand<true, L::ROWS, L::DEPTH>, B>::GRADIENT,
                  TWO = tile<L, operand<false, L::ROWS, L::DEPTH>, B>::GRADIENT;
    __shared__ alignas(16) float shared[ONE > TWO ? ONE : TWO];
    const gradient g = {rows_of(l.dy, l.n, l.m, l.n), rows_of(l.y, l.n, l.m, l.n), l.activation};
    const int at = blockIdx.x, first = weight_tiles<L>(l);
    pc::wait_for_earlier();
    if (at < first)
        weight_tile<L>(l, g, rows_of(l.x, l.x_row, l.m, l.k), at, shared);
    else
        input_tile<L>(l, g, rows_of(l.weight, l.k, l.n, l.k), at - first, shared);
}

/* Blocks to a tile, and of k to each of them. */
template <class L> int cut(const pc__cuda_linear *l, int *each)
{
    const int tiles = parts_of(l->m, L::ROWS) * parts_of(l->n, L::COLUMNS);
    const int wanted = 2 * l->multiprocessors / tiles, most = parts_of(l->k, L::DEPTH);
    const int splits = wanted < 1 ? 1 : wanted < most ? wanted : most;
    *each = parts_of(parts_of(l->k, splits), L::GROUP) * L::GROUP;
    return parts_of(l->k, *each);
}

} // namespace

int64_t pc__cuda_linear_tiles(int64_t m, int64_t n)
{
    return (m + 31) / 32 * ((n + 15) / 16); /* of the smallest */
}

size_t pc__cuda_linear_scratch(const pc__cuda_linear *l)
{
    typedef narrow L;
    int each;
    const int splits = cut<L>(l, &each);
    const size_t tiles = static_cast<size_t>(parts_of(l->m, L::ROWS)) * parts_of(l->n, L::COLUMNS);
    return splits > 1 ? tiles * splits * L::TILE * sizeof(float) : 0;
}

cudaError_t pc__cuda_linear_forward(const pc__cuda_linear *l)
{
    typedef narrow L;
    int each;
    const int splits = cut<L>(l, &each), tiles = parts_of(l->m, L::ROWS) * parts_of(l->n, L::COLUMNS);
    return pc::start(forward_kernel<L>, tiles * splits, THREADS, l->queue, l->early, *l, splits, each);
}

cudaError_t pc__cuda_linear_backward(const pc__cuda_linear *l)
{
    typedef flat L;
    const int inputs = l->dx ? parts_of(l->m, L::ROWS) * parts_of(l->k, L::COLUMNS) : 0;
    return pc::start(backward_kernel<L>, weight_tiles<L>(*l) + inputs, THREADS, l->queue, l->early, *l);
}
