/* linear_operand.cuh: two operands of a product on their way from global to shared memory, where they lie as floats.
 * Each lies there as in global memory, side by side along k or across it, with rows padded so that the eight or four
 * rows that a warp reads together fall into different banks.
 *
 * 16-bit numbers arrive in the room of the floats that they become there. */
#ifndef PC__CUDA_LINEAR_OPERAND_CUH
#define PC__CUDA_LINEAR_OPERAND_CUH

#include "cuda/shared/activations.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/mma.cuh"

namespace
{

constexpr int THREADS = 256, WARPS = THREADS / 32;

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
        send_past(to, from, true);
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

/* Two operands in shared memory, of which the first may be a gradient: it then has room for what is behind the
 * activation too, the third part. */
template <class L, class T> struct operands {
    static constexpr bool IS_FLOAT = sizeof(T) == sizeof(float);
    static constexpr int most(int x, int y)
    {
        return x > y ? x : y;
    }
    static constexpr int room(int outers)
    {
        return most(outers * (L::DEPTH + 4), L::TURNS ? L::DEPTH * (outers + 8) : 0);
    }
    static constexpr int A = room(L::ROWS), B = room(L::COLUMNS);

    static __device__ strides strides_of(const source<T> &s, int outers)
    {
        return s.along_k ? strides{L::DEPTH + 4, 1} : strides{1, outers + 8};
    }

    /* True where all of an operand travels past first-level memory, and so may be read ahead (shared/dependent_launch.cuh). */
    static __device__ bool passes(const source<T> &s)
    {
        return TENSOR_UNITS && IS_FLOAT && s.wide;
    }

    /* a and b over `deep` of k from `k` on, a through its activation; to be read behind a barrier. pc::wait_for_earlier
     * comes behind `ahead` parts, b the first of them; -1: it has been. */
    static __device__ void fetch(const source<T> &a, const source<T> &b, int activation, int row, int column, int k,
                                 int deep, int to, float *memory, int ahead)
    {
#pragma unroll 1
        for (int i = 0; i < (a.value ? 3 : 2); i++) {
            const int part = i < 2 ? 1 - i : 2;
            const bool left = part != 1;
            if (i == ahead)
                pc::wait_for_earlier();
            source<T> s = a;
            if (!left)
                s = b;
            bring(memory + place_of(part), part == 2 ? s.value : s.data, s, left ? row : column,
                  left ? L::ROWS : L::COLUMNS, k, deep, to);
        }
        sent();
        wait_sent<0>();
        if constexpr (!IS_FLOAT) {
#pragma unroll 1
            for (int part = 0; part < (a.value ? 3 : 2); part++)
                widen(memory + place_of(part), area_of(part == 1 ? b : a, part == 1 ? L::COLUMNS : L::ROWS, deep));
        }
        if (a.value)
            through(memory, memory + A + B, a, activation, deep);
    }

  private:
    /* Of a part in shared memory: so many, `row` floats from one of the slow index to the next. */
    struct area {
        int slows, fasts, row;
    };

    static __device__ area area_of(const source<T> &s, int count, int deep)
    {
        return s.along_k ? area{count, deep, L::DEPTH + 4} : area{deep, count, count + 8};
    }

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
            if (!IS_FLOAT && !s.wide) {
                bring_some(to, data, room, all.fasts - fast);
            } else {
#pragma unroll 1
                for (int j = 0; fast + j < all.fasts; j += SIDE)
                    if (s.wide)
                        send_four(reinterpret_cast<T *>(to + j), data + j, j < room);
                    else if constexpr (IS_FLOAT)
                        send_some(to + j, data + j, room - j);
            }
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
};

} // namespace

#endif
