/* half_weights.cu: the gradients of the weights and bias of a convolution of 16-bit numbers. A warp keeps the sums
 * of a unit, 32 channels of x under one tap, by 64 output channels, and goes over the pixels of a piece, 32 at a time:
 * window by window behind pooling. x comes into shared memory for each unit apart, the gradient, spread over its
 * windows, once for the block. The pieces leave their sums in memory. */
#include "cuda/conv/half.h"
#include "cuda/conv/order.cuh"
#include "cuda/conv/patch.h"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/mma.cuh"

#define NOWHERE (-(1 << 28))
#define PIECE_LEAST 4 /* steps that make a piece worth a block */
#define SUMS_MOST ((size_t)64 << 20)

namespace
{

constexpr int EIGHT = 8, PIXELS = 32, CHANNELS = 32, OUTPUTS = 64, STAGES = 3, WARPS_MOST = 9;
[[maybe_unused]] constexpr int TABLES = 4; /* not without matrix units */

template <class T> struct alignas(EIGHT * sizeof(T)) eight {
    T at[EIGHT];
};

template <class T> struct operands {
    const T *x, *y, *dy; /* dy and argmax channels last */
    const uint8_t *argmax;
    float *sums;            /* [piece][depth + 1][o] */
    int units, slices;      /* in all, and under a tap */
    long long steps, piece; /* all, and of a piece */
};

/* A window of y: its picture in x, its first element in y, the row and column of its first pixel at tap 0. */
struct window {
    long long base, at;
    int row, column;
};

template <int POOL> __device__ inline window window_of(const pc__cuda_conv &s, long long i)
{
    const long long line = quotient(i, s.yw), image = quotient(line, s.yh);
    if (image >= s.n)
        return {0, -1, NOWHERE, NOWHERE};
    const int row = (int)(line - image * s.yh) * POOL, column = (int)(i - line * s.yw) * POOL;
    return {image * s.h * s.w * s.c, i * s.o, row * s.sh - s.ph, column * s.sw - s.pw};
}

/* Rows of 64 and of 128 bytes lie so that eight rows' chunks of 16 bytes fill all banks. */
template <class T> __device__ inline T *slot_x(T *tile, int pixel, int chunk)
{
    return tile + pixel * CHANNELS + (chunk ^ (pixel / 2 % 4)) * EIGHT;
}

template <class T> __device__ inline T *slot_g(T *tile, int pixel, int chunk)
{
    return tile + pixel * OUTPUTS + (chunk ^ (pixel % 8)) * EIGHT;
}

/* What a thread brings in of a step's gradient: eight channels of a window, spread over its pixels when stored. */
template <class T, int POOL> struct gradient_part {
    static constexpr int WINDOWS = PIXELS / (POOL * POOL), ITEMS = WINDOWS * OUTPUTS / EIGHT;
    eight<T> value;
    eight<uint8_t> most;

    __device__ inline void load(const pc__cuda_conv &s, const operands<T> &in, const window *windows, int item)
    {
        const int chunk = item % (OUTPUTS / EIGHT), o = blockIdx.y * OUTPUTS + chunk * EIGHT;
        const long long from = windows[item / (OUTPUTS / EIGHT)].at;
        const bool there = item < ITEMS && from >= 0 && o < s.o;
        value = {};
        most = {};
        if (!there)
            return;
        value = *(const eight<T> *)(in.dy + from + o);
        if (needs_y(s)) {
            const eight<T> saved = *(const eight<T> *)(in.y + from + o);
#pragma unroll
            for (int j = 0; j < EIGHT; j++)
                value.at[j] = T(activation_gradient(s.activation, (float)value.at[j], (float)saved.at[j]));
        }
        if (POOL == 2)
            most = *(const eight<uint8_t> *)(in.argmax + from + o);
    }

    __device__ inline void store(T *tile, float (&bias)[EIGHT], int item) const
    {
        const int chunk = item % (OUTPUTS / EIGHT), pixel = item / (OUTPUTS / EIGHT) * (POOL * POOL);
        if (item >= ITEMS)
            return;
#pragma unroll
        for (int q = 0; q < POOL * POOL; q++) {
            eight<T> here;
#pragma unroll
            for (int j = 0; j < EIGHT; j++)
                here.at[j] = most.at[j] == q ? value.at[j] : T(0.0f);
            *(eight<T> *)slot_g(tile, pixel + q, chunk) = here;
        }
#pragma unroll
        for (int j = 0; j < EIGHT; j++)
            bias[j] += most.at[j] < POOL * POOL ? (float)value.at[j] : 0.0f;
    }
};

#if TENSOR_UNITS
/* This warp's unit under the pixels of a step. */
template <class T, int POOL>
__device__ inline void send_x(const pc__cuda_conv &s, const operands<T> &in, T *tile, const window *windows,
                              int tap_row, int tap_column, int channel)
{
    const int lane = threadIdx.x % 32, chunk = lane % 4, c = channel + chunk * EIGHT;
#pragma unroll
    for (int i = 0; i < PIXELS / 8; i++) {
        const int pixel = lane / 4 + i * 8, q = pixel % (POOL * POOL);
        const window w = windows[pixel / (POOL * POOL)];
        const int row = w.row + q / POOL * s.sh + tap_row, column = w.column + q % POOL * s.sw + tap_column;
        const bool inside = (unsigned)row < (unsigned)s.h && (unsigned)column < (unsigned)s.w && c < s.c;
        send<16>(slot_x(tile, pixel, chunk), in.x + (inside ? w.base + (row * s.w + column) * s.c + c : 0), inside);
    }
}

/* sum[channel][output] += x[pixel][channel] g[pixel][output]: [half of 16 channels][8 outputs]. */
template <class T> __device__ inline void multiply(float (&sum)[2][8][4], const T *x, const T *g)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < PIXELS; k += 16) {
        unsigned a[2][4];
#pragma unroll
        for (int i = 0; i < 2; i++)
            take_squares<true>(a[i], slot_x(x, k + lane % 8 + lane / 16 * 8, i * 2 + lane / 8 % 2));
#pragma unroll
        for (int j = 0; j < 8; j += 2) {
            unsigned b[4];
            take_squares<true>(b, slot_g(g, k + lane % 16, j + lane / 16));
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const unsigned first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
                add_tensor(sum[i][j], a[i], first, T());
                add_tensor(sum[i][j + 1], a[i], second, T());
            }
        }
    }
}
#endif

template <class T, int POOL>
__global__ void __launch_bounds__(WARPS_MOST * 32, 2) half_weights_kernel(const pc__cuda_conv s, const operands<T> in)
{
#if TENSOR_UNITS
    typedef gradient_part<T, POOL> part;
    constexpr int EACH = (part::ITEMS + 31) / 32; /* gradient parts of a thread, with one warp */
    extern __shared__ __align__(128) char shared[];
    __shared__ window windows[TABLES][part::WINDOWS];
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32, lane = threadIdx.x % 32;
    T *g = (T *)shared, *x = g + 2 * PIXELS * OUTPUTS + warp * STAGES * PIXELS * CHANNELS;
    const int unit = blockIdx.x * warps + warp, tap = unit / in.slices, channel = (unit - tap * in.slices) * CHANNELS;
    const int tap_row = tap / s.kw, tap_column = tap - tap_row * s.kw;
    const bool busy = unit < in.units;
    const long long begin = blockIdx.z * in.piece, end = min(begin + in.piece, in.steps);
    pc::wait_for_earlier();
    for (int i = threadIdx.x; i < 3 * part::WINDOWS; i += blockDim.x)
        windows[i / part::WINDOWS][i % part::WINDOWS] = window_of<POOL>(s, begin * part::WINDOWS + i);
    __syncthreads();
    float sum[2][8][4] = {}, bias[EIGHT] = {};
    for (int i = 0; i < STAGES - 1; i++) {
        if (busy && begin + i < end)
            send_x<T, POOL>(s, in, x + i * PIXELS * CHANNELS, windows[i], tap_row, tap_column, channel);
        sent();
    }
    part next;
    next.load(s, in, windows[0], threadIdx.x);
    for (long long step = begin; step < end; step++) {
        const int turn = (int)(step - begin), table = turn % TABLES;
        T *now = g + turn % 2 * PIXELS * OUTPUTS;
        next.store(now, bias, threadIdx.x);
        for (int i = 1; i < EACH && threadIdx.x + i * blockDim.x < part::ITEMS; i++) { /* blocks of few warps */
            part more;
            more.load(s, in, windows[table], threadIdx.x + i * blockDim.x);
            more.store(now, bias, threadIdx.x + i * blockDim.x);
        }
        wait_sent<STAGES - 2>();
        __syncthreads();
        if (threadIdx.x < part::WINDOWS)
            windows[(table + 3) % TABLES][threadIdx.x] = window_of<POOL>(s, (step + 3) * part::WINDOWS + threadIdx.x);
        if (busy && step + STAGES - 1 < end)
            send_x<T, POOL>(s, in, x + (turn + STAGES - 1) % STAGES * PIXELS * CHANNELS,
                            windows[(table + STAGES - 1) % TABLES], tap_row, tap_column, channel);
        sent();
        if (step + 1 < end)
            next.load(s, in, windows[(table + 1) % TABLES], threadIdx.x);
        if (busy)
            multiply(sum, x + turn % STAGES * PIXELS * CHANNELS, now);
    }
    const int depth = s.kh * s.kw * s.c;
    float *to = in.sums + (long long)blockIdx.z * (depth + 1) * s.o;
#pragma unroll
    for (int i = 0; i < 64; i++) {
        const int c = channel + i / 32 * 16 + i % 4 / 2 * 8 + lane / 4;
        const int o = blockIdx.y * OUTPUTS + i / 4 % 8 * 8 + lane % 4 * 2 + i % 2;
        if (busy && c < s.c && o < s.o)
            to[((long long)tap * s.c + c) * s.o + o] = sum[i / 32][i / 4 % 8][i % 4];
    }
    if (blockIdx.x > 0)
        return;
    /* the bias: threads eight apart have the same channels */
    float *parts = (float *)shared;
    wait_sent<0>();
    __syncthreads();
#pragma unroll
    for (int j = 0; j < EIGHT; j++)
        parts[(threadIdx.x / 8 * 8 + threadIdx.x % 8) * EIGHT + j] = bias[j];
    __syncthreads();
    for (int i = threadIdx.x; i < OUTPUTS; i += blockDim.x) {
        float all = 0;
        for (int k = i / EIGHT; k < (int)blockDim.x; k += 8)
            all += parts[k * EIGHT + i % EIGHT];
        if (blockIdx.y * OUTPUTS + i < s.o)
            to[(long long)depth * s.o + blockIdx.y * OUTPUTS + i] = all;
    }
#endif
}

struct plan {
    int units, slices, warps, pieces;
    long long steps, piece;
};

long long pieces_of(long long n, long long size)
{
    return (n + size - 1) / size;
}

plan plan_of(const pc__cuda_conv *s)
{
    plan p;
    p.slices = (int)pieces_of(s->c, CHANNELS);
    p.units = s->kh * s->kw * p.slices;
    const int groups = (int)pieces_of(p.units, WARPS_MOST);
    p.warps = (int)pieces_of(p.units, groups);
    p.steps = pieces_of(s->n * s->yh * s->yw * s->pool * s->pool, PIXELS);
    const long long tiles = pieces_of(p.units, p.warps) * pieces_of(s->o, OUTPUTS);
    const long long room = SUMS_MOST / ((size_t)(s->kh * s->kw * s->c + 1) * s->o * sizeof(float));
    long long pieces = (long long)s->multiprocessors * 2 * WARPS_MOST / p.warps / tiles;
    pieces = pieces < room ? pieces : room;
    pieces = pieces < p.steps / PIECE_LEAST ? pieces : p.steps / PIECE_LEAST;
    pieces = pieces < 1 ? 1 : pieces < 65535 ? pieces : 65535;
    p.piece = p.steps > 0 ? pieces_of(p.steps, pieces) : 1;
    p.pieces = p.steps > 0 ? (int)pieces_of(p.steps, p.piece) : 1;
    return p;
}

template <class T> void backward(cudaStream_t queue, const pc__cuda_conv *s, const operands<T> &in, const plan &p)
{
    const size_t work = ((size_t)2 * PIXELS * OUTPUTS + (size_t)p.warps * STAGES * PIXELS * CHANNELS) * sizeof(T);
    const size_t parts = (size_t)p.warps * 32 * EIGHT * sizeof(float), shared = work > parts ? work : parts;
    const dim3 grid((unsigned)pieces_of(p.units, p.warps), (unsigned)pieces_of(s->o, OUTPUTS), (unsigned)p.pieces);
    void (*kernel)(pc__cuda_conv, operands<T>) = s->pool == 2 ? half_weights_kernel<T, 2> : half_weights_kernel<T, 1>;
    pc::start_grid(kernel, grid, dim3((unsigned)p.warps * 32), shared, queue, s->early, *s, in);
}

} // namespace

size_t pc__cuda_conv_half_weights_scratch(const pc__cuda_conv *s, bool patches)
{
    const int pieces = patches ? pc__cuda_conv_patch_pieces(s) : plan_of(s).pieces;
    return (size_t)pieces * (s->kh * s->kw * s->c + 1) * s->o * sizeof(float);
}

void pc__cuda_conv_half_weights(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y,
                                const uint8_t *argmax, const void *dy, void *dweight, void *dbias, bool patches,
                                void *scratch)
{
    const plan p = plan_of(s);
    float *sums = (float *)scratch;
    int pieces = p.pieces;
    if (patches) {
        pieces = pc__cuda_conv_patch_pieces(s);
        pc__cuda_conv_patch_weights(queue, s, x, y, argmax, dy, sums);
    } else if (s->dtype == PC__CUDA_F16) {
        backward<pc::f16>(queue, s,
                          {(const pc::f16 *)x, (const pc::f16 *)y, (const pc::f16 *)dy, argmax, sums, p.units, p.slices,
                           p.steps, p.piece},
                          p);
    } else {
        backward<pc::bf16>(queue, s,
                           {(const pc::bf16 *)x, (const pc::bf16 *)y, (const pc::bf16 *)dy, argmax, sums, p.units,
                            p.slices, p.steps, p.piece},
                           p);
    }
    pc__cuda_conv_add_pieces(queue, s, sums, s->kh * s->kw * s->c, pieces, dweight, dbias);
}
