/* linear_tile.cuh: a tile of a product of floats, c[row][column] = sum over k of a[row][k] b[k][column], by a block.
 *
 * A warp makes 32 rows x 8 N columns on matrix units (tensor.cuh); warps lie side by side in the tile, or share it and
 * take turns along k. Operands come through registers into shared memory, DEPTH of k at a time, the next while this one
 * is worked on; each lies there as in global memory, side by side along k or across it, with rows padded so that the
 * eight or four rows that a warp reads together fall into different banks.
 *
 * What matrix units make NaN, because a factor is infinite or too large to be halved, is computed again in floats. */
#ifndef PC__CUDA_LINEAR_TILE_CUH
#define PC__CUDA_LINEAR_TILE_CUH

#include "cuda/activations.cuh"
#include "cuda/early.cuh"
#include "cuda/tensor.cuh"

namespace
{

constexpr int THREADS = 128;
constexpr int EXACT = 64; /* of k, after which sums leave the matrix units, which cut them short */

/* A matrix in global memory: elements (slow, fast) at data[slow * row + fast]. */
struct stored {
    const float *data;
    int64_t row;
    int slows, fasts;
    bool wide; /* four elements may be read at once */

    __device__ float at(int slow, int fast) const
    {
        return data[slow * row + fast];
    }
    __device__ float4 four(int slow, int fast) const
    {
        return *reinterpret_cast<const float4 *>(data + slow * row + fast);
    }
};

/* The gradient before the activation: dy and y lie alike. */
struct gradient {
    stored dy;
    const float *y;
    int activation;
    int slows, fasts;
    bool wide;

    __device__ float at(int slow, int fast) const
    {
        const float g = dy.at(slow, fast);
        return activation ? activation_gradient(activation, g, y[slow * dy.row + fast]) : g;
    }
    __device__ float4 four(int slow, int fast) const
    {
        float4 g = dy.four(slow, fast);
        if (activation) {
            const float4 v = *reinterpret_cast<const float4 *>(y + slow * dy.row + fast);
            g.x = activation_gradient(activation, g.x, v.x);
            g.y = activation_gradient(activation, g.y, v.y);
            g.z = activation_gradient(activation, g.z, v.z);
            g.w = activation_gradient(activation, g.w, v.w);
        }
        return g;
    }
};

/* OUTER x DEPTH of an operand; ALONG_K: k is the fast index in memory. */
template <class From, bool ALONG_K, int OUTER, int DEPTH> struct operand {
    static constexpr int FAST = ALONG_K ? DEPTH : OUTER, SLOW = ALONG_K ? OUTER : DEPTH;
    static constexpr int ROW = FAST + (ALONG_K ? 4 : 8);
    static constexpr int FOURS = OUTER * DEPTH / 4 / THREADS; /* of a thread */
    static constexpr int FLOATS = SLOW * ROW;
    static_assert(FOURS * 4 * THREADS == OUTER * DEPTH, "each thread brings in as much");

    float4 held[FOURS];

    /* `last`: k from there on counts as zero */
    __device__ void fetch(const From &from, int outer, int k, int last)
    {
        const int slow_end = ALONG_K ? from.slows : last, fast_end = ALONG_K ? last : from.fasts;
#pragma unroll
        for (int i = 0; i < FOURS; i++) {
            const int place = threadIdx.x + i * THREADS;
            const int slow = place / (FAST / 4) + (ALONG_K ? outer : k);
            const int fast = place % (FAST / 4) * 4 + (ALONG_K ? k : outer);
            held[i] = make_float4(0, 0, 0, 0);
            if (slow >= slow_end)
                continue;
            if (from.wide && fast + 4 <= fast_end) {
                held[i] = from.four(slow, fast);
                continue;
            }
            float *one = &held[i].x;
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (fast + j < fast_end)
                    one[j] = from.at(slow, fast + j);
        }
    }

    __device__ void put(float *shared) const
    {
#pragma unroll
        for (int i = 0; i < FOURS; i++) {
            const int place = threadIdx.x + i * THREADS;
            *reinterpret_cast<float4 *>(shared + place / (FAST / 4) * ROW + place % (FAST / 4) * 4) = held[i];
        }
    }

    static __device__ float get(const float *shared, int outer, int k)
    {
        return ALONG_K ? shared[outer * ROW + k] : shared[k * ROW + outer];
    }

    static __device__ float again(const From &from, int outer, int k)
    {
        return ALONG_K ? from.at(outer, k) : from.at(k, outer);
    }
};

/* How the four warps share a tile: WR x WC beside each other, WK along k. */
template <int WR_, int WC_, int WK_, int N_, int DEPTH_> struct layout {
    static constexpr int WR = WR_, WC = WC_, WK = WK_, N = N_, DEPTH = DEPTH_;
    static constexpr int ROWS = 32 * WR, COLUMNS = 8 * N * WC;
    static constexpr int VALUES = 8 * N / WK; /* of a thread, in the end */
    static_assert(WR * WC * WK * 32 == THREADS, "four warps");
};

/* Where value v of a thread lies in the tile. Sums that warps shared were dealt out anew, 32 to a former value. */
template <class L> __device__ inline void place_of(int v, int &row, int &column)
{
    const int e = L::WK == 1 ? v : v * L::WK + threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp = L::WK == 1 ? threadIdx.x / 32 : 0;
    const int half = e / (4 * L::N), n = e / 4 % L::N, i = e % 4;
    row = warp / L::WC * 32 + half * 16 + i / 2 * 8 + lane / 4;
    column = warp % L::WC * 8 * L::N + n * 8 + lane % 4 * 2 + i % 2;
}

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
    static constexpr int FLOATS = A::FLOATS + B::FLOATS;
    static constexpr int SHARED = L::WK > 1 && FLOATS < 8 * L::N * THREADS ? 8 * L::N * THREADS : FLOATS;

    /* value[v] of the tile at (row, column), over k in [from, to). SHARED floats at `shared`. Each thread calls
     * also(at) for every DEPTH of a in shared memory. */
    template <class FromA, class FromB, class Also>
    static __device__ void run(const FromA &a, const FromB &b, int row, int column, int from, int to, float *shared,
                               float (&value)[L::VALUES], const Also &also)
    {
        float sum[2][L::N][4] = {}, total[2][L::N][4] = {};
        float *at_a = shared, *at_b = shared + A::FLOATS;
        A next_a;
        B next_b;
        next_a.fetch(a, row, from, to);
        next_b.fetch(b, column, from, to);
        for (int k = from; k < to; k += L::DEPTH) {
            next_a.put(at_a);
            next_b.put(at_b);
            __syncthreads();
            if (k + L::DEPTH < to) {
                next_a.fetch(a, row, k + L::DEPTH, to);
                next_b.fetch(b, column, k + L::DEPTH, to);
            }
            also(at_a);
#pragma unroll
            for (int d = 0; d < L::DEPTH; d += 8 * L::WK)
                step8<L, A, B>(sum, at_a, at_b, d + threadIdx.x / 32 % L::WK * 8);
            __syncthreads();
            if ((k - from) / L::DEPTH % (EXACT * L::WK / L::DEPTH) == EXACT * L::WK / L::DEPTH - 1)
                collect(sum, total);
        }
        collect(sum, total);
        share(total, shared, value);
        repair(a, b, row, column, from, to, value);
    }

  private:
    static __device__ void collect(float (&sum)[2][L::N][4], float (&total)[2][L::N][4])
    {
#pragma unroll
        for (int e = 0; e < 8 * L::N; e++) {
            (&total[0][0][0])[e] += (&sum[0][0][0])[e];
            (&sum[0][0][0])[e] = 0;
        }
    }

    /* Add up what warps made of the same tile. */
    static __device__ void share(const float (&total)[2][L::N][4], float *shared, float (&value)[L::VALUES])
    {
        const float *mine = &total[0][0][0];
        if constexpr (L::WK == 1) {
#pragma unroll
            for (int v = 0; v < L::VALUES; v++)
                value[v] = mine[v];
        } else {
#pragma unroll
            for (int e = 0; e < 8 * L::N; e++)
                shared[e * THREADS + threadIdx.x] = mine[e];
            __syncthreads();
#pragma unroll
            for (int v = 0; v < L::VALUES; v++) {
                const float *part = shared + (v * L::WK + threadIdx.x / 32) * THREADS + threadIdx.x % 32;
                float s = part[0];
#pragma unroll
                for (int w = 1; w < L::WK; w++)
                    s += part[w * 32];
                value[v] = s;
            }
        }
    }

    template <class FromA, class FromB>
    static __device__ void repair(const FromA &a, const FromB &b, int row, int column, int from, int to,
                                  float (&value)[L::VALUES])
    {
#pragma unroll
        for (int v = 0; v < L::VALUES; v++) {
            if (value[v] == value[v])
                continue;
            int r, c;
            place_of<L>(v, r, c);
            float s = 0;
            if (row + r < rows_of<A>(a) && column + c < rows_of<B>(b))
                for (int k = from; k < to; k++)
                    s += A::again(a, row + r, k) * B::again(b, column + c, k);
            value[v] = s;
        }
    }

    template <class O, class From> static __device__ int rows_of(const From &from)
    {
        return O::ROW == O::FAST + 4 ? from.slows : from.fasts;
    }
};

} // namespace

#endif
