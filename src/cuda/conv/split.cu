/* split.cu: convolutions of little work, and the gradients of their inputs. What takes time there is not arithmetic but
 * one wait after the other along a sum of hundreds of products that few blocks make: the sums are cut into parts, as many
 * blocks as the chip holds make them, and the block that comes last of a tile adds them up, always in the same order.
 *
 * A product of matrices, result[row][column] = sum over k of a[row][k] b[k][column], by tiles of 32 x 32. Forward a row
 * is a pixel of y, a column an output, k a tap of the kernel and a channel of x; for dx a row is a pixel of x, a column
 * its channel, and k a tap and an output. Channels are the fast index of k: neighbours in memory. */
#include "cuda/conv/split.h"

#include "cuda/conv/order.cuh"
#include "cuda/conv/split_k.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/half.cuh"

namespace
{

constexpr int ROWS = 32, COLUMNS = 32, DEPTH = 64, THREADS = 128;
constexpr int ROW = ROWS + 4;                /* floats from one k to the next in shared memory: no bank meets another */
constexpr int OWN_ROWS = 4, OWN_COLUMNS = 2; /* of a tile, a thread's */
constexpr int BLOCKS = 4;                    /* a multiprocessor's, that parts are cut for */
constexpr int NOWHERE = 1 << 24;             /* farther than any padding reaches */

static_assert(ROWS * COLUMNS == THREADS * OWN_ROWS * OWN_COLUMNS && ROWS == COLUMNS, "each its own");

/* The product's. */
struct sizes {
    int rows, columns, depth;
};

/* Where a row begins in a: its picture, and the place of the first tap. */
struct place {
    long long base;
    int row, column;
};

/* What k adds to that, and where it is in b. */
struct tap {
    int row, column, channel;
    int in_b;
};

template <class T> struct operands {
    const T *a;     /* x, or dy */
    const T *value; /* y, where dy goes through an activation; else NULL */
    const T *weight, *bias;
    T *result;
};

/* The two products. */
template <class T, bool INPUT> struct convolution {
    const pc__cuda_conv &s;
    const operands<T> &of;

    __device__ __forceinline__ place place_of(int row) const
    {
        const int w = INPUT ? s.w : s.ow, area = w * (INPUT ? s.h : s.oh);
        const int image = row / area, pixel = row - image * area, line = pixel / w, column = pixel - line * w;
        if (INPUT)
            return {picture_at(s, image), line + s.ph, column + s.pw};
        return {(long long)image * s.h * s.w * s.c, line * s.sh - s.ph, column * s.sw - s.pw};
    }

    __device__ __forceinline__ tap tap_of(int k, int to) const
    {
        if (k >= to) /* without channels `to` is 0, and nothing is divided by them */
            return {NOWHERE, 0, 0, -1};
        const int channels = INPUT ? s.o : s.c, at = k / channels, channel = k - at * channels, row = at / s.kw;
        const int area = s.kh * s.kw;
        return {row, at - row * s.kw, channel, (INPUT ? channel * s.c : channel) * area + at};
    }

    /* The gradient in front of the activation. */
    __device__ __forceinline__ float gradient(long long at) const
    {
        const float dy = float(of.a[at]);
        return of.value ? activation_gradient(s.activation, dy, float(of.value[at])) : dy;
    }

    __device__ __forceinline__ float a(const place &p, const tap &t) const
    {
        if constexpr (INPUT) {
            int row = p.row - t.row, column = p.column - t.column;
            bool whole = true;
            if (s.sh * s.sw > 1) {
                whole = row >= 0 && column >= 0 && row % s.sh == 0 && column % s.sw == 0;
                row /= s.sh, column /= s.sw;
            }
            if (!whole || (unsigned)row >= (unsigned)s.oh || (unsigned)column >= (unsigned)s.ow)
                return 0;
            const int step = s.planes ? 1 : s.o;
            return gradient(p.base + (long long)(row * s.ow + column) * step + (long long)t.channel * channel_step(s));
        }
        const int row = p.row + t.row, column = p.column + t.column;
        const bool inside = (unsigned)row < (unsigned)s.h && (unsigned)column < (unsigned)s.w;
        return inside ? float(of.a[p.base + (row * s.w + column) * s.c + t.channel]) : 0.0f;
    }

    __device__ __forceinline__ float b(const tap &t, int column, int columns) const
    {
        const int area = s.kh * s.kw, step = INPUT ? area : area * s.c;
        return t.in_b >= 0 && column < columns ? float(of.weight[t.in_b + column * step]) : 0.0f;
    }

    __device__ __forceinline__ void give(int row, int column, float value) const
    {
        if (INPUT) {
            of.result[(long long)row * s.c + column] = T(value);
            return;
        }
        const float bias = of.bias ? float(of.bias[column]) : 0.0f;
        of.result[pixel_at(s, row) + (long long)column * channel_step(s)] = T(activated(s.activation, value + bias));
    }
};

/* What a thread reads of both operands for DEPTH of k: eight of k by two rows, and by two columns. */
struct some {
    static constexpr int KS = DEPTH / 8, LINES = ROWS / (THREADS / 8);
    float a[KS][LINES], b[KS][LINES];

    template <class C>
    __device__ __forceinline__ void read(const C &c, const place *places, const tap *taps, int column, int columns)
    {
        const int k = threadIdx.x % 8, line = threadIdx.x / 8;
#pragma unroll
        for (int i = 0; i < KS; i++)
#pragma unroll
            for (int j = 0; j < LINES; j++) {
                const int at = line + j * (THREADS / 8);
                a[i][j] = c.a(places[at], taps[k + i * 8]);
                b[i][j] = c.b(taps[k + i * 8], column + at, columns);
            }
    }

    __device__ __forceinline__ void put(float (*to_a)[ROW], float (*to_b)[ROW]) const
    {
        const int k = threadIdx.x % 8, line = threadIdx.x / 8;
#pragma unroll
        for (int i = 0; i < KS; i++)
#pragma unroll
            for (int j = 0; j < LINES; j++) {
                to_a[k + i * 8][line + j * (THREADS / 8)] = a[i][j];
                to_b[k + i * 8][line + j * (THREADS / 8)] = b[i][j];
            }
    }
};

__device__ __forceinline__ void multiply(float (&sum)[OWN_ROWS][OWN_COLUMNS], const float (*a)[ROW],
                                         const float (*b)[ROW])
{
    const int row = threadIdx.x / (COLUMNS / OWN_COLUMNS) * OWN_ROWS,
              column = threadIdx.x % (COLUMNS / OWN_COLUMNS) * OWN_COLUMNS;
#pragma unroll 16
    for (int k = 0; k < DEPTH; k++) {
        const float4 left = *reinterpret_cast<const float4 *>(&a[k][row]);
        const float2 right = *reinterpret_cast<const float2 *>(&b[k][column]);
        const float l[OWN_ROWS] = {left.x, left.y, left.z, left.w}, r[OWN_COLUMNS] = {right.x, right.y};
#pragma unroll
        for (int i = 0; i < OWN_ROWS; i++)
#pragma unroll
            for (int j = 0; j < OWN_COLUMNS; j++)
                sum[i][j] = fmaf(l[i], r[j], sum[i][j]);
    }
}

template <class T, bool INPUT>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    split_kernel(const __grid_constant__ pc__cuda_conv s, const operands<T> of, const sizes all, const split_k k)
{
    __shared__ alignas(16) float a[DEPTH][ROW], b[DEPTH][ROW];
    __shared__ place places[ROWS];
    __shared__ tap taps[2][DEPTH];
    const convolution<T, INPUT> c = {s, of};
    const int at = blockIdx.x, split = blockIdx.z;
    const int across = (all.columns + COLUMNS - 1) / COLUMNS, first_row = at / across * ROWS;
    const int first_column = at % across * COLUMNS;
    const int from = split * k.steps * DEPTH, to = min(from + k.steps * DEPTH, all.depth);
    if (threadIdx.x < ROWS) {
        const int row = first_row + threadIdx.x;
        places[threadIdx.x] = row < all.rows ? c.place_of(row) : place{0, -2 * NOWHERE, 0};
    } else if (threadIdx.x < ROWS + DEPTH) {
        taps[0][threadIdx.x - ROWS] = c.tap_of(from + threadIdx.x - ROWS, to);
    }
    pc::wait_for_earlier();
    __syncthreads();
    some here;
    here.read(c, places, taps[0], first_column, all.columns);
    float sum[OWN_ROWS][OWN_COLUMNS] = {};
    int turn = 0;
#pragma unroll 1
    for (int at_k = from; at_k < to; at_k += DEPTH) {
        turn ^= 1;
        here.put(a, b);
        if (threadIdx.x < DEPTH)
            taps[turn][threadIdx.x] = c.tap_of(at_k + DEPTH + threadIdx.x, to);
        __syncthreads();
        if (at_k + DEPTH < to)
            here.read(c, places, taps[turn], first_column, all.columns);
        multiply(sum, a, b);
        __syncthreads();
    }
    if (k.splits > 1 && !join_parts<OWN_ROWS * OWN_COLUMNS / 4, THREADS>(&sum[0][0], k, 0, split))
        return;
    const int row = first_row + threadIdx.x / (COLUMNS / OWN_COLUMNS) * OWN_ROWS,
              column = first_column + threadIdx.x % (COLUMNS / OWN_COLUMNS) * OWN_COLUMNS;
#pragma unroll
    for (int i = 0; i < OWN_ROWS; i++)
#pragma unroll
        for (int j = 0; j < OWN_COLUMNS; j++)
            if (row + i < all.rows && column + j < all.columns)
                c.give(row + i, column + j, sum[i][j]);
}

int parts_of(int n, int size)
{
    return (n + size - 1) / size;
}

sizes sizes_of(const pc__cuda_conv *s, bool input)
{
    const int area = s->kh * s->kw;
    return {(int)s->n * (input ? s->h * s->w : s->oh * s->ow), input ? s->c : s->o, area * (input ? s->o : s->c)};
}

cut_tiles tiling_of(const pc__cuda_conv *s, const sizes &all)
{
    return {(long long)parts_of(all.rows, ROWS) * parts_of(all.columns, COLUMNS), ROWS * COLUMNS,
            parts_of(all.depth, DEPTH), 1, BLOCKS * s->multiprocessors};
}

template <class T, bool INPUT>
void launch(cudaStream_t queue, const pc__cuda_conv *s, const operands<T> &of, void *scratch, unsigned *counters)
{
    const sizes all = sizes_of(s, INPUT);
    const cut_tiles tiles = tiling_of(s, all);
    const split_k k = split_of(tiles, {(float *)scratch, counters});
    const dim3 grid((unsigned)tiles.tiles, 1, (unsigned)k.splits);
    (void)pc::start_grid(split_kernel<T, INPUT>, grid, dim3(THREADS), 0, queue, s->early, *s, of, all, k);
}

template <class T>
void forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight, const void *bias, void *y,
             void *scratch, unsigned *counters)
{
    launch<T, false>(queue, s, {(const T *)x, NULL, (const T *)weight, (const T *)bias, (T *)y}, scratch, counters);
}

template <class T>
void input(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void *y, const void *dy, void *dx,
           void *scratch, unsigned *counters)
{
    const T *value = s->activation == ACTIVATION_NONE ? NULL : (const T *)y;
    launch<T, true>(queue, s, {(const T *)dy, value, (const T *)weight, NULL, (T *)dx}, scratch, counters);
}

} // namespace

bool pc__cuda_conv_split_fits(const pc__cuda_conv *s)
{
    const double most = 1 << 24; /* of rows, and of what padding and kernel add to a place */
    const double side = (double)s->h + s->w + 2.0 * s->ph + 2.0 * s->pw + s->kh + s->kw;
    return s->pool == 1 && s->dtype != PC__CUDA_F64 && side < most && (double)s->n * s->h * s->w < most &&
           (double)s->n * s->oh * s->ow < most;
}

size_t pc__cuda_conv_split_scratch(const pc__cuda_conv *s, bool input)
{
    return partial_bytes(tiling_of(s, sizes_of(s, input)));
}

void pc__cuda_conv_split_forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
                                 const void *bias, void *y, void *scratch, unsigned *counters)
{
    if (s->dtype == PC__CUDA_F32)
        forward<float>(queue, s, x, weight, bias, y, scratch, counters);
    else if (s->dtype == PC__CUDA_F16)
        forward<pc::f16>(queue, s, x, weight, bias, y, scratch, counters);
    else
        forward<pc::bf16>(queue, s, x, weight, bias, y, scratch, counters);
}

void pc__cuda_conv_split_input(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void *y,
                               const void *dy, void *dx, void *scratch, unsigned *counters)
{
    if (s->dtype == PC__CUDA_F32)
        input<float>(queue, s, weight, y, dy, dx, scratch, counters);
    else if (s->dtype == PC__CUDA_F16)
        input<pc::f16>(queue, s, weight, y, dy, dx, scratch, counters);
    else
        input<pc::bf16>(queue, s, weight, y, dy, dx, scratch, counters);
}
