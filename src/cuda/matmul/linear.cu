/* linear.cu: linear layers forward in one launch and backward in one. Training steps of small networks wait for
 * launches more than for arithmetic: the library's kernels need two or three launches forward and five backward.
 *
 * Forward, k is cut into as many parts as it takes to occupy the chip; the last block to finish a tile adds up its
 * parts, always in the same order. Backward, the same launch makes tiles of both products, those of dx first, which are
 * cut along the outputs in the same way: k of dweight is the rows of x, 64 at most. The gradient goes through the
 * activation as it is read.
 */
#include "cuda/matmul/linear.h"

#include "cuda/matmul/linear_activation.cuh"
#include "cuda/matmul/linear_gradient.cuh"
#include "cuda/matmul/linear_tile.cuh"
#include "cuda/shared/last_block.cuh"

namespace
{

/* 32 x 16 of a result, the warps taking turns along k; and 32 x 64. */
typedef layout<1, 1, 8, 2, 192, false> narrow;
typedef layout<1, 4, 2, 2, 64, true> flat;

struct nothing {
    __device__ void operator()(const float *, strides, int) const
    {
    }
};

__host__ __device__ inline int parts_of(int n, int size)
{
    return (n + size - 1) / size;
}

/* Rows of `data`, `row` elements apart and `length` long. */
template <class T>
__device__ inline source<T> rows_of(const void *data, const void *value, int row, int length, int outers, bool along_k)
{
    const uintptr_t places = reinterpret_cast<uintptr_t>(data) | reinterpret_cast<uintptr_t>(value);
    return {static_cast<const T *>(data),
            static_cast<const T *>(value),
            row,
            outers,
            along_k,
            (row | length) % 4 == 0 && places % (4 * sizeof(T)) == 0};
}

template <class T> __device__ __noinline__ void finish(const pc__cuda_linear &l, int row, int column, float value)
{
    const float bias = l.bias ? float(static_cast<const T *>(l.bias)[column]) : 0.0f;
    static_cast<T *>(l.y)[row * l.n + column] = layer_activated<T>(l.activation, value + bias);
}

/* As many of four as are there, by way of their own place in shared memory: there is one call for all. */
template <class T>
__device__ inline void finish_some(const pc__cuda_linear &l, int row, int column, float4 value, int there, float *place)
{
    *reinterpret_cast<float4 *>(place) = value;
#pragma unroll 1
    for (int j = 0; j < min(there, 4); j++)
        finish<T>(l, row, column + j, place[j]);
}

/* Add up the parts of a tile, of which so many rows and columns exist, if not more than the tile has: give(i, value) for each
 * of their elements, and for what is left of fours. Four neighbours to a thread, the parts shared by SHARES groups of threads where the tile has fewer fours than there are
 * threads. 20 parts are under way together; 3200 inputs are 17. */
template <class L, class Give>
__device__ inline void join(const float *parts, int splits, int rows, int columns, float *shared, const Give &give)
{
    constexpr int FOURS = L::TILE / 4, SHARES = FOURS < THREADS ? THREADS / FOURS : 1, AT_ONCE = 10;
    constexpr int TOGETHER = THREADS / SHARES;
    const int share = threadIdx.x / TOGETHER, across = parts_of(min(columns, L::COLUMNS), 4),
              fours = min(rows, L::ROWS) * across;
#pragma unroll 1
    for (int four = threadIdx.x % TOGETHER; four < fours; four += TOGETHER) {
        const int mine = four / across * L::COLUMNS + four % across * 4;
        float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 1
        for (int first = share; first < splits; first += AT_ONCE * SHARES) {
            float4 part[AT_ONCE];
#pragma unroll
            for (int s = 0; s < AT_ONCE; s++)
                part[s] = first + s * SHARES < splits
                              ? __ldcg(reinterpret_cast<const float4 *>(parts + (first + s * SHARES) * L::TILE + mine))
                              : make_float4(0, 0, 0, 0);
#pragma unroll
            for (int s = 0; s < AT_ONCE; s++)
                sum = sum_of(sum, part[s]);
        }
        *reinterpret_cast<float4 *>(shared + (share * FOURS + four) * 4) = sum;
    }
    __syncthreads();
#pragma unroll 1
    for (int i = threadIdx.x; i < fours * 4; i += THREADS) {
        float value = shared[i];
#pragma unroll
        for (int k = 1; k < SHARES; k++)
            value += shared[k * L::TILE + i];
        give(i / 4 / across * L::COLUMNS + i / 4 % across * 4 + i % 4, value);
    }
}

template <class L, class T>
__global__ void __launch_bounds__(THREADS)
    forward_kernel(const __grid_constant__ pc__cuda_linear l, int splits, int each)
{
    __shared__ alignas(16) float shared[tile<L, T>::PLAIN];
    const int at = blockIdx.x / splits, split = blockIdx.x % splits, across = parts_of(l.n, L::COLUMNS);
    const int row = at / across * L::ROWS, column = at % across * L::COLUMNS;
    const source<T> x = rows_of<T>(l.x, nullptr, static_cast<int>(l.x_row), l.k, l.m, true);
    const source<T> weight = rows_of<T>(l.weight, nullptr, l.k, l.k, l.n, true);
    float *parts = l.scratch + at * splits * L::TILE;
    tile<L, T>::run(x, weight, l.ready_weight, 0, row, column, split * each, min(split * each + each, l.k), shared,
                    nothing(), [&](int r, int c, int i, float4 value, int there) {
                        if (splits > 1)
                            *reinterpret_cast<float4 *>(parts + split * L::TILE + i) = value;
                        else
                            finish_some<T>(l, r, c, value, there, shared + i);
                    });
    if (splits > 1 && pc::comes_last(l.counters + at, splits))
        join<L>(parts, splits, L::ROWS, L::COLUMNS, shared, [&](int i, float value) {
            const int r = row + i / L::COLUMNS, c = column + i % L::COLUMNS;
            if (r < l.m && c < l.n)
                finish<T>(l, r, c, value);
        });
}

/* Sums along k of the rows of a tile, a row to a thread, as the operand passes through shared memory. */
template <class L> struct summing {
    double *sum;

    __device__ void operator()(const float *shared, strides of, int deep) const
    {
        if (!sum || threadIdx.x >= L::ROWS)
            return;
        float s = 0;
#pragma unroll 8
        for (int k = 0; k < deep; k++)
            s += shared[threadIdx.x * of.outers + k * of.ks];
        *sum += s;
    }
};

template <class L> __host__ __device__ inline int input_tiles(const pc__cuda_linear &l)
{
    return l.dx ? parts_of(l.m, L::ROWS) * parts_of(l.k, L::COLUMNS) : 0;
}

/* Tiles of dx = g weight, whose k is the outputs, in `splits` parts of `each` of them; and of dweight = g^T x, whose k
 * is the rows of x. The gradient g is read through the activation either way, along its rows or its columns. As many
 * blocks fit on a multiprocessor as their shared memory lets. */
template <class L, class T>
__global__ void __launch_bounds__(THREADS, 4)
    backward_kernel(const __grid_constant__ pc__cuda_linear l, int splits, int each)
{
    __shared__ alignas(16) float shared[tile<L, T>::GRADIENT];
    const int first = input_tiles<L>(l) * splits, across = parts_of(l.k, L::COLUMNS);
    const bool weights = blockIdx.x >= first;
    const int at = weights ? blockIdx.x - first : blockIdx.x / splits, split = weights ? 0 : blockIdx.x % splits;
    const int row = at / across * L::ROWS, column = at % across * L::COLUMNS;
    const source<T> g = rows_of<T>(l.dy, l.activation ? l.y : nullptr, l.n, l.n, weights ? l.n : l.m, !weights);
    const source<T> other = weights ? rows_of<T>(l.x, nullptr, static_cast<int>(l.x_row), l.k, l.k, false)
                                    : rows_of<T>(l.weight, nullptr, l.k, l.k, l.k, false);
    float *parts = l.scratch + static_cast<size_t>(at) * splits * L::TILE;
    double sum = 0;
    const bool sums = weights && column == 0 && l.db;
    const uintptr_t places = reinterpret_cast<uintptr_t>(l.dweight) | reinterpret_cast<uintptr_t>(l.dx);
    const bool wide = l.k % 4 == 0 && places % sizeof(float4) == 0;
    const int from = weights ? 0 : split * each, to = weights ? l.m : min(from + each, l.n);
    tile<L, T>::run(g, other, weights ? l.ready_x : l.ready_weight, l.activation, row, column, from, to, shared,
                    summing<L>{sums ? &sum : nullptr}, [&](int r, int c, int i, float4 value, int there) {
                        if (weights && l.narrow)
                            store_four(static_cast<T *>(l.dweight) + r * l.k + c, value, there, wide);
                        else if (weights)
                            store_four(static_cast<float *>(l.dweight) + r * l.k + c, value, there, wide);
                        else if (splits > 1)
                            *reinterpret_cast<float4 *>(parts + split * L::TILE + i) = value;
                        else
                            store_four(static_cast<T *>(l.dx) + r * l.k + c, value, there, wide);
                    });
    if (sums && threadIdx.x < L::ROWS && row + threadIdx.x < l.n)
        store_gradient<T>(l.db, l.narrow, row + threadIdx.x, static_cast<float>(sum));
    if (!weights && splits > 1 && pc::comes_last(l.counters + at, splits))
        join<L>(parts, splits, l.m - row, l.k - column, shared, [&](int i, float value) {
            const int r = row + i / L::COLUMNS, c = column + i % L::COLUMNS;
            if (c < l.k)
                static_cast<T *>(l.dx)[r * l.k + c] = T(value);
        });
}

/* Blocks to a tile, of which there are `tiles`, and of its `depth` along k to each of them. What a block brings in one
 * go it waits for once: it gets no less, and no more while the chip has room for three blocks a multiprocessor. */
template <class L> int cut(const pc__cuda_linear *l, int tiles, int depth, int *each)
{
    const int wanted = tiles > PC__CUDA_LINEAR_TILES ? 1 : 3 * l->multiprocessors / tiles;
    const int most = parts_of(depth, L::DEPTH), splits = wanted < 1 ? 1 : wanted < most ? wanted : most;
    *each = parts_of(parts_of(depth, splits), L::GROUP) * L::GROUP;
    return parts_of(depth, *each);
}

template <class L> int cut_forward(const pc__cuda_linear *l, int *tiles, int *each)
{
    *tiles = parts_of(l->m, L::ROWS) * parts_of(l->n, L::COLUMNS);
    return cut<L>(l, *tiles, l->k, each);
}

template <class L> int cut_backward(const pc__cuda_linear *l, int *each)
{
    return l->dx ? cut<L>(l, input_tiles<L>(*l), l->n, each) : 1;
}

template <class L> size_t parts_bytes(int tiles, int splits)
{
    return splits > 1 ? static_cast<size_t>(tiles) * splits * L::TILE * sizeof(float) : 0;
}

template <class T> cudaError_t forward(const pc__cuda_linear *l)
{
    typedef narrow L;
    int each, tiles;
    const int splits = cut_forward<L>(l, &tiles, &each);
    return pc::start(forward_kernel<L, T>, tiles * splits, THREADS, l->queue, l->early, *l, splits, each);
}

template <class T> cudaError_t backward(const pc__cuda_linear *l)
{
    typedef flat L;
    int each = l->n;
    const int splits = cut_backward<L>(l, &each), weights = parts_of(l->n, L::ROWS) * parts_of(l->k, L::COLUMNS);
    return pc::start(backward_kernel<L, T>, input_tiles<L>(*l) * splits + weights, THREADS, l->queue, l->early, *l,
                     splits, each);
}

} // namespace

int64_t pc__cuda_linear_tiles(int64_t m, int64_t n)
{
    return (m + 31) / 32 * ((n + 15) / 16); /* of the smallest */
}

size_t pc__cuda_linear_small_scratch(const pc__cuda_linear *l)
{
    int each, tiles;
    const int splits = cut_forward<narrow>(l, &tiles, &each);
    return parts_bytes<narrow>(tiles, splits);
}

cudaError_t pc__cuda_linear_small_forward(const pc__cuda_linear *l)
{
    return l->dtype == PC__CUDA_F32   ? forward<float>(l)
           : l->dtype == PC__CUDA_F16 ? forward<pc::f16>(l)
                                      : forward<pc::bf16>(l);
}

size_t pc__cuda_linear_small_backward_scratch(const pc__cuda_linear *l)
{
    int each;
    return parts_bytes<flat>(input_tiles<flat>(*l), cut_backward<flat>(l, &each));
}

cudaError_t pc__cuda_linear_small_backward(const pc__cuda_linear *l)
{
    return l->dtype == PC__CUDA_F32   ? backward<float>(l)
           : l->dtype == PC__CUDA_F16 ? backward<pc::f16>(l)
                                      : backward<pc::bf16>(l);
}
