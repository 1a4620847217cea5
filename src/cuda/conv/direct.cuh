/* direct.cuh: pieces of pictures in shared memory, as floats and channel by channel, so that a thread reads four
 * neighbours in one access; and how a grid is cut into them. */
#ifndef PC__CUDA_CONV_DIRECT_CUH
#define PC__CUDA_CONV_DIRECT_CUH

#include "cuda/conv/direct.h"
#include "cuda/conv/order.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/half.cuh"
#include "cuda/shared/load.cuh"

namespace
{

constexpr int LANES = 32, FOUR = 4, SHARED_MOST = 64 << 10;
constexpr int FLIGHT = 4;    /* pixels of a thread on their way from memory */
constexpr int TAPS_MOST = 5; /* of a row of the kernel at once: with four pixels they lie over eight neighbours */

__host__ __device__ inline int over(long long a, long long b)
{
    return (int)((a + b - 1) / b);
}

/* [picture][channel][row][phase][column], in floats: with a stride of s, columns s apart lie side by side in one of s
 * phases, and a row of the kernel is one of stride 1 in each. */
struct tile {
    int rows, columns, phases, pitch;
    int row, channel, picture; /* distances */
};

/* For `across` fours of results under so many taps in each phase; the last taps read whole fours. */
inline tile tile_of(int rows, int across, int taps, int phases, int channels)
{
    tile t;
    t.rows = rows, t.phases = phases;
    t.pitch = FOUR * (across + over(taps - 1, FOUR));
    t.columns = t.pitch * phases;
    t.row = t.columns;
    t.channel = t.row * rows;
    t.picture = t.channel * channels;
    return t;
}

/* Taps of a kernel's row that leave `rest` when divided by the stride, and how many taps with less there are. */
__host__ __device__ inline int taps_of(int rest, int kernel, int stride)
{
    return kernel / stride + (rest < kernel % stride);
}

__host__ __device__ inline int taps_before(int rest, int kernel, int stride)
{
    const int more = kernel % stride;
    return rest * (kernel / stride) + (rest < more ? rest : more);
}

/* So many of the `left` taps at once: fours, whose neighbours lie on 16 bytes, and what is left behind them. */
__host__ __device__ inline int at_once(int left)
{
    return left <= TAPS_MOST ? left : FOUR;
}

/* f with a number of the type. */
template <class F> __device__ inline void as_type(int dtype, F f)
{
    if (dtype == PC__CUDA_F32)
        f(0.0f);
    else if (dtype == PC__CUDA_F16)
        f(pc::f16(0.0f));
    else
        f(pc::bf16(0.0f));
}

/* Pictures of x, channels last or, in `planes`, in C order. */
template <class T> struct pictures {
    const T *x;
    int h, w, c;
    bool planes;

    /* Four channels from `first` on, zeros where there are none. WHOLE: in fours that lie so in memory. */
    template <bool WHOLE>
    __device__ inline void take(long long image, int row, int column, int first, bool there, float (&to)[FOUR]) const
    {
        there = there && (unsigned)row < (unsigned)h && (unsigned)column < (unsigned)w;
        const T *from = x + image * h * w * c + (row * w + column) * c + first;
        vector<T, FOUR> value = {};
        if (WHOLE && there)
            value = *(const vector<T, FOUR> *)from;
#pragma unroll
        for (int j = 0; j < FOUR; j++) {
            if (!WHOLE && there && first + j < c)
                value.at[j] = from[j];
            to[j] = (float)value.at[j];
        }
    }
};

/* The gradient of the convolution itself: spread over its pooling windows, in front of the activation. */
template <class T> struct gradients {
    const T *y, *dy;
    const uint8_t *argmax;
    int activation, pool, planes, yh, yw, o;
    bool with_y;

    template <bool WHOLE>
    __device__ inline void take(long long image, int row, int column, int first, bool there, float (&to)[FOUR]) const
    {
        const int i = pool == 1 ? row : row / pool, j = pool == 1 ? column : column / pool;
        const int q = (row - i * pool) * pool + column - j * pool, step = planes ? yh * yw : 1;
        there = there && row >= 0 && column >= 0 && i < yh && j < yw;
        const long long at = image * yh * yw * o + (i * yw + j) * (planes ? 1 : o) + first * step;
        vector<T, FOUR> value = {}, saved = {};
        if (WHOLE && there) {
            value = *(const vector<T, FOUR> *)(dy + at);
            if (with_y)
                saved = *(const vector<T, FOUR> *)(y + at);
        }
#pragma unroll
        for (int k = 0; k < FOUR; k++) {
            const bool here = there && first + k < o && (pool == 1 || argmax[at + k * step] == q);
            if (!WHOLE && here) {
                value.at[k] = dy[at + k * step];
                if (with_y)
                    saved.at[k] = y[at + k * step];
            }
            const float g = here ? (float)value.at[k] : 0.0f;
            to[k] = with_y ? activation_gradient(activation, g, (float)saved.at[k]) : g;
        }
    }
};

/* The tile and the source are copies: what is behind an address is read again behind each store.
 * Rows from `top` and columns from `left` on of `deep` pictures, of which `real` are there; zeros where there is nothing. */
template <bool WHOLE, class Source>
__device__ inline void load(const Source from, const tile t, int channels, long long image, int deep, int real, int top,
                            int left, float *to)
{
    const int lanes = t.columns <= 8 ? 8 : t.columns <= 16 ? 16 : 32;
    const int step = blockDim.x / lanes, lines = deep * t.rows;
    for (int column = threadIdx.x % lanes; column < t.columns; column += lanes) {
        const int place = t.phases == 1 ? column : column % t.phases * t.pitch + column / t.phases;
        for (int first = 0; first < channels; first += FOUR)
            for (int begin = threadIdx.x / lanes; begin < lines; begin += FLIGHT * step) {
                float value[FLIGHT][FOUR];
#pragma unroll
                for (int i = 0; i < FLIGHT; i++) {
                    const int line = begin + i * step, picture = deep == 1 ? 0 : line / t.rows;
                    from.template take<WHOLE>(image + picture, top + line - picture * t.rows, left + column, first,
                                              line < lines && picture < real, value[i]);
                }
#pragma unroll
                for (int i = 0; i < FLIGHT; i++) {
                    const int line = begin + i * step, picture = deep == 1 ? 0 : line / t.rows;
                    float *at = to + picture * t.picture + (line - picture * t.rows) * t.row + place;
#pragma unroll
                    for (int j = 0; j < FOUR; j++)
                        if (line < lines && first + j < channels)
                            at[(first + j) * t.channel] = value[i][j];
                }
            }
    }
}

/* The same of pictures in C order, V neighbours of a row in each access: a row of the tile may begin within such a pack. */
template <int V, class T>
__device__ inline void load_planes(const pictures<T> from, const tile t, int channels, long long image, int deep,
                                   int real, int top, int left, float *to)
{
    constexpr int MANY = V * sizeof(T) < 16 ? 8 : 4; /* packs of a thread on their way */
    const int front = V == 1 ? 0 : (left % V + V) % V, packs = over(t.columns + front, V);
    const int lines = deep * channels * t.rows, all = lines * packs, step = blockDim.x;
    for (int begin = threadIdx.x; begin < all; begin += MANY * step) {
        vector<T, V> value[MANY];
        int at[MANY], first[MANY]; /* where the row lies in the tile, and the pack's column of it */
#pragma unroll
        for (int i = 0; i < MANY; i++) {
            const int item = begin + i * step, line = item / packs, plane = line / t.rows, row = line - plane * t.rows;
            const int picture = deep == 1 ? 0 : plane / channels, channel = plane - picture * channels;
            first[i] = (item - line * packs) * V - front;
            at[i] = item < all ? picture * t.picture + channel * t.channel + row * t.row : -1;
            const bool there = item < all && picture < real && (unsigned)(top + row) < (unsigned)from.h &&
                               (unsigned)(left + first[i]) < (unsigned)from.w;
            const T *line_at =
                from.x + (((image + picture) * from.c + channel) * from.h + top + row) * (long long)from.w + left;
            value[i] = {};
            if (there && channel < from.c)
                value[i] = *(const vector<T, V> *)(line_at + first[i]);
        }
#pragma unroll
        for (int i = 0; i < MANY; i++)
#pragma unroll
            for (int j = 0; j < V; j++) {
                const int column = first[i] + j;
                const int place = t.phases == 1   ? column
                                  : t.phases == 2 ? (column & 1) * t.pitch + column / 2
                                                  : column % t.phases * t.pitch + column / t.phases;
                if (at[i] >= 0 && column >= 0 && column < t.columns)
                    to[at[i] + place] = (float)value[i].at[j];
            }
    }
}

template <class T>
__device__ inline void load(const pictures<T> &from, const tile &t, int channels, bool whole, long long image, int deep,
                            int real, int top, int left, float *to)
{
    if (from.planes && whole)
        load_planes<FOUR>(from, t, channels, image, deep, real, top, left, to);
    else if (from.planes)
        load_planes<1>(from, t, channels, image, deep, real, top, left, to);
    else if (whole)
        load<true>(from, t, channels, image, deep, real, top, left, to);
    else
        load<false>(from, t, channels, image, deep, real, top, left, to);
}

template <class T>
__device__ inline void load(const gradients<T> &from, const tile &t, int channels, bool whole, long long image,
                            int deep, int real, int top, int left, float *to)
{
    if (whole)
        load<true>(from, t, channels, image, deep, real, top, left, to);
    else
        load<false>(from, t, channels, image, deep, real, top, left, to);
}

/* N floats that begin on 16 bytes, or on as many as they have, with PITCH from one such row to the next. */
__host__ __device__ constexpr int pitch_of(int n)
{
    return n <= 2 ? n : n <= 4 ? 4 : 8;
}

template <int N> __device__ inline void take(const float *from, float (&to)[N])
{
    constexpr int WIDE = N == 2 ? 2 : 4, WHOLE = N < WIDE ? 0 : pitch_of(N) == N ? N : N / WIDE * WIDE;
    constexpr bool THREE = N == 3 || N == 7; /* with one that is not wanted */
#pragma unroll
    for (int i = 0; i < (THREE ? N + 1 : WHOLE); i += WIDE) {
        const vector<float, WIDE> some = *(const vector<float, WIDE> *)(from + i);
#pragma unroll
        for (int j = 0; j < WIDE; j++)
            if (i + j < N)
                to[i + j] = some.at[j];
    }
#pragma unroll
    for (int i = WHOLE; !THREE && i < N; i++)
        to[i] = from[i];
}

/* One channel lies in both orders, and is read faster as a plane. */
__host__ __device__ inline bool are_planes(bool c_order, int channels)
{
    return c_order || channels == 1;
}

/* Pictures whose channels, or columns of planes, lie in fours on as many bytes. */
inline bool lies_in_fours(const pc__cuda_conv *s, const void *pointer, bool planes, int channels, int columns)
{
    return (planes ? columns : channels) % 4 == 0 && (uintptr_t)pointer % (s->dtype == PC__CUDA_F32 ? 16 : 8) == 0;
}

/* x, and the gradient as load_gradients takes it. */
inline bool x_lies_in_fours(const pc__cuda_conv *s, const void *x)
{
    return lies_in_fours(s, x, are_planes(s->x_planes, s->c), s->c, s->w);
}

__host__ __device__ inline bool is_gradient_itself(const pc__cuda_conv &s)
{
    return !needs_y(s) && s.pool == 1;
}

inline bool gradient_lies_in_fours(const pc__cuda_conv *s, const void *y, const void *dy)
{
    if (is_gradient_itself(*s))
        return lies_in_fours(s, dy, are_planes(s->planes, s->o), s->o, s->yw);
    return !s->planes && lies_in_fours(s, dy, false, s->o, 0) && (!needs_y(*s) || lies_in_fours(s, y, false, s->o, 0));
}

inline bool has_pixels(const pc__cuda_conv *s)
{
    return s->dtype != PC__CUDA_F64 && s->n > 0 && s->n < INT32_MAX && s->c > 0 && s->o > 0 && s->kh > 0 && s->kw > 0 &&
           s->h > 0 && s->w > 0;
}

/* Where it is dy itself it is loaded as quickly as x. */
template <class T>
__device__ inline void load_gradients(const pc__cuda_conv &s, const void *y, const uint8_t *argmax, const void *dy,
                                      const tile &t, int channels, bool whole, long long image, int deep, int real,
                                      int top, int left, float *to)
{
    if (is_gradient_itself(s))
        load(pictures<T>{(const T *)dy, s.yh, s.yw, s.o, are_planes(s.planes, s.o)}, t, channels, whole, image, deep,
             real, top, left, to);
    else
        load(gradients<T>{(const T *)y, (const T *)dy, argmax, s.activation, s.pool, s.planes, s.yh, s.yw, s.o,
                          needs_y(s)},
             t, channels, whole, image, deep, real, top, left, to);
}

/* --- how a grid is cut: a block makes across x down units of deep pictures, a unit is a four of columns --- */

struct cut {
    int across, down, deep; /* units */
    int wide, high;         /* blocks of a picture */
    long long blocks;       /* in all */
};

/* What results there are, in rows of a unit's height, and what they cost: in instructions of a unit, and for each pixel
 * that is brought in, of which `stride` make one of the results'. */
struct extent {
    int high, wide, side;
    double work, load;
    int stride;
};

/* Rows cut into so many parts, and at most so many units in a block; pictures together where they are small. */
inline cut cut_of(const pc__cuda_conv *s, const extent &e, int parts, int most, bool together)
{
    const int units = over(e.wide, FOUR), lines = over(e.high, e.side);
    cut c;
    c.across = over(units, parts), c.wide = over(units, c.across);
    c.high = over(lines, most / c.across), c.down = over(lines, c.high), c.high = over(lines, c.down);
    const int room = together && c.wide * c.high == 1 ? most / (c.across * c.down) : 1;
    c.deep = room < s->n ? room : (int)s->n;
    c.blocks = (long long)c.wide * c.high * over(s->n, c.deep);
    return c;
}

/* The one that fits where any does. */
inline cut least_cut(const pc__cuda_conv *s, const extent &e)
{
    return cut_of(s, e, over(over(e.wide, FOUR), LANES), LANES, false);
}

inline double cost_of(const pc__cuda_conv *s, const extent &e, const cut &c)
{
    const double blocks = c.blocks < s->multiprocessors ? s->multiprocessors : (double)c.blocks;
    const double threads = over((long long)c.across * c.down * c.deep, LANES) * (double)LANES;
    const double rows = (double)c.down * e.side * e.stride + s->kh,
                 columns = (double)c.across * FOUR * e.stride + s->kw;
    return blocks * (threads * e.work + rows * columns * c.deep * e.load);
}

/* The cheapest; bytes_of a cut is its shared memory. */
template <class Bytes> cut cut_for(const pc__cuda_conv *s, const extent &e, Bytes bytes_of)
{
    const int units = over(e.wide, FOUR), least = over(units, LANES);
    cut best = least_cut(s, e);
    double lowest = cost_of(s, e, best);
    for (int parts = least; parts < least + 3 && parts <= units; parts++)
        for (int most = 64; most <= 256; most += 64) {
            const cut c = cut_of(s, e, parts, most, true);
            const double cost = cost_of(s, e, c);
            if (cost < lowest && bytes_of(c) <= SHARED_MOST)
                best = c, lowest = cost;
        }
    return best;
}

} // namespace

#endif
