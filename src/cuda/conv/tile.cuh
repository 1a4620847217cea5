/* tile.cuh: the product inside a convolution, without the matrix of its operand: rows are pixels, depth runs over
 * the taps of the kernel and the channels under each. A block of 256 threads makes BM rows x BN outputs, 16 of depth
 * at a time: what comes next is on its way from memory to registers while what is in shared memory is multiplied.
 * Floats are multiplied by matrix units where there are some for them (shared/mma.cuh), else as doubles are. */
#ifndef PC__CUDA_CONV_TILE_CUH
#define PC__CUDA_CONV_TILE_CUH

#include "cuda/conv/order.cuh"
#include "cuda/conv/split_k.cuh"
#include "cuda/conv/tile_part.cuh"
#include "cuda/shared/dependent_launch.cuh"

namespace
{

/* Rows of a block: its eight warps make 32 rows each, of all its outputs or, where these are many, of half of them. */
template <class T> constexpr int rows_of_block(int wide)
{
    return sizeof(T) == 4 && wide <= 32 ? 256 : 128;
}

/* On a multiprocessor, as far as registers go. */
template <class T> constexpr int blocks_at_once(int wide)
{
    return sizeof(T) == 8 ? 1 : wide == 16 ? 3 : 2;
}

/* A thread's, in squares of 4 x 4. */
template <class T> constexpr int sums_of_thread(int wide)
{
    return (rows_of_block<T>(wide) * wide / 16 + THREADS - 1) / THREADS * 16;
}

/* Outputs of a block: of the tiles that cover them all those that take least. A step's work is what brings its rows in,
 * whatever the outputs, and products of eights of these; `time` is a warp's instructions a step, for as many rows
 * each, the mean of channels in fours and of others. TF32 has wide tiles alone: there products hardly count. */
inline int tile_for(int outputs, bool tf32)
{
    static const struct {
        int wide, time;
    } tiles[] = {{64, 92}, {48, 83}, {32, 52}, {16, 43}};
    long long least = 0;
    int best = 0;
    for (const auto &t : tiles) {
        const long long time = ((long long)outputs + t.wide - 1) / t.wide * t.time;
        if ((best == 0 || time < least) && (!tf32 || t.wide % 32 == 0))
            best = t.wide, least = time;
    }
    return best;
}

/* EXACT: all bits of floats, else TF32. A thread's sums come in groups of four rows, as the pixels of a pooling window
 * do, by up to four outputs: sum[group * 4 + i][j] is of row row_of(group) + i, output column_of(group) + j, and there
 * are width_of(group) of these, or none. places[i] is that of row row_at(i). */
template <class T, int BN, int VECTOR, bool EXACT> struct tile {
    static constexpr int BM = rows_of_block<T>(BN), ACROSS = BN / 4, CELLS = BM / 4 * ACROSS;
    static constexpr int GROUPS = (CELLS + THREADS - 1) / THREADS, TM = GROUPS * 4;
    static_assert(TM * 4 == sums_of_thread<T>(BN), "as a tile's parts are counted");
    T sum[TM][4];

    static __device__ inline int row_at(int i)
    {
        return i;
    }

    static __device__ inline int row_of(int group)
    {
        return (group * THREADS + threadIdx.x) / ACROSS * 4;
    }

    static __device__ inline int column_of(int group)
    {
        return (group * THREADS + threadIdx.x) % ACROSS * 4;
    }

    static __device__ inline int width_of(int group)
    {
        return (group + 1) * THREADS <= CELLS || group * THREADS + threadIdx.x < CELLS ? 4 : 0;
    }

    __device__ inline void multiply(const T (*left)[BM + 4], const T (*right)[BN])
    {
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
#pragma unroll
            for (int group = 0; group < GROUPS; group++) {
                if (width_of(group) == 0)
                    continue;
                const vector<T, 4> b = *(const vector<T, 4> *)&right[k][column_of(group)];
                const vector<T, 4> a = *(const vector<T, 4> *)&left[k][row_of(group)];
#pragma unroll
                for (int i = 0; i < 4; i++)
#pragma unroll
                    for (int j = 0; j < 4; j++)
                        sum[group * 4 + i][j] += a.at[i] * b.at[j];
            }
        }
    }

    /* Outputs from `column` on, `steps` of DEPTH from step `first` on; behind the last there is nothing. */
    __device__ inline void run(const picture<T> &in, const weights<T> &w, int column, const place *places, int first,
                               int steps)
    {
        __shared__ __align__(16) T left[2][DEPTH][BM + 4];
        __shared__ __align__(16) T right[2][DEPTH][BN];
        rows_part<T, BM, VECTOR> rows;
        weights_part<T, BN> outputs;
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                sum[i][j] = 0;
        rows.start(w, first * DEPTH);
        outputs.start(w, first * DEPTH);
        rows.load(in, w, places);
        outputs.load(w, column);
        for (int step = 0, now = 0; step < steps; step++, now ^= 1) {
            rows.store(left[now]);
            outputs.store(right[now]);
            __syncthreads();
            if (step + 1 < steps) {
                rows.load(in, w, places);
                outputs.load(w, column);
            }
            multiply(left[now], right[now]);
        }
    }
};

#if TENSOR_UNITS
/* Each warp makes 32 rows x WIDE outputs. Rows lie in shared memory in the order in which matrix units give each thread
 * four rows of a window; a thread has depth 4 t to 4 t + 3 of every 16, so that it reads them at once. */
template <int BN, int VECTOR, bool EXACT> struct tile<float, BN, VECTOR, EXACT> {
    static constexpr int BM = rows_of_block<float>(BN), ACROSS = THREADS / BM, WIDE = BN / ACROSS, EIGHTS = WIDE / 8;
    static constexpr int GROUPS = (EIGHTS + 1) / 2, TM = GROUPS * 4;
    static_assert(TM * 4 == sums_of_thread<float>(BN), "as a tile's parts are counted");
    float sum[TM][4];

    static __device__ inline int row_at(int i)
    {
        return i / 32 * 32 + i % 8 * 4 + i % 32 / 8;
    }

    static __device__ inline int row_of(int)
    {
        return threadIdx.x / 32 / ACROSS * 32 + threadIdx.x % 32 / 4 * 4;
    }

    static __device__ inline int column_of(int group)
    {
        return threadIdx.x / 32 % ACROSS * WIDE + group * 16 + threadIdx.x % 4 * width_of(group);
    }

    static __device__ inline constexpr int width_of(int group)
    {
        return group < EIGHTS / 2 ? 4 : 2;
    }

    static __device__ inline void multiply(const float (*left)[DEPTH], const float (*right)[BN + 2],
                                           float (*part)[EIGHTS][4])
    {
        constexpr int BESIDE = EIGHTS % 2 ? EIGHTS : 2;
        const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        vector<float, 4> a[4];
#pragma unroll
        for (int q = 0; q < 4; q++)
            a[q] = *(const vector<float, 4> *)&left[warp / ACROSS * 32 + q * 8 + g][t * 4];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            halves<4> as[2];
#pragma unroll
            for (int q = 0; q < 4; q++)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    as[q / 2].template take<EXACT>(q % 2 + 2 * e, a[q].at[half * 2 + e]);
#pragma unroll
            for (int n = 0; n < EIGHTS; n += BESIDE) {
                halves<2> bs[BESIDE];
#pragma unroll
                for (int beside = 0; beside < BESIDE; beside++) {
                    const float *b = &right[t * 4 + half * 2][warp % ACROSS * WIDE + (n + beside) * 8 + g];
                    bs[beside].template take<EXACT>(0, b[0]);
                    bs[beside].template take<EXACT>(1, b[BN + 2]);
                }
                add_products<EXACT>(&part[0][n], &part[1][n], as, bs);
            }
        }
    }

    /* Matrix units cut their sums short, so these are added up by fours of steps. */
    __device__ inline void collect(float (*part)[EIGHTS][4])
    {
#pragma unroll
        for (int i = 0; i < 8 * EIGHTS; i++) {
            const int n = i / 8, q = i % 8 / 2, e = i % 2;
            sum[n / 2 * 4 + q][n % 2 * 2 + e] += part[q / 2][n][q % 2 * 2 + e];
            part[q / 2][n][q % 2 * 2 + e] = 0;
        }
    }

    __device__ inline void run(const picture<float> &in, const weights<float> &w, int column, const place *places,
                               int first, int steps)
    {
        constexpr int STAGES = BM == 128 ? 3 : 2;
        __shared__ __align__(16) float left[STAGES][BM][DEPTH];
        __shared__ __align__(16) float right[STAGES][DEPTH][BN + 2];
        rows_part<float, BM, VECTOR> rows;
        weights_part<float, BN> outputs;
        float part[2][EIGHTS][4] = {};
#pragma unroll
        for (int i = 0; i < TM * 4; i++)
            sum[i / 4][i % 4] = 0;
        rows.start(w, first * DEPTH);
        outputs.start(w, first * DEPTH);
#pragma unroll 1
        for (int step = 1 - STAGES, next = 0; step < steps; step++) {
            if (step >= 0) {
                wait_sent<STAGES - 2>();
                __syncthreads();
            }
            if (step + STAGES - 1 < steps) {
                rows.send_to(left[next], in, w, places);
                outputs.template send_to<WIDE>(right[next], w, column);
            }
            sent();
            next = next + 1 < STAGES ? next + 1 : 0; /* the oldest, too */
            if (step >= 0) {
                multiply(left[next], right[next], part);
                if (step % 4 == 3)
                    collect(part);
            }
        }
        collect(part);
    }
};
#endif

/* A part of the sums of this block's tile, of product `kind` in the grid. True where the block has the whole sums then,
 * and goes on with them. */
template <class Tile, class T>
__device__ __forceinline__ bool run_part(Tile &t, const picture<T> &in, const weights<T> &w, int column,
                                         const place *places, const split_k &k, int kind, int part)
{
    const int first = part * k.steps;
    t.run(in, w, column, places, first, min(k.steps, (w.depth + DEPTH - 1) / DEPTH - first));
    if constexpr (sizeof(T) == 4)
        return k.splits == 1 || join_parts<Tile::TM, THREADS>(&t.sum[0][0], k, kind, part);
    return true;
}

/* `width` outputs of four side by side, or `step` apart: the `left` that are there. */
template <class T>
__device__ inline void store_four(T *to, const T (&value)[4], int width, int left, bool whole, long long step = 1)
{
    if (whole && width == 4) {
        *(vector<T, 4> *)to = {value[0], value[1], value[2], value[3]};
        return;
    }
#pragma unroll
    for (int j = 0; j < 4; j++)
        if (j < width && j < left)
            to[j * step] = value[j];
}

/* Where weights lie that lead from `inner` to `outputs`, of which each group has `each`: distances in elements of inner,
 * outputs, and groups. */
struct weights_order {
    int inner, outputs, each, step, output, group;
};

/* packed[tap][inner][output], so that outputs lie side by side. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    pack_kernel(const T *__restrict__ from, T *__restrict__ packed, int taps, const weights_order w)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    pc::wait_for_earlier();
    if (i >= taps * w.inner * w.outputs)
        return;
    const int rest = i / w.outputs, o = i % w.outputs, group = o / w.each;
    packed[i] = from[rest / w.inner + rest % w.inner * w.step + (o - group * w.each) * w.output + group * w.group];
}

/* `rows` by `outputs` of each of `products`, by tiles `wide`; each group has so many outputs. */
inline cut_tiles tiling_of(const pc__cuda_conv *s, int wide, long long rows, int outputs, int products, int depth)
{
    const int high = rows_of_block<float>(wide);
    return {(rows + high - 1) / high * blocks_across(s, outputs, wide) * products,
            sums_of_thread<float>(wide) * THREADS,
            (depth + DEPTH - 1) / DEPTH,
            LEAST_STEPS,
            blocks_at_once<float>(wide) * s->multiprocessors,
            s->tf32 ? 0 : 2};
}

/* Sums of doubles are whole. */
template <class T> split_k split_of(const cut_tiles &t, int depth, const parts_memory &in)
{
    return sizeof(T) == 4 ? split_of(t, in) : split_k{1, (depth + DEPTH - 1) / DEPTH, in};
}

/* Whichever tiles the operands' places allow. */
inline size_t most_partial_bytes(const pc__cuda_conv *s, int outputs, cut_tiles (*tiles)(const pc__cuda_conv *, int))
{
    if (s->dtype != PC__CUDA_F32)
        return 0;
    const size_t exact = partial_bytes(tiles(s, tile_for(outputs, false)));
    const size_t rounded = s->tf32 ? partial_bytes(tiles(s, tile_for(outputs, true))) : 0;
    return exact > rounded ? exact : rounded;
}

/* Weights for a product that leads on or back, packed into `packed`. Few enough are read where they lie: that is less
 * than a launch takes. */
template <class T>
weights<T> weights_for(cudaStream_t queue, const pc__cuda_conv *s, const void *from, const weights_order &order,
                       void *packed)
{
    const int taps = s->kh * s->kw, depth = taps * order.inner;
    weights<T> w = {(const T *)from,
                    s->kw > 1 ? s->kw : 1,
                    order.inner > 1 ? order.inner : 1,
                    depth,
                    order.outputs,
                    s->kw,
                    1,
                    order.step,
                    order.output,
                    order.group - order.each * order.output,
                    false,
                    {}};
    w.stride = tap_of(w, DEPTH);
    if (depth <= 2 * DEPTH)
        return w;
    const unsigned grid = (unsigned)(((long long)depth * order.outputs + THREADS - 1) / THREADS);
    pc::start(pack_kernel<T>, grid, THREADS, queue, s->early, (const T *)from, (T *)packed, taps, order);
    w.at = (const T *)packed;
    w.step = order.outputs;
    w.output = 1;
    w.group = 0;
    w.tap_column = order.inner * order.outputs;
    w.tap_row = s->kw * w.tap_column;
    w.whole = order.each % 4 == 0;
    return w;
}

inline size_t bytes_of(const pc__cuda_conv *s, size_t elements)
{
    return elements * (s->dtype == PC__CUDA_F32 ? 4 : 8);
}

inline size_t in_256(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

inline size_t packed_bytes(const pc__cuda_conv *s)
{
    return in_256(bytes_of(s, (size_t)s->o * inputs_of(*s) * s->kh * s->kw));
}

inline bool on_16_bytes(const void *pointer)
{
    return (uintptr_t)pointer % 16 == 0;
}

} // namespace

#endif
