/* weights_part.cuh: what a block of the weights' gradient (weights.cu) reads and multiplies, a step of DEPTH pixels at a
 * time: x laid out by taps, and the gradient spread over its pooling windows. */
#ifndef PC__CUDA_CONV_WEIGHTS_PART_CUH
#define PC__CUDA_CONV_WEIGHTS_PART_CUH

#include "cuda/conv/conv.h"
#include "cuda/conv/order.cuh"
#include "cuda/shared/load.cuh"
#include "cuda/shared/mma.cuh"

namespace
{

constexpr int DEPTH = 16; /* pixels of a step */
constexpr int NOWHERE = -(1 << 28);

template <class T> struct operands {
    const T *x, *y, *dy;
    const uint8_t *argmax;
    T *sums;                /* [pieces][depth + 1][o] */
    int depth;              /* kh kw and a group's c, or 0 where only the bias is wanted */
    long long steps, piece; /* all, and of a piece */
};

/* A block makes ROWS weights of each output channel (or the bias, the row behind the last) by WIDE output channels. Its
 * warps make 32 rows each by all of these, or by half where there are many, or rows are few. */
template <int ROWS, int WIDE> struct block_size {
    static constexpr int DOWN = ROWS / 32, ACROSS = WIDE > 32 || (DOWN == 1 && WIDE > 16) ? 2 : 1;
    static constexpr int WARPS = DOWN * ACROSS, THREADS = WARPS * 32, OF_WARP = WIDE / ACROSS;
};

/* A pixel of the gradient before pooling: the byte in x of its tap (0, 0), which may be beside the picture, and column
 * << 32 | row of that. */
struct alignas(16) place {
    long long at, spot;
};

/* What is read under the pixels of AHEAD steps: the windows' first elements in y, -1 where there is none, and their
 * places in them. Twice, since the next are counted while these are read. */
constexpr int AHEAD = 8, PIXELS = AHEAD * DEPTH;

struct pixels {
    place from[2 * PIXELS];
    long long at[2 * PIXELS];
    uint8_t of_window[2 * PIXELS];
};

/* Of a step's first pixel. */
__device__ inline int slot_of(long long step)
{
    return (int)((unsigned)step % (2 * AHEAD) * DEPTH);
}

/* Pixel i, window by window. */
template <class T, int POOL> __device__ inline void count_pixel(const pc__cuda_conv &s, long long i, pixels &to)
{
    const int side = POOL ? POOL : s.pool, places = side * side, slot = (int)((unsigned)i % (2 * PIXELS));
    const long long index = quotient(i, places), line = quotient(index, s.yw), image = quotient(line, s.yh);
    const int place = (int)(i - index * places), down = POOL == 1 ? 0 : place / side;
    const int row = ((int)(line - image * s.yh) * side + down) * s.sh - s.ph;
    const int column = ((int)(index - line * s.yw) * side + place - down * side) * s.sw - s.pw;
    const bool there = image < s.n;
    to.at[slot] = there ? pixel_at(s, index) : -1;
    to.of_window[slot] = (uint8_t)place;
    to.from[slot] = {((image * s.h + row) * s.w + column) * s.c * (long long)sizeof(T),
                     (long long)((unsigned long long)(unsigned)column << 32 | (unsigned)(there ? row : NOWHERE))};
}

/* Pixels of AHEAD steps from `step` on. */
template <class T, int POOL, int THREADS>
__device__ inline void count_pixels(const pc__cuda_conv &s, long long step, pixels &to)
{
    static_assert(PIXELS % THREADS == 0, "a thread's are as many as another's");
#pragma unroll 1
    for (int i = 0; i < PIXELS; i += THREADS)
        count_pixel<T, POOL>(s, step * DEPTH + i + threadIdx.x, to);
}

/* Elements on their way to shared memory: by themselves where a GPU can do so. */
template <class T, int N> __device__ inline void bring(T *to, const char *from, bool there)
{
#if TENSOR_UNITS
    send_or_clear<N * sizeof(T)>(to, from, there);
#else
    *(vector<T, N> *)to = there ? *(const vector<T, N> *)from : vector<T, N>{};
#endif
}

/* Of x a thread brings VECTOR rows of the product, for some pixels of each step: those of weights. Behind them lie the
 * bias's row, ones, and zeros. */
template <class T, int ROWS, int THREADS, int VECTOR> struct x_part {
    static constexpr int ACROSS = ROWS / VECTOR, APART = THREADS / ACROSS, COUNT = DEPTH / APART;
    const char *from;
    int row, column;
    bool there;

    __device__ inline void start(const pc__cuda_conv &s, const operands<T> &in, int group)
    {
        const int channels = inputs_of(s);
        const int k = blockIdx.x * ROWS + threadIdx.x % ACROSS * VECTOR;
        there = k < in.depth;
        row = column = 0, from = NULL;
        if (!there)
            return;
        const unsigned tap = (unsigned)k / (unsigned)channels;
        row = (int)(tap / (unsigned)s.kw), column = (int)(tap - (unsigned)row * (unsigned)s.kw);
        row *= s.dh, column *= s.dw;
        const long long pixel = (long long)row * s.w + column;
        from = (const char *)(in.x + pixel * s.c + group * channels + (int)(k - tap * (unsigned)channels));
    }

    template <int LEFT> __device__ inline void send(const pc__cuda_conv &s, T (*left)[LEFT], const place *pixels) const
    {
        if (!there)
            return;
        const int pixel = threadIdx.x / ACROSS, across = threadIdx.x % ACROSS * VECTOR;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const place p = pixels[pixel + i * APART];
            const bool in_row = (unsigned)((int)p.spot + row) < (unsigned)s.h;
            const bool inside = in_row & ((unsigned)((int)(p.spot >> 32) + column) < (unsigned)s.w);
            bring<T, VECTOR>(&left[pixel + i * APART][across], from + p.at, inside);
        }
    }

    /* The rows that are sent nothing, in all stages. */
    template <int LEFT> __device__ inline void fill(const operands<T> &in, T (*left)[LEFT], int stages) const
    {
        const int across = threadIdx.x % ACROSS * VECTOR, k = blockIdx.x * ROWS + across;
        if (!there)
#pragma unroll 1
            for (int i = threadIdx.x / ACROSS; i < stages * DEPTH; i += APART)
                *(vector<T, VECTOR> *)&left[i][across] = {k == in.depth ? T(1) : T(0)};
    }
};

/* Out of line: for each number of each step it would be most of a kernel. */
template <class T> __device__ __noinline__ T gradient_apart(int kind, T dy, T y)
{
    return activation_gradient(kind, dy, y);
}

/* Of the gradient a thread brings some windows' channels, 16 apart. */
template <class T, int POOL, int WIDE, int THREADS> struct g_part {
    static constexpr int PLACES = POOL == 2 ? 4 : 1, WINDOWS = DEPTH / PLACES, APART = THREADS / 16;
    static constexpr int DOWN = (WINDOWS + APART - 1) / APART, ACROSS = WIDE / 16;
    T g[DOWN][ACROSS];
    uint8_t place[DOWN][ACROSS];

    __device__ inline void load(const pc__cuda_conv &s, const operands<T> &in, const columns &across,
                                const pixels &from, int slot)
    {
        const int o = across.column + threadIdx.x % 16, window = threadIdx.x / 16, step = channel_step(s);
        const bool behind = needs_y(s);
#pragma unroll
        for (int i = 0; i < DOWN; i++) {
            const bool mine = WINDOWS % APART == 0 || window + i * APART < WINDOWS;
            const int pixel = slot + (mine ? window + i * APART : 0) * PLACES;
            const long long at = mine ? from.at[pixel] : -1, element = at + (long long)o * step;
            const int most = at < 0 ? 0 : across.end - o; /* how many channels are there from o on */
#pragma unroll
            for (int j = 0; j < ACROSS; j++) {
                const bool there = j * 16 < most;
                g[i][j] = there ? in.dy[element + j * 16 * step] : T(0);
                if (behind && there)
                    g[i][j] = gradient_apart(s.activation, g[i][j], in.y[element + j * 16 * step]);
                if (POOL != 1)
                    place[i][j] = there && s.pool > 1 ? in.argmax[element + j * 16 * step] : 0;
                if (POOL == 0)
                    g[i][j] = place[i][j] == from.of_window[pixel] ? g[i][j] : T(0);
            }
        }
    }

    template <int RIGHT> __device__ inline void store(T (*right)[RIGHT]) const
    {
        const int across = threadIdx.x % 16, window = threadIdx.x / 16;
#pragma unroll
        for (int i = 0; i < DOWN; i++)
#pragma unroll
            for (int j = 0; j < ACROSS; j++)
#pragma unroll
                for (int q = 0; q < PLACES; q++)
                    if (WINDOWS % APART == 0 || window + i * APART < WINDOWS)
                        right[(window + i * APART) * PLACES + q][across + j * 16] =
                            PLACES == 1 || place[i][j] == q ? g[i][j] : T(0);
    }
};

/* The sums of a block: a thread's are in rows row_of(i), two or four columns side by side from column_of(i). */
template <class T, int ROWS, int WIDE, bool EXACT> struct block_sums {
    static constexpr int THREADS = block_size<ROWS, WIDE>::THREADS, CELLS = ROWS / 4 * (WIDE / 4);
    static constexpr int LEFT = ROWS + 4, RIGHT = WIDE, COUNT = (CELLS + THREADS - 1) / THREADS * 4, BESIDE = 4;
    T sum[COUNT][4] = {};

    static __device__ inline int row_of(int i)
    {
        return (i / 4 * THREADS + threadIdx.x) / (WIDE / 4) * 4 + i % 4;
    }

    static __device__ inline int column_of(int i)
    {
        return (i / 4 * THREADS + threadIdx.x) % (WIDE / 4) * 4;
    }

    __device__ inline void add(const T (*left)[LEFT], const T (*right)[RIGHT], bool)
    {
#pragma unroll
        for (int d = 0; d < DEPTH; d++)
#pragma unroll
            for (int i = 0; i < COUNT; i += 4) {
                if (CELLS % THREADS && row_of(i) >= ROWS)
                    continue;
                const vector<T, 4> b = *(const vector<T, 4> *)&right[d][column_of(i)];
                const vector<T, 4> a = *(const vector<T, 4> *)&left[d][row_of(i)];
#pragma unroll
                for (int j = 0; j < 16; j++)
                    sum[i + j / 4][j % 4] += a.at[j / 4] * b.at[j % 4];
            }
    }
};

#if TENSOR_UNITS
/* By matrix units. */
template <int ROWS, int WIDE, bool EXACT> struct block_sums<float, ROWS, WIDE, EXACT> {
    typedef block_size<ROWS, WIDE> size;
    static constexpr int LEFT = ROWS + 8, RIGHT = WIDE + 8, TILES = size::OF_WARP / 8, COUNT = 4 * TILES, BESIDE = 2;
    float sum[COUNT][2] = {}, part[2][TILES][4] = {};

    static __device__ inline int row_of(int i)
    {
        return threadIdx.x / 32 / size::ACROSS * 32 + i % 4 * 8 + threadIdx.x % 32 / 4;
    }

    static __device__ inline int column_of(int i)
    {
        return threadIdx.x / 32 % size::ACROSS * size::OF_WARP + i / 4 * 8 + threadIdx.x % 4 * 2;
    }

    __device__ inline void add(const float (*left)[LEFT], const float (*right)[RIGHT], bool last)
    {
        const int row = row_of(0), column = column_of(0) - threadIdx.x % 4 * 2 + threadIdx.x % 32 / 4;
#pragma unroll
        for (int d = threadIdx.x % 4; d < DEPTH; d += 8) {
            halves<4> a[2];
#pragma unroll
            for (int j = 0; j < 8; j++)
                a[j / 4].template take<EXACT>(j % 4, left[d + j % 4 / 2 * 4][row + j / 4 * 16 + j % 2 * 8]);
#pragma unroll
            for (int n = 0; n < TILES; n++) {
                halves<2> b[1];
                b[0].template take<EXACT>(0, right[d][column + n * 8]);
                b[0].template take<EXACT>(1, right[d + 4][column + n * 8]);
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

/* Blocks at once on a multiprocessor: what registers allow, and the grid is made for. */
template <class T, int ROWS, int WIDE> struct at_once {
    static constexpr int BLOCKS = sizeof(T) == 8 ? 1 : ROWS == 32 ? 10 : WIDE == 16 ? 6 : WIDE == 48 ? 5 : 4;
};

} // namespace

#endif
