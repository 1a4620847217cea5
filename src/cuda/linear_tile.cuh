/* linear_tile.cuh: a tile of a product of floats or 16-bit numbers, c[row][column] = sum over k of a[row][k]
 * b[k][column], by a block.
 *
 * A warp makes 32 rows x 8 N columns on matrix units (tensor.cuh); warps lie side by side in the tile, or share it and
 * take turns along k. Operands are sent to shared memory, up to DEPTH of k in one go: what takes time here is one wait
 * after the other. Each lies there as in global memory, side by side along k or across it, with rows padded so that the
 * eight or four rows that a warp reads together fall into different banks.
 *
 * 16-bit numbers arrive in the room of the floats that they become there; matrix units read such floats whole, so that
 * one product does for three, and two where a gradient comes through an activation.
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

template <class T> struct alignas(4 * sizeof(T)) quad {
    T v[4];
};

__device__ inline float4 sum_of(float4 x, float4 y)
{
    return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

/* As many of four as are there; all at once where they are wide. */
template <class T> __device__ inline void store_four(T *to, float4 v, int there, bool wide)
{
    const quad<T> q = {{T(v.x), T(v.y), T(v.z), T(v.w)}};
    if (wide)
        *reinterpret_cast<quad<T> *>(to) = q;
#pragma unroll
    for (int j = 0; j < 4; j++)
        if (!wide && j < there)
            to[j] = q.v[j];
}

/* Four elements to shared memory; zeros where they are not there. Without matrix units there is no engine that brings
 * them either. */
template <class T> __device__ inline void send_four(T *to, const T *from, bool there)
{
    if (!there)
        *reinterpret_cast<quad<T> *>(to) = quad<T>{};
#if TENSOR_UNITS
    else if constexpr (sizeof(T) == sizeof(float))
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
                     "l"(from), "r"(16)
                     : "memory");
    else
        send<4 * sizeof(T)>(to, from, true);
#else
    else
        *reinterpret_cast<quad<T> *>(to) = *reinterpret_cast<const quad<T> *>(from);
#endif
}

/* As many as are there, one by one: of floats. The engine brings no 16-bit numbers. */
__device__ inline void send_some(float *to, const float *from, int there)
{
#pragma unroll 1
    for (int j = 0; j < 4; j++) {
#if TENSOR_UNITS
        if (j < there) {
            send<sizeof(float)>(to + j, from + j, true);
            continue;
        }
#endif
        to[j] = j < there ? from[j] : 0.0f;
    }
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

    /* The tile at (row, column), over k in [from, to): give(r, c, i, value, there) for each four of its elements, of
     * which (r, c) is number i and `there` exist. PLAIN floats at `memory`, or GRADIENT where a goes through an
     * activation. Each thread calls also(at, of, deep) for every part of a in shared memory, `deep` of k. */
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
                bring(memory + place_of(part), part == 2 ? s.value : s.data, s, left ? row : column,
                      left ? L::ROWS : L::COLUMNS, k, deep, to);
            }
            sent();
            wait_sent<0>();
            if constexpr (!IS_FLOAT)
#pragma unroll 1
                for (int part = 0; part < (a.value ? 3 : 2); part++)
                    widen(memory + place_of(part), area_of(part == 1 ? b : a, part == 1 ? L::COLUMNS : L::ROWS, deep));
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
        for (int i = threadIdx.x * 4; i < L::TILE; i += THREADS * 4) {
            const int r = row + i / L::COLUMNS, c = column + i % L::COLUMNS;
            const int there = r < a.outers ? b.outers - c : 0;
            float4 *const four = reinterpret_cast<float4 *>(memory + i);
            float4 value = *four;
#pragma unroll
            for (int w = 1; w < L::WK; w++)
                value = sum_of(value, *reinterpret_cast<float4 *>(memory + w * L::TILE + i));
            if (there <= 0)
                continue;
            if (any_nan(value)) {
                *four = value;
#pragma unroll 1
                for (int j = 0; j < min(there, 4); j++)
                    if (memory[i + j] != memory[i + j])
                        memory[i + j] = again(a, b, activation, r, c + j, from, to);
                value = *four;
            }
            give(r, c, i, value, there);
        }
    }

  private:
    static constexpr bool IS_FLOAT = sizeof(T) == sizeof(float);

    static __device__ strides strides_of(const source<T> &s, int outers)
    {
        return s.along_k ? strides{L::DEPTH + 4, 1} : strides{1, outers + 8};
    }

    /* Of a part in shared memory: so many, `row` floats from one of the slow index to the next. */
    struct area {
        int slows, fasts, row;
    };

    static __device__ area area_of(const source<T> &s, int count, int deep)
    {
        return s.along_k ? area{count, deep, L::DEPTH + 4} : area{deep, count, count + 8};
    }

    /* a, b, and what is behind a's activation. */
    static __device__ int place_of(int part)
    {
        return part == 0 ? 0 : part == 1 ? A : A + B;
    }

    /* Threads have fours of a part, eight beside each other, and again SIDE further on either way. */
    static constexpr int SIDE = 32, OUTERS = most(L::ROWS, L::COLUMNS);
    static constexpr int SLOWS = most(OUTERS, L::TURNS ? L::DEPTH : 0) / SIDE;
    static constexpr int FASTS = most(L::DEPTH, L::TURNS ? OUTERS : 0) / SIDE;

    /* What a thread has of a row of 16-bit numbers, of which `room` exist: all are under way before the first is
     * stored. */
    static __device__ void bring_some(float *to, const T *from, int room, int fasts)
    {
        quad<T> q[FASTS];
#pragma unroll
        for (int j = 0; j < FASTS; j++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                q[j].v[e] = j * SIDE + e < room ? from[j * SIDE + e] : T(0.0f);
#pragma unroll
        for (int j = 0; j < FASTS; j++)
            if (j * SIDE < fasts)
                *reinterpret_cast<quad<T> *>(to + j * SIDE) = q[j];
    }

    /* `deep` of k from `k` on, of `count` rows or columns; beyond the ends there are zeros. All but the addresses is
     * known before the first copy, so that they follow each other closely. */
    static __device__ void bring(float *to, const T *data, source<T> s, int outer, int count, int k, int deep,
                                 int k_end)
    {
        const area all = area_of(s, count, deep);
        const int slow = threadIdx.x / 8, fast = threadIdx.x % 8 * 4;
        const int slow0 = (s.along_k ? outer : k) + slow, fast0 = (s.along_k ? k : outer) + fast;
        const int slow_left = (s.along_k ? s.outers : k_end) - slow0,
                  fast_left = (s.along_k ? k_end : s.outers) - fast0;
        data += static_cast<long long>(slow0) * s.row + fast0;
        to += slow * all.row + fast;
#pragma unroll 1
        for (int i = 0; slow + i < all.slows; i += SIDE) {
            const int room = i < slow_left ? fast_left : 0;
            if (!IS_FLOAT && !s.wide)
                bring_some(to, data, room, all.fasts - fast);
            else
#pragma unroll 1
                for (int j = 0; fast + j < all.fasts; j += SIDE)
                    if (s.wide)
                        send_four(reinterpret_cast<T *>(to + j), data + j, j < room);
                    else if constexpr (IS_FLOAT)
                        send_some(to + j, data + j, room - j);
            data += static_cast<long long>(SIDE) * s.row;
            to += SIDE * all.row;
        }
    }

    /* 16-bit numbers become floats, each thread doing what it sent. */
    static __device__ void widen(float *to, const area &all)
    {
        const int slow = threadIdx.x / 8, fast = threadIdx.x % 8 * 4;
        to += slow * all.row + fast;
#pragma unroll
        for (int i = 0; i < SLOWS; i++)
#pragma unroll
            for (int j = 0; j < FASTS; j++)
                if (slow + i * SIDE < all.slows && fast + j * SIDE < all.fasts) {
                    float *four = to + i * SIDE * all.row + j * SIDE;
                    const quad<T> q = *reinterpret_cast<const quad<T> *>(four);
                    *reinterpret_cast<float4 *>(four) = make_float4(q.v[0], q.v[1], q.v[2], q.v[3]);
                }
    }

    template <int KIND> static __device__ float4 gradient(float4 x, float4 y)
    {
        return make_float4(activation_gradient(KIND, x.x, y.x), activation_gradient(KIND, x.y, y.y),
                           activation_gradient(KIND, x.z, y.z), activation_gradient(KIND, x.w, y.w));
    }

    /* dy in shared memory becomes the gradient, each thread doing what it sent. */
    static __device__ void through(float *dy, const float *value, const source<T> &s, int activation, int deep)
    {
        const area all = area_of(s, L::ROWS, deep);
#pragma unroll 1
        for (int slow = threadIdx.x / 8; slow < all.slows; slow += SIDE)
#pragma unroll 1
            for (int fast = threadIdx.x % 8 * 4; fast < all.fasts; fast += SIDE) {
                float4 *g = reinterpret_cast<float4 *>(dy + slow * all.row + fast);
                const float4 x = *g, y = *reinterpret_cast<const float4 *>(value + slow * all.row + fast);
                *g = activation == ACTIVATION_RELU      ? gradient<ACTIVATION_RELU>(x, y)
                     : activation == ACTIVATION_SIGMOID ? gradient<ACTIVATION_SIGMOID>(x, y)
                                                        : gradient<ACTIVATION_TANH>(x, y);
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

    static __device__ bool any_nan(float4 v)
    {
        return v.x != v.x || v.y != v.y || v.z != v.z || v.w != v.w;
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
