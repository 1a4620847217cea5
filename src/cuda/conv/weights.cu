/* weights.cu: the gradients of a convolution's weights and bias: a product over all pixels of x, laid out by taps,
 * and the gradient spread over its pooling windows. The bias is one more row of it, under which x counts as 1. Pixels
 * are many and weights few, so the pixels are cut into pieces, a block each, whose sums go to scratch memory; a second
 * kernel adds the pieces in their order. */
#include "cuda/conv/conv.h"
#include "cuda/conv/order.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/load.cuh"
#include "cuda/shared/mma.cuh"

#define DEPTH 16 /* pixels of a step */
#define NOWHERE (-(1 << 28))
#define SUMS_MOST ((size_t)64 << 20) /* bytes of the pieces' sums */
#define PIECE_LEAST 4                /* steps that make a piece worth a block */
#define STEPS_MANY 512               /* for each multiprocessor: worth half as many pieces again */
#define REDUCE_MANY 8192             /* elements that make blocks enough where each has 32 */
#define DIMENSION_MOST 65535         /* of a grid, across and up */

namespace
{

template <class T> struct operands {
    const T *x, *y, *dy;
    const uint8_t *argmax;
    T *sums;                /* [pieces][depth + 1][o] */
    int depth;              /* kh kw c, or 0 where only the bias is wanted */
    long long steps, piece; /* all, and of a piece */
};

/* Sizes of a block: WIDE weights of each output channel (and the bias) by WIDE output channels. */
template <int WIDE> struct block_size {
    static constexpr int GROUPS = WIDE / 32, ACROSS = WIDE / 4, DOWN = WIDE / (4 * GROUPS), THREADS = ACROSS * DOWN;
};

/* A window of y: its picture in x, the row and column of its first pixel at tap 0, its first element in y, and, where
 * windows are taken apart (POOL 0), which of its pixels this is. */
struct window {
    long long base, at;
    int row, column, place;
};

/* POOL 1 and 2: entry i is window i. POOL 0: entry i is pixel i % (pool * pool) of window i / (pool * pool). */
template <int POOL> __device__ inline window window_of(const pc__cuda_conv &s, long long i)
{
    const int side = POOL ? POOL : s.pool, places = POOL ? 1 : side * side;
    const long long index = quotient(i, places), line = quotient(index, s.yw), image = quotient(line, s.yh);
    if (image >= s.n)
        return {0, -1, NOWHERE, NOWHERE, 0};
    const int place = (int)(i - index * places);
    const int row = (int)(line - image * s.yh) * side + place / side;
    const int column = (int)(index - line * s.yw) * side + place % side;
    return {image * s.h * s.w * s.c, pixel_at(s, index), row * s.sh - s.ph, column * s.sw - s.pw, place};
}

/* What a thread brings in of a step: of x VECTOR channels of each of its pixels. */
template <class T, int POOL, int WIDE, int VECTOR> struct step_part {
    static constexpr int THREADS = block_size<WIDE>::THREADS, APART = THREADS / WIDE, PLACES = POOL == 2 ? 4 : 1;
    static constexpr int X_ACROSS = WIDE / VECTOR, X_APART = THREADS / X_ACROSS;
    static constexpr int PIXELS = DEPTH / X_APART, WINDOWS = DEPTH / PLACES / APART;
    vector<T, VECTOR> x[PIXELS];
    T g[WINDOWS];
    int place[WINDOWS];

    /* This thread's row of the product: where it reads under each pixel. */
    struct under {
        int row, column, offset;
        bool there, bias;
    };

    static __device__ inline under under_of(const pc__cuda_conv &s, int depth, int k)
    {
        if (k >= depth)
            return {0, 0, 0, false, k == depth};
        const int tap = k / s.c, row = tap / s.kw, column = tap - row * s.kw;
        return {row, column, (row * s.w + column) * s.c + k - tap * s.c, true, false};
    }

    __device__ inline void load(const pc__cuda_conv &s, const operands<T> &in, const under &u, const window *windows)
    {
        const int side = threadIdx.x / WIDE, o = blockIdx.y * WIDE + threadIdx.x % WIDE;
        const long long channel = (long long)o * channel_step(s);
#pragma unroll
        for (int i = 0; i < PIXELS; i++) {
            const int pixel = threadIdx.x / X_ACROSS + i * X_APART;
            const window &at = windows[pixel / PLACES];
            const int row = at.row + pixel % PLACES / 2 * s.sh, column = at.column + pixel % PLACES % 2 * s.sw;
            x[i] = {u.bias ? T(1) : T(0)};
            if (u.there && (unsigned)(row + u.row) < (unsigned)s.h && (unsigned)(column + u.column) < (unsigned)s.w)
                x[i] = *(const vector<T, VECTOR> *)(in.x + at.base + (row * s.w + column) * s.c + u.offset);
        }
#pragma unroll
        for (int i = 0; i < WINDOWS; i++) {
            const window &at = windows[side + i * APART];
            g[i] = 0;
            place[i] = 0;
            if (at.at < 0 || o >= s.o)
                continue;
            g[i] = in.dy[at.at + channel];
            if (needs_y(s))
                g[i] = activation_gradient(s.activation, g[i], in.y[at.at + channel]);
            if (POOL == 2)
                place[i] = in.argmax[at.at + channel];
            if (POOL == 0 && s.pool > 1 && in.argmax[at.at + channel] != at.place)
                g[i] = 0;
        }
    }

    template <int LEFT, int RIGHT> __device__ inline void store(T (*left)[LEFT], T (*right)[RIGHT]) const
    {
        const int side = threadIdx.x / WIDE, across = threadIdx.x % WIDE;
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            *(vector<T, VECTOR> *)&left[threadIdx.x / X_ACROSS + i * X_APART][threadIdx.x % X_ACROSS * VECTOR] = x[i];
#pragma unroll
        for (int i = 0; i < WINDOWS; i++)
#pragma unroll
            for (int q = 0; q < PLACES; q++)
                right[(side + i * APART) * PLACES + q][across] = PLACES == 1 || place[i] == q ? g[i] : T(0);
    }
};

/* The sums of a block: a thread's are in rows row_of(i), two or four columns side by side from column_of(i). */
template <class T, int WIDE, bool EXACT> struct block_sums {
    typedef block_size<WIDE> size;
    static constexpr int LEFT = WIDE + 4, RIGHT = WIDE, COUNT = 4 * size::GROUPS, BESIDE = 4;
    T sum[COUNT][4] = {};

    static __device__ inline int row_of(int i)
    {
        return i / 4 * size::DOWN * 4 + threadIdx.x / size::ACROSS * 4 + i % 4;
    }

    static __device__ inline int column_of(int)
    {
        return threadIdx.x % size::ACROSS * 4;
    }

    __device__ inline void add(const T (*left)[LEFT], const T (*right)[RIGHT], bool)
    {
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            const vector<T, 4> b = *(const vector<T, 4> *)&right[d][column_of(0)];
#pragma unroll
            for (int i = 0; i < COUNT; i += 4) {
                const vector<T, 4> a = *(const vector<T, 4> *)&left[d][row_of(i)];
#pragma unroll
                for (int j = 0; j < 16; j++)
                    sum[i + j / 4][j % 4] += a.at[j / 4] * b.at[j % 4];
            }
        }
    }
};

#if TENSOR_UNITS
/* By matrix units: each warp makes 32 rows x WIDE / 2 columns. */
template <int WIDE, bool EXACT> struct block_sums<float, WIDE, EXACT> {
    static constexpr int LEFT = WIDE + 8, RIGHT = WIDE + 8, TILES = WIDE / 16, COUNT = 4 * TILES, BESIDE = 2;
    float sum[COUNT][2] = {}, part[2][TILES][4] = {};

    static __device__ inline int row_of(int i)
    {
        return threadIdx.x / 64 * 32 + i % 4 * 8 + threadIdx.x % 32 / 4;
    }

    static __device__ inline int column_of(int i)
    {
        return threadIdx.x / 32 % 2 * (WIDE / 2) + i / 4 * 8 + threadIdx.x % 4 * 2;
    }

    __device__ inline void add(const float (*left)[LEFT], const float (*right)[RIGHT], bool last)
    {
        const int row = row_of(0), column = column_of(0) - threadIdx.x % 4 * 2 + threadIdx.x % 32 / 4;
#pragma unroll
        for (int d = threadIdx.x % 4; d < DEPTH; d += 8) {
            halves<4> a[2];
#pragma unroll
            for (int j = 0; j < 8; j++)
                a[j / 4].take(j % 4, left[d + j % 4 / 2 * 4][row + j / 4 * 16 + j % 2 * 8]);
#pragma unroll
            for (int n = 0; n < TILES; n++) {
                halves<2> b[1];
                b[0].take(0, right[d][column + n * 8]);
                b[0].take(1, right[d + 4][column + n * 8]);
                add_products<EXACT>(&part[0][n], &part[1][n], a, b);
            }
        }
        if (!last)
            return;
            /* matrix units cut their sums short, so these are added up by fours of steps */
#pragma unroll
        for (int i = 0; i < COUNT; i++)
#pragma unroll
            for (int j = 0; j < 2; j++) {
                sum[i][j] += part[i % 4 / 2][i / 4][i % 2 * 2 + j];
                part[i % 4 / 2][i / 4][i % 2 * 2 + j] = 0;
            }
    }
};
#endif

template <class T, int POOL, int WIDE, int VECTOR, bool EXACT>
__global__ void __launch_bounds__(block_size<WIDE>::THREADS, sizeof(T) == 4 ? (WIDE == 64 ? 4 : 12) : 1)
    weights_kernel(const pc__cuda_conv s, const operands<T> in)
{
    typedef step_part<T, POOL, WIDE, VECTOR> part_type;
    typedef block_sums<T, WIDE, EXACT> sums_type;
    constexpr int WINDOWS = DEPTH / part_type::PLACES;
    __shared__ __align__(16) T left[2][DEPTH][sums_type::LEFT];
    __shared__ __align__(16) T right[2][DEPTH][sums_type::RIGHT];
    __shared__ window windows[2][WINDOWS];
    pc::wait_for_earlier();
    const int first_k = blockIdx.x * WIDE;
    const long long begin = blockIdx.z * in.piece;
    const long long end = begin + in.piece < in.steps ? begin + in.piece : in.steps;
    const typename part_type::under u =
        part_type::under_of(s, in.depth, first_k + threadIdx.x % part_type::X_ACROSS * VECTOR);
    part_type part;
    sums_type sums;
    if (threadIdx.x < 2 * WINDOWS)
        windows[threadIdx.x / WINDOWS][threadIdx.x % WINDOWS] = window_of<POOL>(s, begin * WINDOWS + threadIdx.x);
    __syncthreads();
    if (begin < end)
        part.load(s, in, u, windows[0]);
    for (long long step = begin; step < end; step++) {
        const int now = (step - begin) & 1;
        part.store(left[now], right[now]);
        __syncthreads();
        /* windows[now] were read before the barrier, and are next needed behind another */
        if (threadIdx.x < WINDOWS)
            windows[now][threadIdx.x] = window_of<POOL>(s, (step + 2) * WINDOWS + threadIdx.x);
        if (step + 1 < end)
            part.load(s, in, u, windows[now ^ 1]);
        sums.add(left[now], right[now], step + 1 == end || step % 4 == 3);
    }
    T *to = in.sums + (long long)blockIdx.z * (in.depth + 1) * s.o;
#pragma unroll
    for (int i = 0; i < sums_type::COUNT; i++)
#pragma unroll
        for (int j = 0; j < sums_type::BESIDE; j++) {
            const int k = first_k + sums_type::row_of(i), o = blockIdx.y * WIDE + sums_type::column_of(i) + j;
            if (k <= in.depth && o < s.o)
                to[(long long)k * s.o + o] = sums.sum[i][j];
        }
}

/* Threads of a block with ACROSS elements: where there are few, more for each; where there are many, blocks so small
 * that all are on the multiprocessors at once. */
constexpr int reduce_threads(int across)
{
    return across < 32 ? 512 : 256;
}

/* dweight[o][c][kh][kw] and dbias[o] from the sums of the pieces: a block has ACROSS elements, and DOWN threads share
 * each. A thread's next FLIGHT pieces are under way at once: what there usually is, so that it waits once. */
template <class S, class T, int ACROSS>
__global__ void __launch_bounds__(reduce_threads(ACROSS), 1536 / reduce_threads(ACROSS))
    reduce_kernel(const pc__cuda_conv s, const S *__restrict__ sums, int depth, int pieces, T *dweight, T *dbias)
{
    constexpr int DOWN = reduce_threads(ACROSS) / ACROSS, STEP = 8, FLIGHT = DOWN == STEP ? 16 : 8;
    __shared__ S parts[DOWN][ACROSS + 1];
    pc::wait_for_earlier();
    const int down = threadIdx.x / ACROSS, across = threadIdx.x % ACROSS;
    const int count = (depth + 1) * s.o, i = blockIdx.x * ACROSS + across;
    S sum = 0;
    if (i < count)
#pragma unroll 1
        for (int first = down; first < pieces; first += FLIGHT * DOWN) {
            const S *from = sums + (long long)first * count + i;
            S next[FLIGHT];
#pragma unroll
            for (int k = 0; k < FLIGHT; k++)
                next[k] = first + k * DOWN < pieces ? from[(long long)k * DOWN * count] : S(0);
#pragma unroll
            for (int k = 0; k < FLIGHT; k++)
                sum += next[k];
        }
    parts[down][across] = sum;
    __syncthreads();
#pragma unroll
    for (int part = STEP; part < DOWN; part += STEP)
        sum += down < STEP ? parts[part + down][across] : S(0);
    if (down < STEP)
        parts[down][across] = sum;
    __syncthreads();
    if (down > 0 || i >= count)
        return;
#pragma unroll
    for (int part = 1; part < STEP; part++)
        sum += parts[part][across];
    const int k = i / s.o, o = i - k * s.o;
    if (k == depth && dbias)
        dbias[o] = T(sum);
    if (k < depth && dweight)
        dweight[(o * s.c + k % s.c) * s.kh * s.kw + k / s.c] = T(sum);
}

/* How the product is cut. */
struct plan {
    int wide, depth, pieces;
    long long steps, piece;
};

long long pieces_of(long long n, long long size)
{
    return (n + size - 1) / size;
}

plan plan_of(const pc__cuda_conv *s, bool dweight)
{
    const int multiprocessors = s->multiprocessors;
    plan p;
    p.depth = dweight ? s->kh * s->kw * s->c : 0;
    p.wide = s->dtype == PC__CUDA_F32 && p.depth >= 32 && s->o > 32 ? 64 : 32;
    p.steps = pieces_of(s->n * s->yh * s->yw * s->pool * s->pool, DEPTH);
    const long long tiles = pieces_of(p.depth + 1, p.wide) * pieces_of(s->o, p.wide);
    const long long room = SUMS_MOST / ((size_t)(p.depth + 1) * s->o * 8);
    const bool many = s->dtype == PC__CUDA_F32 && p.steps > (long long)multiprocessors * STEPS_MANY;
    long long pieces = (long long)multiprocessors * (p.wide == 64 ? 4 : many ? 12 : 8) / tiles;
    pieces = pieces < room ? pieces : room;
    pieces = pieces < p.steps / PIECE_LEAST ? pieces : p.steps / PIECE_LEAST;
    pieces = pieces < 1 ? 1 : pieces < DIMENSION_MOST ? pieces : DIMENSION_MOST;
    p.piece = p.steps > 0 ? pieces_of(p.steps, pieces) : 1;
    p.pieces = p.steps > 0 ? (int)pieces_of(p.steps, p.piece) : 1;
    return p;
}

template <class T, int POOL, int WIDE, int VECTOR, bool EXACT>
void launch(cudaStream_t queue, const pc__cuda_conv *s, const operands<T> &in, const plan &p)
{
    const dim3 grid((unsigned)pieces_of(p.depth + 1, WIDE), (unsigned)pieces_of(s->o, WIDE), (unsigned)p.pieces);
    pc::start_grid(weights_kernel<T, POOL, WIDE, VECTOR, EXACT>, grid, dim3(block_size<WIDE>::THREADS), 0, queue,
                   s->early, *s, in);
}

void launch_any(cudaStream_t queue, const pc__cuda_conv *s, const operands<double> &in, const plan &p)
{
    launch<double, 0, 32, 1, true>(queue, s, in, p);
}

template <int POOL>
void launch_wide(cudaStream_t queue, const pc__cuda_conv *s, const operands<float> &in, const plan &p)
{
    const bool whole = s->c % 4 == 0 && (uintptr_t)in.x % 16 == 0;
    if (p.wide == 64 && whole && s->tf32)
        launch<float, POOL, 64, 4, false>(queue, s, in, p);
    else if (p.wide == 64)
        whole ? launch<float, POOL, 64, 4, true>(queue, s, in, p) : launch<float, POOL, 64, 1, true>(queue, s, in, p);
    else
        whole ? launch<float, POOL, 32, 4, true>(queue, s, in, p) : launch<float, POOL, 32, 1, true>(queue, s, in, p);
}

void launch_any(cudaStream_t queue, const pc__cuda_conv *s, const operands<float> &in, const plan &p)
{
    if (s->pool > 2)
        launch_wide<0>(queue, s, in, p);
    else if (s->pool == 2)
        launch_wide<2>(queue, s, in, p);
    else
        launch_wide<1>(queue, s, in, p);
}

template <class S, class T>
void reduce(cudaStream_t queue, const pc__cuda_conv *s, const void *sums, int depth, int pieces, void *dweight,
            void *dbias)
{
    const long long count = (long long)(depth + 1) * s->o;
    const int across = count < REDUCE_MANY ? 8 : 32;
    pc::start(across == 8 ? reduce_kernel<S, T, 8> : reduce_kernel<S, T, 32>, (unsigned)pieces_of(count, across),
              reduce_threads(across), queue, s->early, *s, (const S *)sums, depth, pieces, (T *)dweight, (T *)dbias);
}

template <class T>
void backward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y, const uint8_t *argmax,
              const void *dy, void *dweight, void *dbias, void *scratch)
{
    const plan p = plan_of(s, dweight != NULL);
    const operands<T> in = {(const T *)x, (const T *)y, (const T *)dy, argmax, (T *)scratch, p.depth, p.steps, p.piece};
    launch_any(queue, s, in, p);
    reduce<T, T>(queue, s, scratch, p.depth, p.pieces, dweight, dbias);
}

size_t sums_bytes(const pc__cuda_conv *s, const plan &p)
{
    return (size_t)p.pieces * (p.depth + 1) * s->o * (s->dtype == PC__CUDA_F32 ? 4 : 8);
}

} // namespace

void pc__cuda_conv_add_pieces(cudaStream_t queue, const pc__cuda_conv *s, const float *sums, int depth, int pieces,
                              void *dweight, void *dbias)
{
    if (s->dtype == PC__CUDA_F16)
        reduce<float, pc::f16>(queue, s, sums, depth, pieces, dweight, dbias);
    else if (s->dtype == PC__CUDA_BF16)
        reduce<float, pc::bf16>(queue, s, sums, depth, pieces, dweight, dbias);
    else
        reduce<float, float>(queue, s, sums, depth, pieces, dweight, dbias);
}

size_t pc__cuda_conv_weights_scratch(const pc__cuda_conv *s)
{
    const size_t both = sums_bytes(s, plan_of(s, true)), bias = sums_bytes(s, plan_of(s, false));
    return both > bias ? both : bias;
}

void pc__cuda_conv_weights(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y,
                           const uint8_t *argmax, const void *dy, void *dweight, void *dbias, void *scratch)
{
    if (s->dtype == PC__CUDA_F32)
        backward<float>(queue, s, x, y, argmax, dy, dweight, dbias, scratch);
    else
        backward<double>(queue, s, x, y, argmax, dy, dweight, dbias, scratch);
}
