/* linear_tile.cuh: a tile of a product of floats or 16-bit numbers, c[row][column] = sum over k of a[row][k]
 * b[k][column], by a block.
 *
 * A warp makes 32 rows x 8 N columns on matrix units (tensor.cuh); warps lie side by side in the tile, or share it and
 * take turns along k. Operands are sent to shared memory, up to DEPTH of k in one go: what takes time here is one wait
 * after the other. Each lies there as in global memory, side by side along k or across it, with rows padded so that the
 * eight or four rows that a warp reads together fall into different banks.
 *
 * 16-bit numbers become floats on their way there, by registers; matrix units read such floats whole, so that one
 * product does for three, and two where a gradient comes through an activation.
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

/* An operand in global memory, OUTER (rows of a, columns of b) by k: element (slow, fast) at data[slow * row + fast].
 */
template <class T> struct source {
    const T *data;
    const T *value; /* of a gradient: what is behind the activation, which it goes through; else NULL */
    int row, outers;
    bool along_k; /* k is the fast index; else the slow one */
    bool wide;    /* four elements may be read at once: rows begin and end with whole fours */
};

template <class T> __device__ inline float element(const source<T> &s, int activation, int outer, int k)
{
    const int at = s.along_k ? outer * s.row + k : k * s.row + outer;
    const float x = s.data[at];
    return s.value ? activation_gradient(activation, x, float(s.value[at])) : x;
}

/* Four 16-bit numbers; zeros beyond those that are there. */
template <class T> struct alignas(8) quad {
    T v[4];
};

template <class T> __device__ inline quad<T> read_four(const T *from, int there, bool wide)
{
    if (wide && there >= 4)
        return *reinterpret_cast<const quad<T> *>(from);
    quad<T> q;
#pragma unroll
    for (int j = 0; j < 4; j++)
        q.v[j] = j < there ? from[j] : T(0.0f);
    return q;
}

/* Four elements to shared memory, of which `there` exist and the others are zero. The engine may read all 16 bytes of a
 * wide copy even for none of them, so `from` has them. Without matrix units there is no such engine either. */
__device__ inline void send_four(float *to, const float *from, int there, bool wide)
{
#if TENSOR_UNITS
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    if (wide) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"(4 * there)
                     : "memory");
        return;
    }
#pragma unroll 1
    for (int j = 0; j < 4; j++)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(place + 4 * j),
                     "l"(from + (j < there ? j : 0)), "r"(j < there ? 4 : 0)
                     : "memory");
#else
    for (int j = 0; j < 4; j++)
        to[j] = j < there ? from[j] : 0.0f;
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

/* How the eight warps share a tile: WR x WC beside each other, WK along k. */
template <int WR_, int WC_, int WK_, int N_, int DEPTH_, bool TURNS_> struct layout {
    static constexpr int WR = WR_, WC = WC_, WK = WK_, N = N_, DEPTH = DEPTH_;
    static constexpr bool TURNS = TURNS_; /* operands may lie across k */
    static constexpr int GROUP = 8 * WK;  /* of k, that the warps take at once */
    static constexpr int ROWS = 32 * WR, COLUMNS = 8 * N * WC;
    static constexpr int TILE = ROWS * COLUMNS;
    static_assert(WR * WC * WK * 32 == THREADS, "all warps");
};

/* Where an operand's element (outer, k) lies in shared memory: outer * outers + k * ks. */
struct strides {
    int outers, ks;
};

/* One step of 8 along k, from shared memory at a and b. Without EXACT their numbers have 11 bits at most, but for
 * gradients, which come through an activation. */
template <class L, bool EXACT>
__device__ inline void step8(float (&sum)[2][L::N][4], const float *a, strides of_a, const float *b, strides of_b)
{
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, warp = threadIdx.x / 32 / L::WK;
    a += warp / L::WC * 32 * of_a.outers;
    b += warp % L::WC * 8 * L::N * of_b.outers;
#if TENSOR_UNITS
    a += g * of_a.outers + t * of_a.ks;
    b += g * of_b.outers + t * of_b.ks;
    halves<4> left[2];
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            left[h].take(i, a[(h * 16 + i % 2 * 8) * of_a.outers + i / 2 * 4 * of_a.ks]);
    halves<2> right[L::N];
#pragma unroll
    for (int n = 0; n < L::N; n++)
#pragma unroll
        for (int i = 0; i < 2; i++)
            right[n].take(i, b[n * 8 * of_b.outers + i * 4 * of_b.ks]);
#pragma unroll
    for (int pass = EXACT || L::TURNS ? 0 : 2; pass < 3; pass += EXACT ? 1 : 2)
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
                    sum[h][n][i] += a[(h * 16 + i / 2 * 8 + g) * of_a.outers + d * of_a.ks] *
                                    b[(n * 8 + t * 2 + i % 2) * of_b.outers + d * of_b.ks];
#endif
}

template <class L, class T> struct tile {
    static constexpr int most(int x, int y)
    {
        return x > y ? x : y;
    }
    static constexpr int room(int outers)
    {
        return most(outers * (L::DEPTH + 4), L::TURNS ? L::DEPTH * (outers + 8) : 0);
    }
    static constexpr int A = room(L::ROWS), B = room(L::COLUMNS);
    static constexpr int PLAIN = most(A + B, L::TILE *L::WK), GRADIENT = most(2 * A + B, L::TILE *L::WK);

    /* The tile at (row, column), over k in [from, to): give(r, c, i, value) for each of its elements, of which (r, c)
     * is number i. PLAIN floats at `memory`, or GRADIENT where a goes through an activation. Each thread calls
     * also(at, of, deep) for every part of a in shared memory, `deep` of k. */
    template <class Also, class Give>
    static __device__ void run(const source<T> &a, const source<T> &b, int activation, int row, int column, int from,
                               int to, float *memory, const Also &also, const Give &give)
    {
        float sum[2][L::N][4] = {}, total[2][L::N][4] = {};
        const strides of_a = strides_of(a, L::ROWS), of_b = strides_of(b, L::COLUMNS);
#pragma unroll 1
        for (int k = from; k < to; k += L::DEPTH) {
            const int deep = min(L::DEPTH, (to - k + L::GROUP - 1) / L::GROUP * L::GROUP);
#pragma unroll 1
            for (int part = 0; part < (a.value ? 3 : 2); part++) {
                const bool left = part != 1;
                source<T> s = a;
                if (!left)
                    s = b;
                bring(memory + (part == 0   ? 0
                                : part == 1 ? A
                                            : A + B),
                      part == 2 ? s.value : s.data, s, left ? row : column, left ? L::ROWS : L::COLUMNS, k, deep, to);
            }
            sent();
            wait_sent<0>();
            if (a.value)
                through(memory, memory + A + B, a, activation, deep);
            __syncthreads();
            also(memory, of_a, deep);
#pragma unroll 1
            for (int d = threadIdx.x / 32 % L::WK * 8; d < deep; d += L::GROUP) {
                step8<L, IS_FLOAT>(sum, memory + d * of_a.ks, of_a, memory + A + d * of_b.ks, of_b);
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
            if (r >= a.outers || c >= b.outers)
                continue;
            if (value != value)
                value = again(a, b, activation, r, c, from, to);
            give(r, c, i, value);
        }
    }

  private:
    static constexpr bool IS_FLOAT = sizeof(T) == sizeof(float);

    static __device__ strides strides_of(const source<T> &s, int outers)
    {
        return s.along_k ? strides{L::DEPTH + 4, 1} : strides{1, outers + 8};
    }

    /* `deep` of k from `k` on, of `count` rows or columns; beyond the ends there are zeros. Eight threads read 128
     * bytes side by side; of 16-bit numbers 64, all of a row before the first is stored. */
    static __device__ void bring(float *to, const T *data, source<T> s, int outer, int count, int k, int deep,
                                 int k_end)
    {
        const int slows = s.along_k ? count : deep, fasts = s.along_k ? deep : count;
        const int slow0 = s.along_k ? outer : k, fast0 = s.along_k ? k : outer;
        const int slow_end = s.along_k ? s.outers : k_end, fast_end = s.along_k ? k_end : s.outers;
        const int to_row = s.along_k ? L::DEPTH + 4 : count + 8;
        if constexpr (IS_FLOAT) {
#pragma unroll 1
            for (int slow = threadIdx.x / 8; slow < slows; slow += THREADS / 8)
#pragma unroll 1
                for (int fast = threadIdx.x % 8 * 4; fast < fasts; fast += 32) {
                    const int there = slow0 + slow < slow_end ? max(0, min(4, fast_end - fast0 - fast)) : 0;
                    send_four(to + slow * to_row + fast, data + (there ? (slow0 + slow) * s.row + fast0 + fast : 0),
                              there, s.wide);
                }
        } else {
            constexpr int MOST = most(L::DEPTH, most(L::ROWS, L::COLUMNS)) / 32;
#pragma unroll 1
            for (int slow = threadIdx.x / 8; slow < slows; slow += THREADS / 8) {
                const int room = slow0 + slow < slow_end ? fast_end - fast0 : 0;
                const T *from = data + (slow0 + slow) * s.row + fast0;
                quad<T> q[MOST];
#pragma unroll
                for (int i = 0, fast = threadIdx.x % 8 * 4; i < MOST; i++, fast += 32)
                    q[i] = read_four(from + fast, fast < fasts ? room - fast : 0, s.wide);
#pragma unroll
                for (int i = 0, fast = threadIdx.x % 8 * 4; i < MOST; i++, fast += 32)
                    if (fast < fasts)
                        *reinterpret_cast<float4 *>(to + slow * to_row + fast) =
                            make_float4(q[i].v[0], q[i].v[1], q[i].v[2], q[i].v[3]);
            }
        }
    }

    /* dy in shared memory becomes the gradient, each thread doing what it sent. */
    static __device__ void through(float *dy, const float *value, const source<T> &s, int activation, int deep)
    {
        const int slows = s.along_k ? L::ROWS : deep, fasts = s.along_k ? deep : L::ROWS;
        const int row = s.along_k ? L::DEPTH + 4 : L::ROWS + 8;
#pragma unroll 1
        for (int slow = threadIdx.x / 8; slow < slows; slow += THREADS / 8)
#pragma unroll 1
            for (int fast = threadIdx.x % 8 * 4; fast < fasts; fast += 32) {
                float4 *g = reinterpret_cast<float4 *>(dy + slow * row + fast);
                float4 x = *g, y = *reinterpret_cast<const float4 *>(value + slow * row + fast);
                x.x = activation_gradient(activation, x.x, y.x);
                x.y = activation_gradient(activation, x.y, y.y);
                x.z = activation_gradient(activation, x.z, y.z);
                x.w = activation_gradient(activation, x.w, y.w);
                *g = x;
            }
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

    static __device__ float again(const source<T> &a, const source<T> &b, int activation, int row, int column, int from,
                                  int to)
    {
        float value = 0;
#pragma unroll 1
        for (int k = from; k < to; k++)
            value += element(a, activation, row, k) * element(b, 0, column, k);
        return value;
    }
};

} // namespace

#endif
