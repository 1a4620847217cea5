/* half.cuh: the product inside a convolution of 16-bit numbers, as tile.cuh: rows are pixels, depth runs over
 * the taps of the kernel and the channels under each, eight at a time. A block of 256 threads makes BM rows x BN
 * outputs by matrix units, 32 of depth at a time, STAGES of them on their way from memory. Sums are floats. */
#ifndef PC__CUDA_CONV_HALF_CUH
#define PC__CUDA_CONV_HALF_CUH

#include "cuda/conv/order.cuh"
#include "cuda/conv/pack.cuh"
#include "cuda/conv/split_k.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/mma.cuh"

namespace
{

constexpr int THREADS = 256, DEPTH = 32, EIGHT = 8, CHUNKS = DEPTH / EIGHT, STAGES = 4;
constexpr int BLOCKS = 2; /* a multiprocessor's */
constexpr int LEAST = 4;  /* steps that a part of a tile is worth, where parts are few */
constexpr int NOWHERE = -(1 << 28);

/* Eight numbers, 16 bytes. */
template <class T> struct alignas(EIGHT * sizeof(T)) eight {
    T at[EIGHT];
};

/* Where a row of the product reads at tap (0, 0): the first element of its picture, row and column in it. */
struct place {
    long long base;
    int row, column;
};

/* Pictures [n][h][w][c]; a tap leads `way` rows and columns on. */
template <class T> struct source {
    const T *at;
    int h, w, c, way;
};

/* Weights, [output][taps of a column][taps of a row][inner]; of these taps every step_row-th and step_column-th. */
template <class T> struct filter {
    const T *at;
    int outputs, inner, output;             /* distance between outputs */
    int rows, columns, tap_row, tap_column; /* taps, and their distances */
};

/* Eight of depth: a tap and channels under it. */
struct chunk {
    int row, column, inner;
};

template <class T> __device__ inline chunk chunk_of(const filter<T> &f, int k)
{
    const unsigned tap = (unsigned)k / (unsigned)f.inner, row = tap / (unsigned)f.columns;
    return {(int)row, (int)(tap - row * f.columns), (int)(k - tap * f.inner)};
}

/* The one 32 of depth later. */
template <class T> __device__ inline chunk chunk_after(const filter<T> &f, chunk c)
{
    c.inner += DEPTH;
    while (c.inner >= f.inner) {
        c.inner -= f.inner;
        if (++c.column == f.columns)
            c.column = 0, c.row++;
    }
    return c;
}

/* Rows of 4 chunks, 64 bytes, lie so that 8 rows' chunks fill all banks. */
template <class T> __device__ inline T *slot(T *tile, int row, int chunk)
{
    return tile + row * DEPTH + (chunk ^ (row / 2 % CHUNKS)) * EIGHT;
}

/* Each warp makes 32 rows x 32 outputs. Its four rows of a thread are those of a pooling window, and its outputs eight
 * side by side: rows and outputs lie in shared memory in the order in which matrix units hand them out. */
template <class T, int BN> struct half_tile {
    static constexpr int ACROSS = BN / 32, BM = THREADS / 32 / ACROSS * 32, ROWS = BM * CHUNKS / THREADS;
    float sum[2][4][4]; /* [half of 16 rows][8 outputs][as add_tensor] */

    /* Row m of the tile's order for place i of its memory. */
    static __device__ inline int row_at(int i)
    {
        return i / 32 * 32 + i % 8 * 4 + i % 32 / 8;
    }

    static __device__ inline int output_at(int i)
    {
        return i / 32 * 32 + i % 8 / 2 * 8 + i % 32 / 8 * 2 + i % 2;
    }

    /* First of this thread's four rows, and of its eight outputs. */
    static __device__ inline int first_row()
    {
        return threadIdx.x / 32 / ACROSS * 32 + threadIdx.x % 32 / 4 * 4;
    }

    static __device__ inline int first_output()
    {
        return threadIdx.x / 32 % ACROSS * 32 + threadIdx.x % 4 * 8;
    }

    /* Row q of the four, output j of the eight. */
    __device__ inline float at(int q, int j) const
    {
        return sum[q / 2][j / 2][q % 2 * 2 + j % 2];
    }

#if TENSOR_UNITS
    static constexpr int LEFT = BM * DEPTH, RIGHT = BN * DEPTH;
    static constexpr size_t SHARED = STAGES * (LEFT + RIGHT) * sizeof(T);

    static __device__ inline void send_rows(T *tile, const source<T> &x, const filter<T> &f, const chunk &c,
                                            const place *places)
    {
        const int row_step = c.row * x.way, column_step = c.column * x.way;
        const bool there = c.row < f.rows;
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const int row = threadIdx.x / CHUNKS + i * (THREADS / CHUNKS);
            const place p = places[row];
            const int r = p.row + row_step, w = p.column + column_step;
            const bool inside = there && (unsigned)r < (unsigned)x.h && (unsigned)w < (unsigned)x.w;
            const T *from = x.at + (inside ? p.base + (r * x.w + w) * x.c + c.inner : 0);
            send<16>(slot(tile, row, threadIdx.x % CHUNKS), from, inside);
        }
    }

    static __device__ inline void send_outputs(T *tile, const filter<T> &f, const chunk &c)
    {
        const int row = threadIdx.x / CHUNKS, output = blockIdx.y * BN + output_at(row);
        if (row >= BN)
            return;
        const bool there = c.row < f.rows && output < f.outputs;
        const T *from =
            f.at + (there ? (long long)output * f.output + c.row * f.tap_row + c.column * f.tap_column + c.inner : 0);
        send<16>(slot(tile, row, threadIdx.x % CHUNKS), from, there);
    }

    __device__ inline void multiply(const T *left, const T *right)
    {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        const int row = warp / ACROSS * 32 + lane % 16, output = warp % ACROSS * 32 + lane / 16 * 8 + lane % 8;
#pragma unroll
        for (int k = 0; k < CHUNKS; k += 2) {
            unsigned a[2][4], b[2][4];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                take_squares<false>(a[i], slot(left, row + i * 16, k + lane / 16));
                take_squares<false>(b[i], slot(right, output + i * 16, k + lane / 8 % 2));
            }
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    const unsigned pair[2] = {b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]};
                    add_tensor(sum[i][j], a[i], pair, T());
                }
        }
    }

    /* A part of the sums of this block's tile, of product `kind` in the grid. True where the block has the whole sums
     * then, and goes on with them. shared: SHARED bytes. */
    __device__ inline bool run(const source<T> &x, const filter<T> &f, const place *places, T *shared, const split_k &k,
                               int kind, int part)
    {
        const int first = part * k.steps, all = (f.rows * f.columns * f.inner + DEPTH - 1) / DEPTH;
        const int steps = min(k.steps, all - first);
        chunk c = chunk_of(f, first * DEPTH + threadIdx.x % CHUNKS * EIGHT);
        T *left = shared, *right = shared + STAGES * LEFT;
#pragma unroll
        for (int i = 0; i < 32; i++)
            sum[i / 16][i / 4 % 4][i % 4] = 0;
        for (int step = 1 - STAGES, next = 0; step < steps; step++) {
            if (step >= 0) {
                wait_sent<STAGES - 2>();
                __syncthreads();
            }
            if (step + STAGES - 1 < steps) {
                send_rows(left + next * LEFT, x, f, c, places);
                send_outputs(right + next * RIGHT, f, c);
                c = chunk_after(f, c);
            }
            sent();
            next = next + 1 < STAGES ? next + 1 : 0; /* the oldest, too */
            if (step >= 0)
                multiply(left + next * LEFT, right + next * RIGHT);
        }
        wait_sent<0>();
        return k.splits == 1 || join_parts<8, THREADS>(&sum[0][0][0], k, kind, part);
    }
#endif
};

/* Eight outputs side by side, those that are there. */
template <class T> __device__ inline void store_eight(T *to, const eight<T> &value, int left, bool whole)
{
    if (whole) {
        *(eight<T> *)to = value;
        return;
    }
#pragma unroll
    for (int j = 0; j < EIGHT; j++)
        if (j < left)
            to[j] = value.at[j];
}

template <class T> __global__ void __launch_bounds__(THREADS) pack_half_kernel(const packing<T> weights, bool ready)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    const bool there = i < weights.count();
    T value(0.0f);
    if (!ready)
        pc::wait_for_earlier();
    if (there)
        value = pc::ahead(weights.source_of(i));
    if (ready)
        pc::wait_for_earlier();
    if (there)
        weights.packed[i] = value;
}

template <class T> void pack(cudaStream_t queue, const pc__cuda_conv *s, const packing<T> &weights)
{
    pc::start(pack_half_kernel<T>, (unsigned)((weights.count() + THREADS - 1) / THREADS), THREADS, queue, s->early,
              weights, s->ready_weight);
}

template <class T> filter<T> filter_of(const pc__cuda_conv *s, const packing<T> &weights)
{
    const int inner = weights.inner;
    return {weights.packed, weights.outputs, inner, weights.taps * inner, s->kh, s->kw, s->kw * inner, inner};
}

constexpr int width_of(int outputs)
{
    return outputs <= 32 ? 32 : 64;
}

/* A block adds the parts of a tile one after the other, two in the time of a step: the least of a part's steps and all parts. */
inline int least_of(int steps)
{
    int least = LEAST;
    while (2 * least * least < steps)
        least++;
    return least;
}

/* `rows` by `outputs` of each of `products`. */
inline cut_tiles tiling_of(const pc__cuda_conv *s, long long rows, int outputs, int products, int depth)
{
    const int wide = width_of(outputs), high = THREADS * 32 / wide, steps = (depth + DEPTH - 1) / DEPTH;
    return {(rows + high - 1) / high * ((outputs + wide - 1) / wide) * products, high * wide, steps, least_of(steps),
            BLOCKS * s->multiprocessors};
}

inline bool on_16_bytes(const void *pointer)
{
    return (uintptr_t)pointer % 16 == 0;
}

} // namespace

#endif
