/* linear_held.cuh: parts of matrices on their way to shared memory, and products of what lies there, for
 * linear_columns.cuh. Shared memory holds floats, whatever comes; rows are padded by 8, so that the four rows and eight
 * columns that a warp reads together lie in different banks. */
#ifndef PC__CUDA_LINEAR_HELD_CUH
#define PC__CUDA_LINEAR_HELD_CUH

#include "cuda/shared/dependent_launch.cuh"
#include "cuda/loss/head.cuh"
#include "cuda/shared/mma.cuh"

namespace
{

constexpr int THREADS = 256, PAD = 8;

/* A part of a matrix in global memory; rows, columns and what lies between are in fours. */
template <class T> struct part {
    const T *data;
    int row, height, width; /* elements from row to row; rows and columns that exist */
};

/* What a thread has of one on its way to shared memory, HEIGHT x WIDTH there with zeros beyond its ends: through
 * registers, so that all loads of a block are under way at once. */
template <int HEIGHT, int WIDTH, class T> struct held {
    static constexpr int FOURS = WIDTH / 4, COUNT = HEIGHT * FOURS / THREADS;
    static_assert(HEIGHT * FOURS % THREADS == 0, "all threads the same");
    vector<T, 4> at[COUNT];

    __device__ __forceinline__ static int row_of(int i)
    {
        return (i * THREADS + threadIdx.x) / FOURS;
    }

    __device__ __forceinline__ static int column_of(int i)
    {
        return (i * THREADS + threadIdx.x) % FOURS * 4;
    }

    __device__ __forceinline__ void read(const part<T> &p)
    {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const int r = row_of(i), c = column_of(i);
            at[i] = {};
            if (r < p.height && c < p.width)
                at[i] =
                    pc::ahead(reinterpret_cast<const vector<T, 4> *>(p.data + static_cast<long long>(r) * p.row + c));
        }
    }

    /* Floats need no registers on their way. */
    __device__ __forceinline__ void send(const part<T> &p, float *to)
    {
#if TENSOR_UNITS
        if constexpr (sizeof(T) == sizeof(float)) {
#pragma unroll
            for (int i = 0; i < COUNT; i++) {
                const int r = row_of(i), c = column_of(i);
                const bool there = r < p.height && c < p.width;
                send_past(to + r * (WIDTH + PAD) + c, there ? p.data + static_cast<long long>(r) * p.row + c : p.data,
                          there);
            }
            return;
        }
#endif
        read(p);
    }

    __device__ __forceinline__ void put_unsent(float *to) const
    {
#if TENSOR_UNITS
        if constexpr (sizeof(T) == sizeof(float))
            return;
#endif
        put(to);
    }

    __device__ __forceinline__ void put(float *to) const
    {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            *reinterpret_cast<float4 *>(to + row_of(i) * (WIDTH + PAD) + column_of(i)) =
                make_float4(at[i].at[0], at[i].at[1], at[i].at[2], at[i].at[3]);
    }

    /* As the gradient in front of an activation, of which `values` are the results. */
    __device__ __forceinline__ void put_through(float *to, const held &values, int activation) const
    {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            float g[4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                g[j] = activation_gradient(activation, float(at[i].at[j]), float(values.at[i].at[j]));
            *reinterpret_cast<float4 *>(to + row_of(i) * (WIDTH + PAD) + column_of(i)) =
                make_float4(g[0], g[1], g[2], g[3]);
        }
    }
};

/* An operand of a product in shared memory: element (outer, k) is at outer * outers + k * ks. */
struct operand {
    const float *data;
    int outers, ks;
};

/* sum[16 H][8 N] += a b over `deep` of k, a multiple of 8, by a warp; the warp's tile begins at a.data and b.data.
 * EXACT: of floats; else both have 11 bits at most, but for a's gradients unless these are `plain`. As shared/mma.cuh says,
 * a thread has of 16 x 8 sums rows g and g + 8, columns 2 t and behind. */
template <int H, int N, bool EXACT>
__device__ __forceinline__ void multiply(float (&sum)[H][N][4], operand a, operand b, int deep, bool plain)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#if TENSOR_UNITS
    a.data += g * a.outers + t * a.ks;
    b.data += g * b.outers + t * b.ks;
#pragma unroll 2
    for (int k = 0; k < deep; k += 8, a.data += 8 * a.ks, b.data += 8 * b.ks) {
        halves<4> left[H];
        halves<2> right[N];
#pragma unroll
        for (int h = 0; h < H; h++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                left[h].template take<EXACT>(i, a.data[(h * 16 + i % 2 * 8) * a.outers + i / 2 * 4 * a.ks]);
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                right[n].template take<EXACT>(i, b.data[n * 8 * b.outers + i * 4 * b.ks]);
#pragma unroll
        for (int pass = 0; pass < 3; pass += EXACT ? 1 : 2) {
            if (!EXACT && pass == 0 && plain)
                continue;
#pragma unroll
            for (int h = 0; h < H; h++)
#pragma unroll
                for (int n = 0; n < N; n++)
                    add_tensor(sum[h][n], pass == 0 ? left[h].low : left[h].high,
                               pass == 1 ? right[n].low : right[n].high);
        }
    }
#else
    (void)plain;
    for (int k = 0; k < deep; k++)
        for (int h = 0; h < H; h++)
            for (int n = 0; n < N; n++)
                for (int i = 0; i < 4; i++)
                    sum[h][n][i] += a.data[(h * 16 + i / 2 * 8 + g) * a.outers + k * a.ks] *
                                    b.data[(n * 8 + t * 2 + i % 2) * b.outers + k * b.ks];
#endif
}

/* Where a factor is infinite or too large to be halved, matrix units make NaN, and floats have the last word. */
__device__ __noinline__ float again(const float *a, int a_step, const float *b, int b_step, int count)
{
    float value = 0;
#pragma unroll 1
    for (int k = 0; k < count; k++)
        value += a[k * a_step] * b[k * b_step];
    return value;
}

} // namespace

#endif
