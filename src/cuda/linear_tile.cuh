/* linear_tile.cuh: a tile of a product of floats, c[row][column] = sum over k of a[row][k] b[k][column], by a block.
 *
 * A warp makes 32 rows x 8 N columns on matrix units (tensor.cuh); warps lie side by side in the tile, or share it and
 * take turns along k. Operands are sent to shared memory, up to DEPTH of k in one go: what takes time here is one wait
 * after the other. Each lies there as in global memory, side by side along k or across it, with rows padded so that the
 * eight or four rows that a warp reads together fall into different banks.
 *
 * What matrix units make NaN, because a factor is infinite or too large to be halved, is computed again in floats.
 *
 * Small kernels run their code once, and wait for it to arrive from memory as they do for data: it is kept short, with
 * loops that are not unrolled and one place for what is rare. */
#ifndef PC__CUDA_LINEAR_TILE_CUH
#define PC__CUDA_LINEAR_TILE_CUH

#include "cuda/activations.cuh"
#include "cuda/early.cuh"
#include "cuda/tensor.cuh"

namespace
{

constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr int EXACT = 64; /* of k, after which sums leave the matrix units, which cut them short */

/* A matrix in global memory: elements (slow, fast) at data[slow * row + fast]. */
struct stored {
    const float *data;
    int64_t row;
    int slows, fasts;
    bool wide; /* sixteen bytes may be read at once */

    __device__ float at(int slow, int fast) const
    {
        return data[slow * row + fast];
    }
};

/* The gradient before the activation, from dy and the value y behind it, which lie alike. */
struct gradient {
    stored dy, y;
    int activation;

    __device__ float at(int slow, int fast) const
    {
        const float g = dy.at(slow, fast);
        return activation ? activation_gradient(activation, g, y.at(slow, fast)) : g;
    }
};

/* Four elements to shared memory, those beyond the ends as zeros. Without matrix units there is no such engine either.
 */
__device__ inline void send_four(float *to, const stored &from, int slow, int fast, int slow_end, int fast_end)
{
    const int there = slow < slow_end ? max(0, min(4, fast_end - fast)) : 0;
    const float *at = there ? from.data + slow * from.row + fast : from.data;
#if TENSOR_UNITS
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    if (from.wide) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(at), "r"(4 * there) : "memory");
        return;
    }
#pragma unroll 1
    for (int j = 0; j < 4; j++)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(place + 4 * j),
                     "l"(j < there ? at + j : from.data), "r"(j < there ? 4 : 0)
                     : "memory");
#else
    for (int j = 0; j < 4; j++)
        to[j] = j < there ? at[j] : 0.0f;
#endif
}

#if !TENSOR_UNITS
__device__ inline void sent()
{
}

template <int LATER> __device__ inline void wait_sent()
{
}
#endif

/* OUTER x DEPTH of an operand; ALONG_K: k is the fast index in memory. */
template <bool ALONG_K, int OUTER, int DEPTH> struct operand {
    static constexpr int FAST = ALONG_K ? DEPTH : OUTER, SLOW = ALONG_K ? OUTER : DEPTH;
    static constexpr int ROW = FAST + (ALONG_K ? 4 : 8);
    static constexpr int FOURS = OUTER * DEPTH / 4;
    static constexpr int FLOATS = SLOW * ROW;

    /* k in [k, k + deep); from `last` on they count as zero */
    static __device__ void bring(float *to, const stored &from, int outer, int k, int deep, int last)
    {
        const int slow_end = ALONG_K ? from.slows : last, fast_end = ALONG_K ? last : from.fasts;
#pragma unroll 2
        for (int i = threadIdx.x; i < FOURS; i += THREADS) {
            const int slow = i / (FAST / 4), fast = i % (FAST / 4) * 4;
            if ((ALONG_K ? fast : slow) >= deep)
                continue;
            send_four(to + slow * ROW + fast, from, slow + (ALONG_K ? outer : k), fast + (ALONG_K ? k : outer),
                      slow_end, fast_end);
        }
    }

    /* dy in shared memory becomes the gradient, each thread doing what it sent. */
    static __device__ void through(float *dy, const float *y, int activation, int deep)
    {
#pragma unroll 1
        for (int i = threadIdx.x; i < FOURS; i += THREADS) {
            const int slow = i / (FAST / 4), fast = i % (FAST / 4) * 4, at = slow * ROW + fast;
            if ((ALONG_K ? fast : slow) >= deep)
                continue;
#pragma unroll 1
            for (int j = 0; j < 4; j++)
                dy[at + j] = activation_gradient(activation, dy[at + j], y[at + j]);
        }
    }

    static __device__ float get(const float *shared, int outer, int k)
    {
        return ALONG_K ? shared[outer * ROW + k] : shared[k * ROW + outer];
    }

    template <class From> static __device__ float again(const From &from, int outer, int k)
    {
        return ALONG_K ? from.at(outer, k) : from.at(k, outer);
    }

    static __device__ int outers(const stored &from)
    {
        return ALONG_K ? from.slows : from.fasts;
    }

    static __device__ int outers(const gradient &from)
    {
        return outers(from.dy);
    }
};

/* How the eight warps share a tile: WR x WC beside each other, WK along k. */
template <int WR_, int WC_, int WK_, int N_, int DEPTH_> struct layout {
    static constexpr int WR = WR_, WC = WC_, WK = WK_, N = N_, DEPTH = DEPTH_;
    static constexpr int GROUP = 8 * WK; /* of k, that the warps take at once */
    static constexpr int ROWS = 32 * WR, COLUMNS = 8 * N * WC;
    static constexpr int TILE = ROWS * COLUMNS;
    static_assert(WR * WC * WK * 32 == THREADS, "all warps");
};

/* One step of 8 along k, from shared memory at a and b. */
template <class L, class A, class B>
__device__ inline void step8(float (&sum)[2][L::N][4], const float *a, const float *b, int k)
{
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, warp = threadIdx.x / 32 / L::WK;
    const int row = warp / L::WC * 32, column = warp % L::WC * 8 * L::N;
#if TENSOR_UNITS
    halves<4> left[2];
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            left[h].take(i, A::get(a, row + h * 16 + i % 2 * 8 + g, k + i / 2 * 4 + t));
    halves<2> right[L::N];
#pragma unroll
    for (int n = 0; n < L::N; n++)
#pragma unroll
        for (int i = 0; i < 2; i++)
            right[n].take(i, B::get(b, column + n * 8 + g, k + i * 4 + t));
#pragma unroll
    for (int pass = 0; pass < 3; pass++)
#pragma unroll
        for (int n = 0; n < L::N; n++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                add_tensor(sum[h][n], pass == 0 ? left[h].low : left[h].high, pass == 1 ? right[n].low : right[n].high);
#else
    for (int d = 0; d < 8; d++)
        for (int h = 0; h < 2; h++)
            for (int n = 0; n < L::N; n++)
                for (int i = 0; i < 4; i++)
                    sum[h][n][i] += A::get(a, row + h * 16 + i / 2 * 8 + g, k + d) *
                                    B::get(b, column + n * 8 + t * 2 + i % 2, k + d);
#endif
}

template <class L, class A, class B> struct tile {
    static constexpr int shared(int operands)
    {
        return operands > L::TILE * L::WK ? operands : L::TILE * L::WK;
    }
    static constexpr int PLAIN = shared(A::FLOATS + B::FLOATS), GRADIENT = shared(2 * A::FLOATS + B::FLOATS);

    /* The tile at (row, column), over k in [from, to): give(r, c, i, value) for each of its elements, of which (r, c)
     * is number i. PLAIN or GRADIENT floats at `memory`. Each thread calls also(at, deep) for every part of a in shared
     * memory, `deep` of k. */
    template <class FromA, class Also, class Give>
    static __device__ void run(const FromA &a, const stored &b, int row, int column, int from, int to, float *memory,
                               const Also &also, const Give &give)
    {
        float sum[2][L::N][4] = {}, total[2][L::N][4] = {};
#pragma unroll 1
        for (int k = from; k < to; k += L::DEPTH) {
            const int deep = min(L::DEPTH, (to - k + L::GROUP - 1) / L::GROUP * L::GROUP);
            bring(memory, a, row, k, deep, to);
            B::bring(memory + A::FLOATS, b, column, k, deep, to);
            sent();
            wait_sent<0>();
            prepare(a, memory, deep);
            __syncthreads();
            also(memory, deep);
#pragma unroll 1
            for (int d = 0; d < deep; d += L::GROUP) {
                step8<L, A, B>(sum, memory, memory + A::FLOATS, d + threadIdx.x / 32 % L::WK * 8);
                if ((d / L::GROUP + 1) % (EXACT / 8) == 0)
                    collect(sum, total);
            }
            __syncthreads();
        }
        collect(sum, total);
        put(total, memory);
        __syncthreads();
#pragma unroll 1
        for (int i = threadIdx.x; i < L::TILE; i += THREADS) {
            const int r = row + i / L::COLUMNS, c = column + i % L::COLUMNS;
            float value = memory[i];
#pragma unroll
            for (int w = 1; w < L::WK; w++)
                value += memory[w * L::TILE + i];
            if (r >= A::outers(a) || c >= B::outers(b))
                continue;
            if (value != value)
                value = again(a, b, r, c, from, to);
            give(r, c, i, value);
        }
    }

  private:
    static __device__ void bring(float *at, const stored &a, int row, int k, int deep, int to)
    {
        A::bring(at, a, row, k, deep, to);
    }

    static __device__ void bring(float *at, const gradient &a, int row, int k, int deep, int to)
    {
        A::bring(at, a.dy, row, k, deep, to);
        if (a.activation)
            A::bring(at + A::FLOATS + B::FLOATS, a.y, row, k, deep, to);
    }

    static __device__ void prepare(const stored &, float *, int)
    {
    }

    static __device__ void prepare(const gradient &a, float *at, int deep)
    {
        if (a.activation)
            A::through(at, at + A::FLOATS + B::FLOATS, a.activation, deep);
    }

    static __device__ void collect(float (&sum)[2][L::N][4], float (&total)[2][L::N][4])
    {
#pragma unroll
        for (int e = 0; e < 8 * L::N; e++) {
            (&total[0][0][0])[e] += (&sum[0][0][0])[e];
            (&sum[0][0][0])[e] = 0;
        }
    }

    /* The warps' sums, one after the other where they share the tile. */
    static __device__ void put(const float (&total)[2][L::N][4], float *memory)
    {
        const int warp = threadIdx.x / 32 / L::WK, lane = threadIdx.x % 32;
        const int row = warp / L::WC * 32 + lane / 4, column = warp % L::WC * 8 * L::N + lane % 4 * 2;
        float *to = memory + threadIdx.x / 32 % L::WK * L::TILE + row * L::COLUMNS + column;
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int n = 0; n < L::N; n++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    to[(h * 16 + i / 2 * 8) * L::COLUMNS + n * 8 + i % 2] = total[h][n][i];
    }

    template <class FromA>
    static __device__ float again(const FromA &a, const stored &b, int row, int column, int from, int to)
    {
        float value = 0;
#pragma unroll 1
        for (int k = from; k < to; k++)
            value += A::again(a, row, k) * B::again(b, column, k);
        return value;
    }
};

} // namespace

#endif
