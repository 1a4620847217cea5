/* conv_tile.cuh: the product inside a convolution, without the matrix of its operand: rows are pixels, depth runs over
 * the taps of the kernel and the channels under each. A block of 256 threads makes 128 rows x BN outputs, 16 of depth
 * at a time: what comes next is on its way from memory to registers while what is in shared memory is multiplied. */
#ifndef PC__CUDA_CONV_TILE_CUH
#define PC__CUDA_CONV_TILE_CUH

#include "cuda/conv.h"

namespace
{

constexpr int THREADS = 256, BM = 128, DEPTH = 16;
constexpr int ROW = BM + 4; /* of the tile of rows in shared memory: 16-byte aligned, columns in different banks */

template <class T, int N> struct alignas(N * sizeof(T)) vector {
    T at[N];
};

/* Where a row of the tile reads at tap (0, 0): the first element of its picture, row and column in it. A row that is
 * not there lies outside every picture. */
struct place {
    long long base;
    int row, column;
};

constexpr int NOWHERE = -(1 << 28);

/* Weights of a product: depth is [taps of a column][taps of a row][inner]. */
template <class T> struct weights {
    const T *at;
    int taps_in_row, inner, depth, outputs;
    int tap_row, tap_column, step, output; /* distances in elements: rows of taps, taps, inner, outputs */
    bool whole;                            /* outputs lie side by side, in fours that lie on 16 bytes */
};

struct tap {
    int row, column, inner;
};

template <class T> __device__ inline tap tap_of(const weights<T> &w, int k)
{
    const unsigned t = (unsigned)k / (unsigned)w.inner, row = t / (unsigned)w.taps_in_row;
    return {(int)row, (int)(t - row * w.taps_in_row), (int)(k - t * w.inner)};
}

/* BM x 16 of the operand: VECTOR elements of depth at once. Thread t has depth (t % LANES) * VECTOR, rows t / LANES + i
 * * STEP. */
template <class T, int VECTOR> struct rows_part {
    static constexpr int LANES = DEPTH / VECTOR, STEP = THREADS / LANES, COUNT = BM / STEP;
    T at[COUNT][VECTOR];

    template <class Source>
    __device__ inline void load(const Source &from, const weights<T> &w, const place *places, int k)
    {
        k += threadIdx.x % LANES * VECTOR;
        const bool there = k < w.depth;
        const tap t = tap_of(w, there ? k : 0);
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            vector<T, VECTOR> value = {};
            if (there)
                from.read(places[threadIdx.x / LANES + i * STEP], t, value);
#pragma unroll
            for (int j = 0; j < VECTOR; j++)
                at[i][j] = value.at[j];
        }
    }

    __device__ inline void store(T (*tile)[ROW]) const
    {
        const int k = threadIdx.x % LANES * VECTOR, row = threadIdx.x / LANES;
#pragma unroll
        for (int i = 0; i < COUNT; i++)
#pragma unroll
            for (int j = 0; j < VECTOR; j++)
                tile[k + j][row + i * STEP] = at[i][j];
    }
};

/* 16 x BN of the weights: thread t has depth t / (BN / 4) and four outputs. */
template <class T, int BN> struct weights_part {
    vector<T, 4> at;

    __device__ inline void load(const weights<T> &w, int k, int column)
    {
        at = {};
        k += threadIdx.x / (BN / 4);
        column += threadIdx.x % (BN / 4) * 4;
        if (threadIdx.x >= DEPTH * BN / 4 || k >= w.depth)
            return;
        const tap t = tap_of(w, k);
        const T *from = w.at + t.row * w.tap_row + t.column * w.tap_column + t.inner * w.step;
        if (w.whole) {
            if (column < w.outputs)
                at = *(const vector<T, 4> *)(from + column);
            return;
        }
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (column + j < w.outputs)
                at.at[j] = from[(column + j) * w.output];
    }

    __device__ inline void store(T (*tile)[BN]) const
    {
        if (threadIdx.x < DEPTH * BN / 4)
            *(vector<T, 4> *)&tile[threadIdx.x / (BN / 4)][threadIdx.x % (BN / 4) * 4] = at;
    }
};

/* sum[i][j]: row `row_of(i)` of the tile, output column + (threadIdx.x % (BN / 4)) * 4 + j. */
template <class T, int BN, int VECTOR> struct tile {
    static constexpr int ACROSS = BN / 4, DOWN = THREADS / ACROSS, TM = BM / DOWN, GROUPS = TM / 4;
    T sum[TM][4];

    /* Rows of a thread come in fours, as the pixels of a pooling window do. */
    static __device__ inline int row_of(int i)
    {
        return i / 4 * DOWN * 4 + threadIdx.x / ACROSS * 4 + i % 4;
    }

    __device__ inline void multiply(const T (*left)[ROW], const T (*right)[BN])
    {
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            const vector<T, 4> b = *(const vector<T, 4> *)&right[k][threadIdx.x % ACROSS * 4];
#pragma unroll
            for (int group = 0; group < GROUPS; group++) {
                const vector<T, 4> a = *(const vector<T, 4> *)&left[k][row_of(group * 4)];
#pragma unroll
                for (int i = 0; i < 4; i++)
#pragma unroll
                    for (int j = 0; j < 4; j++)
                        sum[group * 4 + i][j] += a.at[i] * b.at[j];
            }
        }
    }

    template <class Source> __device__ inline void run(const Source &from, const weights<T> &w, const place *places)
    {
        __shared__ __align__(16) T left[2][DEPTH][ROW];
        __shared__ __align__(16) T right[2][DEPTH][BN];
        const int column = blockIdx.y * BN;
        rows_part<T, VECTOR> rows;
        weights_part<T, BN> outputs;
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                sum[i][j] = 0;
        rows.load(from, w, places, 0);
        outputs.load(w, 0, column);
        for (int k = 0, now = 0; k < w.depth; k += DEPTH, now ^= 1) {
            rows.store(left[now]);
            outputs.store(right[now]);
            __syncthreads();
            if (k + DEPTH < w.depth) {
                rows.load(from, w, places, k + DEPTH);
                outputs.load(w, k + DEPTH, column);
            }
            multiply(left[now], right[now]);
        }
    }
};

/* Four outputs side by side, those that are there. */
template <class T> __device__ inline void store_four(T *to, const T (&value)[4], int left, bool whole)
{
    if (whole) {
        *(vector<T, 4> *)to = {value[0], value[1], value[2], value[3]};
        return;
    }
#pragma unroll
    for (int j = 0; j < 4; j++)
        if (j < left)
            to[j] = value[j];
}

/* packed[tap][inner][output] from weights with those distances, so that outputs lie side by side. */
template <class T>
__global__ void __launch_bounds__(THREADS) pack_kernel(const T *__restrict__ from, T *__restrict__ packed, int taps,
                                                       int inner, int outputs, int step, int output)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= taps * inner * outputs)
        return;
    const int rest = i / outputs;
    packed[i] = from[rest / inner + rest % inner * step + i % outputs * output];
}

/* Weights [o][c][kh][kw] for a product that leads from `inner` to `outputs` (c to o or back), packed into `packed`. Few
 * enough are read where they lie: that is less than a launch takes. */
template <class T>
weights<T> weights_for(cudaStream_t queue, const pc__cuda_conv *s, const void *from, int inner, int outputs, int step,
                       int output, void *packed)
{
    const int taps = s->kh * s->kw;
    weights<T> w = {(const T *)from,
                    s->kw > 1 ? s->kw : 1,
                    inner > 1 ? inner : 1,
                    taps * inner,
                    outputs,
                    s->kw,
                    1,
                    step,
                    output,
                    false};
    if (taps * inner <= 2 * DEPTH)
        return w;
    const unsigned grid = (unsigned)(((long long)taps * inner * outputs + THREADS - 1) / THREADS);
    pack_kernel<T><<<grid, THREADS, 0, queue>>>((const T *)from, (T *)packed, taps, inner, outputs, step, output);
    w.at = (const T *)packed;
    w.step = outputs;
    w.output = 1;
    w.tap_column = inner * outputs;
    w.tap_row = s->kw * w.tap_column;
    w.whole = outputs % 4 == 0;
    return w;
}

inline size_t bytes_of(const pc__cuda_conv *s, size_t elements)
{
    return elements * (s->dtype == PC__CUDA_F32 ? 4 : 8);
}

inline size_t packed_bytes(const pc__cuda_conv *s)
{
    const size_t bytes = bytes_of(s, (size_t)s->o * s->c * s->kh * s->kw);
    return (bytes + 255) / 256 * 256;
}

inline bool on_16_bytes(const void *pointer)
{
    return (uintptr_t)pointer % 16 == 0;
}

} // namespace

#endif
