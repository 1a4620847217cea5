/* tile_part.cuh: what a tile (tile.cuh) reads, DEPTH of the product at a time: pixels under the taps of the kernel, and
 * weights. */
#ifndef PC__CUDA_CONV_TILE_PART_CUH
#define PC__CUDA_CONV_TILE_PART_CUH

#include "cuda/shared/load.cuh"
#include "cuda/shared/mma.cuh"

namespace
{

constexpr int THREADS = 256, DEPTH = 16;

/* Where a row of the tile reads at tap (0, 0), which may be beside the picture: its byte, and column << 32 | row. A row
 * that is not there lies far outside. */
struct alignas(16) place {
    long long at, spot;
};

constexpr int NOWHERE = -(1 << 28);

__device__ inline place nowhere()
{
    return {0, (unsigned)NOWHERE};
}

struct tap {
    int row, column, inner;
};

/* Weights of a product: depth is [taps of a column][taps of a row][inner]. */
template <class T> struct weights {
    const T *at;
    int taps_in_row, inner, depth, outputs;
    int tap_row, tap_column, step, output; /* distances in elements: rows of taps, taps, inner, outputs */
    int group;                             /* by how much more a group lies behind another than its outputs say */
    bool whole;                            /* outputs lie side by side, in fours that lie on 16 bytes */
    tap stride;                            /* how far DEPTH leads */
};

template <class T> __host__ __device__ inline tap tap_of(const weights<T> &w, int k)
{
    const unsigned t = (unsigned)k / (unsigned)w.inner, row = t / (unsigned)w.taps_in_row;
    return {(int)row, (int)(t - row * w.taps_in_row), (int)(k - t * w.inner)};
}

/* The tap that lies DEPTH behind. */
template <class T> __device__ inline tap tap_after(const weights<T> &w, tap t)
{
    t.inner += w.stride.inner, t.column += w.stride.column, t.row += w.stride.row;
    if (t.inner >= w.inner)
        t.inner -= w.inner, t.column++;
    if (t.column >= w.taps_in_row)
        t.column -= w.taps_in_row, t.row++;
    return t;
}

/* What the rows read: [n][h][w][channels]. Taps lead so many rows and columns on from a place, or back. */
template <class T> struct picture {
    const T *x;
    int h, w, channels, down, right;
};

template <class T> __device__ inline place place_at(const picture<T> &in, long long image, int row, int column)
{
    const long long at = ((image * in.h + row) * in.w + column) * in.channels;
    return {at * (long long)sizeof(T), (long long)((unsigned long long)(unsigned)column << 32 | (unsigned)row)};
}

/* What a tap adds to a place. */
template <class T> struct step {
    const char *from;
    int row, column;
};

template <class T> __device__ inline step<T> step_of(const picture<T> &in, const tap &t)
{
    const int row = t.row * in.down, column = t.column * in.right;
    const long long at = ((long long)row * in.w + column) * in.channels + t.inner;
    return {(const char *)(in.x + at), row, column};
}

/* With no branch. */
template <class T> __device__ inline bool is_inside(const picture<T> &in, const place &p, const step<T> &by)
{
    const bool row = (unsigned)((int)p.spot + by.row) < (unsigned)in.h;
    return row & ((unsigned)((int)(p.spot >> 32) + by.column) < (unsigned)in.w);
}

/* BM x 16 of the operand: VECTOR elements of depth at once. Thread t has depth (t % LANES) * VECTOR, rows t / LANES + i
 * * STEP. */
template <class T, int BM, int VECTOR> struct rows_part {
    static constexpr int LANES = DEPTH / VECTOR, STEP = THREADS / LANES, COUNT = BM / STEP;
    T at[COUNT][VECTOR];
    tap t;
    int k;

    __device__ inline void start(const weights<T> &w, int from)
    {
        k = from + threadIdx.x % LANES * VECTOR;
        t = tap_of(w, k);
    }

    /* What this thread's tap adds to its places: what leads far outside, behind the last. And on to the next. */
    __device__ inline step<T> advance(const picture<T> &in, const weights<T> &w)
    {
        step<T> by = step_of(in, t);
        if (k >= w.depth)
            by.row = NOWHERE;
        t = tap_after(w, t);
        k += DEPTH;
        return by;
    }

    __device__ inline void load(const picture<T> &in, const weights<T> &w, const place *places)
    {
        const step<T> by = advance(in, w);
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            vector<T, VECTOR> value = {};
            const place p = places[threadIdx.x / LANES + i * STEP];
            if (is_inside(in, p, by))
                value = *(const vector<T, VECTOR> *)(by.from + p.at);
#pragma unroll
            for (int j = 0; j < VECTOR; j++)
                at[i][j] = value.at[j];
        }
    }

    /* Depth by depth. */
    __device__ inline void store(T (*tile)[BM + 4]) const
    {
        const int under = threadIdx.x % LANES * VECTOR, row = threadIdx.x / LANES;
#pragma unroll
        for (int i = 0; i < COUNT; i++)
#pragma unroll
            for (int j = 0; j < VECTOR; j++)
                tile[under + j][row + i * STEP] = at[i][j];
    }

#if TENSOR_UNITS
    /* Row by row, without registers between. */
    __device__ inline void send_to(T (*tile)[DEPTH], const picture<T> &in, const weights<T> &w, const place *places)
    {
        const int under = threadIdx.x % LANES * VECTOR, row = threadIdx.x / LANES;
        const step<T> by = advance(in, w);
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const place p = places[row + i * STEP];
            send_or_clear<VECTOR * sizeof(T)>(&tile[row + i * STEP][under], by.from + p.at, is_inside(in, p, by));
        }
    }
#endif
};

/* 16 x BN of the weights: thread t has depth t / (BN / 4) and four outputs. */
template <class T, int BN> struct weights_part {
    vector<T, 4> at;
    tap next;
    int k;

    __device__ inline void start(const weights<T> &w, int from)
    {
        k = from + threadIdx.x / (BN / 4);
        next = tap_of(w, k);
    }

    /* Where this thread reads, or NULL; and on to the next step. */
    __device__ inline const T *advance(const weights<T> &w, int column)
    {
        const bool there = threadIdx.x < DEPTH * BN / 4 && k < w.depth && column < w.outputs;
        const T *from = w.at + next.row * w.tap_row + next.column * w.tap_column + next.inner * w.step;
        next = tap_after(w, next);
        k += DEPTH;
        return there ? from + column * w.output : NULL;
    }

    __device__ inline void load(const weights<T> &w, int column)
    {
        column += threadIdx.x % (BN / 4) * 4;
        const T *from = advance(w, column);
        at = {};
        if (from && w.whole)
            at = *(const vector<T, 4> *)from;
        else if (from)
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (column + j < w.outputs)
                    at.at[j] = from[j * w.output];
    }

    __device__ inline void store(T (*tile)[BN]) const
    {
        if (threadIdx.x < DEPTH * BN / 4)
            *(vector<T, 4> *)&tile[threadIdx.x / (BN / 4)][threadIdx.x % (BN / 4) * 4] = at;
    }

#if TENSOR_UNITS
    /* Without registers between. Of every 16 outputs of a warp the first two of each four come first: as matrix units
     * spread four outputs to a thread, and two of eight that are left. */
    template <int WIDE> __device__ inline void send_to(T (*tile)[BN + 2], const weights<T> &w, int column)
    {
        const int four = threadIdx.x % (BN / 4), of_warp = four % (WIDE / 4), before = four / (WIDE / 4) * WIDE;
        const bool paired = of_warp / 4 < WIDE / 16;
        column += four * 4;
        const T *from = advance(w, column);
        if (threadIdx.x >= DEPTH * BN / 4)
            return;
        T *to = &tile[threadIdx.x / (BN / 4)][before + of_warp / 4 * 16 + of_warp % 4 * (paired ? 2 : 4)];
        T *then = to + (paired ? 8 : 2);
        if (w.whole) {
            send<2 * sizeof(T)>(to, from ? from : w.at, from);
            send<2 * sizeof(T)>(then, from ? from + 2 : w.at, from);
            return;
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const bool there = from && column + j < w.outputs;
            send<sizeof(T)>((j < 2 ? to : then) + j % 2, there ? from + j * w.output : w.at, there);
        }
    }
#endif
};

} // namespace

#endif
