/* weights.cu: the gradients of a convolution's weights and bias: a product over all pixels of x, laid out by taps,
 * and the gradient spread over its pooling windows. The bias is one more row of it, under which x counts as 1. Pixels
 * are many and weights few, so the pixels are cut into pieces, a block each, whose sums go to scratch memory; a second
 * kernel adds the pieces in their order. */
#include "cuda/conv/weights_part.cuh"
#include "cuda/shared/dependent_launch.cuh"

#include <climits>

#define SUMS_MOST ((size_t)64 << 20) /* bytes of the pieces' sums */
#define PIECE_LEAST 4                /* steps that make a piece worth a block */
#define PIECES_TRIED 32
#define REDUCE_MANY 8192     /* elements that make blocks enough where each has 32 */
#define REDUCE_MOST 65536    /* and so many that a thread for each fills the GPU */
#define FEW 8                /* pieces of a thread in flight */
#define DIMENSION_MOST 65535 /* of a grid, across and up */

namespace
{

constexpr int STAGES = 3; /* of x: two steps are on their way while one is multiplied */

template <class T, int POOL, int ROWS, int WIDE, int VECTOR, bool EXACT>
__global__ void __launch_bounds__(block_size<ROWS, WIDE>::THREADS, at_once<T, ROWS, WIDE>::BLOCKS)
    weights_kernel(const pc__cuda_conv s, const operands<T> in)
{
    constexpr int THREADS = block_size<ROWS, WIDE>::THREADS;
    typedef block_sums<T, ROWS, WIDE, EXACT> sums_type;
    __shared__ __align__(16) T left[STAGES][DEPTH][sums_type::LEFT];
    __shared__ __align__(16) T right[2][DEPTH][sums_type::RIGHT];
    __shared__ pixels read;
    pc::wait_for_earlier();
    const long long begin = blockIdx.z * in.piece;
    const long long end = begin + in.piece < in.steps ? begin + in.piece : in.steps;
    const columns across = columns_of(s.groups, outputs_of(s), WIDE, blockIdx.y);
    x_part<T, ROWS, THREADS, VECTOR> x;
    g_part<T, POOL, WIDE, THREADS> g;
    sums_type sums;
    x.start(s, in, across.group);
    x.fill(in, left[0], STAGES);
#pragma unroll 1
    for (long long step = begin - STAGES + 1; step < end; step++) {
        const int now = (int)(step - begin), next = now + STAGES - 1;
        if (now >= 0) {
            g.store(right[now % 2]);
#if TENSOR_UNITS
            wait_sent<STAGES - 2>();
#endif
            __syncthreads();
        }
        /* The pixels before these, whose place they take, were last read in front of a barrier. */
        if (now == 1 - STAGES || (now >= 0 && now % AHEAD == AHEAD / 2))
            count_pixels<T, POOL, THREADS>(s, now < 0 ? begin : step + AHEAD / 2, read);
        if (now == 1 - STAGES)
            __syncthreads();
        if (step + STAGES - 1 < end)
            x.send(s, left[next % STAGES], read.from + slot_of(step + STAGES - 1));
#if TENSOR_UNITS
        sent();
#endif
        if (now >= -1 && step + 1 < end)
            g.load(s, in, across, read, slot_of(step + 1));
        if (now >= 0)
            sums.add(left[now % STAGES], right[now % 2], step + 1 == end || step % 4 == 3);
    }
    T *to = in.sums + (long long)blockIdx.z * (in.depth + 1) * s.o;
#pragma unroll
    for (int i = 0; i < sums_type::COUNT; i++)
#pragma unroll
        for (int j = 0; j < sums_type::BESIDE; j++) {
            const int row = sums_type::row_of(i), k = blockIdx.x * ROWS + row;
            const int o = across.column + sums_type::column_of(i) + j;
            if (row < ROWS && k <= in.depth && o < across.end)
                to[(long long)k * s.o + o] = sums.sum[i][j];
        }
}

/* Threads of a block with ACROSS elements: where there are few, more for each; where there are many, blocks so small
 * that all are on the multiprocessors at once. */
constexpr int reduce_threads(int across)
{
    return across < 32 ? 512 : 256;
}

/* Element i of the sums, [kh][kw][c][o] and the bias behind them, to where it belongs. */
template <class S, class T>
__device__ inline void give(const pc__cuda_conv &s, int i, int depth, S sum, T *dweight, T *dbias)
{
    const int k = i / s.o, o = i - k * s.o, c = inputs_of(s);
    if (k == depth && dbias)
        dbias[o] = T(sum);
    if (k < depth && dweight)
        dweight[(o * c + k % c) * s.kh * s.kw + k / c] = T(sum);
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
    give(s, i, depth, sum, dweight, dbias);
}

/* The same where weights are many and pieces few: a thread adds up an element alone. */
template <class S, class T>
__global__ void __launch_bounds__(256)
    reduce_few_kernel(const pc__cuda_conv s, const S *__restrict__ sums, int depth, int pieces, T *dweight, T *dbias)
{
    const int count = (depth + 1) * s.o, i = blockIdx.x * 256 + threadIdx.x;
    S sum = 0;
    pc::wait_for_earlier();
    if (i >= count)
        return;
#pragma unroll 1
    for (int first = 0; first < pieces; first += FEW) {
        S next[FEW];
#pragma unroll
        for (int k = 0; k < FEW; k++)
            next[k] = first + k < pieces ? sums[(long long)(first + k) * count + i] : S(0);
#pragma unroll
        for (int k = 0; k < FEW; k++)
            sum += next[k];
    }
    give(s, i, depth, sum, dweight, dbias);
}

/* How the product is cut. */
struct plan {
    int rows, wide, depth, pieces;
    long long steps, piece;
};

long long pieces_of(long long n, long long size)
{
    return (n + size - 1) / size;
}

/* The blocks that cover all weights in the least time: `time` is what a step of one takes its warps, in hundreds of
 * instructions. TF32 has the largest alone. */
struct cut {
    int rows, wide, time, blocks;
};

cut cut_of(const pc__cuda_conv *s, int depth)
{
    static const cut cuts[] = {{32, 32, 17, at_once<float, 32, 32>::BLOCKS},
                               {128, 16, 23, at_once<float, 128, 16>::BLOCKS},
                               {128, 32, 28, at_once<float, 128, 32>::BLOCKS},
                               {64, 48, 25, at_once<float, 64, 48>::BLOCKS},
                               {64, 64, 28, at_once<float, 64, 64>::BLOCKS}};
    const int count = sizeof cuts / sizeof *cuts;
    if (s->dtype != PC__CUDA_F32)
        return {32, 32, 0, 8};
    if (s->tf32 && inputs_of(*s) % 4 == 0 && depth >= 32 && outputs_of(*s) > 32)
        return cuts[count - 1];
    const cut *best = cuts;
    long long least = LLONG_MAX;
    for (int i = 0; i<count; i += s->pool> 2 ? count - 1 : 1) {
        const long long time =
            pieces_of(depth + 1, cuts[i].rows) * pieces_of(outputs_of(*s), cuts[i].wide) * cuts[i].time;
        if (time < least)
            best = &cuts[i], least = time;
    }
    return *best;
}

/* Of a whole wave on one multiprocessor, as many blocks' times; of a part of one more, for blocks that are there with few
 * others wait more than they multiply. */
double waves_of(long long blocks, int at_once)
{
    const long long rest = blocks % at_once;
    return blocks - rest + (rest ? rest / (0.25 + 0.75 * rest / at_once) : 0);
}

/* As many pieces as fill the multiprocessors once, or some more where tiles are so many that these leave some of them
 * idle: blocks come in whole numbers to each. Measured: a step of the largest cut, and how fast sums are added up. */
long long best_pieces(const pc__cuda_conv *s, const cut &c, long long tiles, long long steps, double sums,
                      long long most)
{
    const double step = 0.376e-6 * c.time / 28, add = sums * 8 / 3e12; /* seconds, of a step and of a piece */
    const int fill = 6; /* steps that a block takes to begin and to end */
    const long long filling = (long long)s->multiprocessors * c.blocks / tiles;
    long long best = filling < 1 ? 1 : filling;
    double least = -1;
    for (long long pieces = best; filling < PIECES_TRIED / 2 && pieces <= PIECES_TRIED && pieces <= most; pieces++) {
        const double waves = waves_of(pieces_of(tiles * pieces, s->multiprocessors), c.blocks);
        const double time = waves * (pieces_of(steps, pieces) + fill) * step + pieces * add;
        if (least < 0 || time < least)
            best = pieces, least = time;
    }
    return best < most ? best : most;
}

plan plan_of(const pc__cuda_conv *s, bool dweight)
{
    plan p;
    p.depth = dweight ? s->kh * s->kw * inputs_of(*s) : 0;
    const cut c = cut_of(s, p.depth);
    p.rows = c.rows, p.wide = c.wide;
    p.steps = pieces_of(s->n * s->yh * s->yw * s->pool * s->pool, DEPTH);
    const long long tiles = pieces_of(p.depth + 1, c.rows) * blocks_across(s, outputs_of(*s), c.wide);
    const long long room = SUMS_MOST / ((size_t)(p.depth + 1) * s->o * 8);
    const long long most = room < p.steps / PIECE_LEAST ? room : p.steps / PIECE_LEAST;
    long long pieces = best_pieces(s, c, tiles, p.steps, (p.depth + 1.0) * s->o, most);
    pieces = pieces < 1 ? 1 : pieces < DIMENSION_MOST ? pieces : DIMENSION_MOST;
    p.piece = p.steps > 0 ? pieces_of(p.steps, pieces) : 1;
    p.pieces = p.steps > 0 ? (int)pieces_of(p.steps, p.piece) : 1;
    return p;
}

template <class T, int POOL, int ROWS, int WIDE, int VECTOR, bool EXACT>
void launch(cudaStream_t queue, const pc__cuda_conv *s, const operands<T> &in, const plan &p)
{
    const dim3 grid((unsigned)pieces_of(p.depth + 1, ROWS), (unsigned)blocks_across(s, outputs_of(*s), WIDE),
                    (unsigned)p.pieces);
    pc::start_grid(weights_kernel<T, POOL, ROWS, WIDE, VECTOR, EXACT>, grid, dim3(block_size<ROWS, WIDE>::THREADS), 0,
                   queue, s->early, *s, in);
}

void launch_any(cudaStream_t queue, const pc__cuda_conv *s, const operands<double> &in, const plan &p)
{
    launch<double, 0, 32, 32, 1, true>(queue, s, in, p);
}

template <int POOL, int ROWS, int WIDE>
void launch_cut(cudaStream_t queue, const pc__cuda_conv *s, const operands<float> &in, const plan &p)
{
    if (inputs_of(*s) % 4 == 0 && (uintptr_t)in.x % 16 == 0)
        launch<float, POOL, ROWS, WIDE, 4, true>(queue, s, in, p);
    else
        launch<float, POOL, ROWS, WIDE, 1, true>(queue, s, in, p);
}

template <int POOL>
void launch_pool(cudaStream_t queue, const pc__cuda_conv *s, const operands<float> &in, const plan &p)
{
    if (p.rows == 32)
        launch_cut<POOL, 32, 32>(queue, s, in, p);
    else if (p.wide == 16)
        launch_cut<POOL, 128, 16>(queue, s, in, p);
    else if (p.wide == 32)
        launch_cut<POOL, 128, 32>(queue, s, in, p);
    else if (p.wide == 48)
        launch_cut<POOL, 64, 48>(queue, s, in, p);
    else if (s->tf32 && inputs_of(*s) % 4 == 0 && (uintptr_t)in.x % 16 == 0)
        launch<float, POOL, 64, 64, 4, false>(queue, s, in, p);
    else
        launch_cut<POOL, 64, 64>(queue, s, in, p);
}

/* Windows of three and more, which are rare, have few kernels. */
template <> void launch_pool<0>(cudaStream_t queue, const pc__cuda_conv *s, const operands<float> &in, const plan &p)
{
    if (p.rows == 32)
        launch<float, 0, 32, 32, 1, true>(queue, s, in, p);
    else
        launch<float, 0, 64, 64, 1, true>(queue, s, in, p);
}

void launch_any(cudaStream_t queue, const pc__cuda_conv *s, const operands<float> &in, const plan &p)
{
    if (s->pool > 2)
        launch_pool<0>(queue, s, in, p);
    else if (s->pool == 2)
        launch_pool<2>(queue, s, in, p);
    else
        launch_pool<1>(queue, s, in, p);
}

template <class S, class T>
void reduce(cudaStream_t queue, const pc__cuda_conv *s, const void *sums, int depth, int pieces, void *dweight,
            void *dbias)
{
    const long long count = (long long)(depth + 1) * s->o;
    const int across = count < REDUCE_MANY ? 8 : 32;
    if (count >= REDUCE_MOST && pieces <= 4 * FEW) {
        pc::start(reduce_few_kernel<S, T>, (unsigned)pieces_of(count, 256), 256, queue, s->early, *s, (const S *)sums,
                  depth, pieces, (T *)dweight, (T *)dbias);
        return;
    }
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
