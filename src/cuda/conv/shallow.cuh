/* shallow.cuh: tiles of pictures of few channels in shared memory, four or eight 16-bit numbers to a pixel, zeros where
 * there is none. */
#ifndef PC__CUDA_CONV_SHALLOW_CUH
#define PC__CUDA_CONV_SHALLOW_CUH

#include "cuda/conv/patch_finish.cuh"
#include "cuda/conv/shallow.h"

#define SHALLOW_SHARED ((size_t)96 << 10) /* bytes of a block: two stay on a multiprocessor */

namespace
{

constexpr int TILE = 256, WIDE = 32, GROUP = 32; /* pixels of a tile, and of a row of it; outputs of a block */

/* Tiles of a result: rows x columns windows, under which height x width pixels of the picture lie. */
struct tiling {
    int rows, columns, down, across; /* down, across: tiles of a picture */
    int height, width, numbers;      /* numbers: to a pixel */
};

/* Four numbers to a pixel are enough for so many channels. */
inline int numbers_for(int channels)
{
    return channels <= 4 ? 4 : 8;
}

/* Tiles of at most so many rows of windows. */
inline tiling tiling_of(const pc__cuda_conv *s, int rows)
{
    tiling t;
    t.across = over(s->yw, WIDE / s->pool);
    t.columns = over(s->yw, t.across);
    t.down = over(s->yh, rows);
    t.rows = over(s->yh, t.down);
    t.height = (t.rows * s->pool - 1) * s->sh + s->kh;
    t.width = (t.columns * s->pool - 1) * s->sw + s->kw;
    t.numbers = numbers_for(s->c);
    return t;
}

/* As many rows as a tile has room for, as `bytes` of shared memory allow, and so few that there are tiles for two blocks
 * of each multiprocessor; `groups` blocks work on a tile. */
inline tiling best_tiling(const pc__cuda_conv *s, size_t (*bytes)(const pc__cuda_conv *, const tiling &), int groups)
{
    const int columns = tiling_of(s, 1).columns, room = TILE / (s->pool * s->pool) / columns;
    int rows = room < s->yh ? room : s->yh;
    while (rows > 1 && bytes(s, tiling_of(s, rows)) > SHALLOW_SHARED)
        rows--;
    tiling t = tiling_of(s, rows);
    while (t.rows > 2 && s->n * t.down * t.across * groups < 2 * s->multiprocessors)
        t = tiling_of(s, over(t.rows, 2));
    return t;
}

/* Kernels, strides and padding of which no distance leaves 32 bits. */
inline bool is_usual(const pc__cuda_conv *s)
{
    const bool usual = s->kh > 0 && s->kw > 0 && s->kh <= 64 && s->kw <= 64 && s->sh <= 64 && s->sw <= 64;
    return usual && s->pool <= 2 && s->c > 0 && s->c <= EIGHT && s->o > 0 && s->n * s->yh * s->yw > 0 &&
           s->n * s->yh * s->yw < 1 << 30;
}

/* i / d for i < 2^13 and i < 256 d, by a product. */
struct division {
    unsigned d, factor;

    __device__ inline explicit division(int by) : d((unsigned)by), factor((1u << 22) / (unsigned)by + 1)
    {
    }

    __device__ inline int of(int i) const
    {
        return (int)((unsigned)i * factor >> 22);
    }
};

/* A picture [n][h][w][c], or the gradient in front of an activation and pooling, made of what lies behind. */
template <class T> struct origin {
    const T *at, *y;       /* y: NULL without activation */
    const uint8_t *argmax; /* NULL without pooling */
    int h, w, c;           /* before pooling */
    int pool, activation;
    bool whole; /* four or eight channels that lie on so many numbers */
};

inline bool are_whole(const void *pixels, int channels)
{
    return (channels == 4 || channels == 8) && (uintptr_t)pixels % (channels * 2) == 0;
}

/* Which tile of which picture. */
struct tile_place {
    int image, row, column; /* of the first window */

    __device__ inline tile_place(const tiling &t, int at)
    {
        const int line = at / t.across;
        image = line / t.down;
        row = (line - image * t.down) * t.rows;
        column = (at - line * t.across) * t.columns;
    }
};

/* A pixel of NUMBERS to its place in `patch`; with `beside` there, too, one pixel further in front. */
template <int NUMBERS, class T> __device__ inline void put(char *patch, char *beside, int at, const eight<T> &v)
{
    if (NUMBERS == EIGHT) {
        *(eight<T> *)(patch + at * 16) = v;
        return;
    }
    *(uint2 *)(patch + at * 8) = *(const uint2 *)&v;
    if (beside && at > 0)
        *(uint2 *)(beside + at * 8 - 8) = *(const uint2 *)&v;
}

/* A tile in rows of 32 pixels, a warp each. */
struct segments {
    int in_row, count, top, left;

    __device__ inline segments(const pc__cuda_conv &s, const tiling &t, const tile_place &p)
        : in_row((t.width + LANES - 1) / LANES), count(t.height * in_row), top(p.row * s.pool * s.sh - s.ph),
          left(p.column * s.pool * s.sw - s.pw)
    {
    }
};

/* A tile's pixels; several segments are under way at once. */
template <int NUMBERS, bool WHOLE, class T>
__device__ inline void bring_pixels(const pc__cuda_conv &s, const tiling &t, const origin<T> &from, const tile_place &p,
                                    char *patch, char *beside)
{
    constexpr int AHEAD = 4;
    const int warps = blockDim.x / LANES;
    const segments all(s, t, p);
    const T *image = from.at + (long long)p.image * from.h * from.w * from.c;
    for (int first = threadIdx.x / LANES; first < all.count; first += warps * AHEAD) {
        eight<T> v[AHEAD];
        int at[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            const int item = first + i * warps, r = item / all.in_row;
            const int c = (item - r * all.in_row) * LANES + threadIdx.x % LANES, row = all.top + r,
                      column = all.left + c;
            const bool inside =
                item < all.count && (unsigned)row < (unsigned)from.h && (unsigned)column < (unsigned)from.w;
            const T *pixel = image + (inside ? (row * from.w + column) * from.c : 0);
            at[i] = item < all.count && c < t.width ? r * t.width + c : -1;
            v[i] = {};
            if (WHOLE && NUMBERS == EIGHT && inside)
                v[i] = *(const eight<T> *)pixel;
            if (WHOLE && NUMBERS < EIGHT && inside)
                *(uint2 *)&v[i] = *(const uint2 *)pixel;
#pragma unroll
            for (int j = 0; j < NUMBERS; j++)
                if (!WHOLE && inside && j < from.c)
                    v[i].at[j] = pixel[j];
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (at[i] >= 0)
                put<NUMBERS>(patch, beside, at[i], v[i]);
    }
}

template <int NUMBERS, class T>
__device__ inline void bring(const pc__cuda_conv &s, const tiling &t, const origin<T> &from, const tile_place &p,
                             char *patch, char *beside)
{
    if (from.whole)
        bring_pixels<NUMBERS, true>(s, t, from, p, patch, beside);
    else
        bring_pixels<NUMBERS, false>(s, t, from, p, patch, beside);
}

/* x as it is. */
template <class T> origin<T> pictures(const pc__cuda_conv *s, const void *x)
{
    return {(const T *)x, NULL, NULL, s->h, s->w, s->c, 1, ACTIVATION_NONE, are_whole(x, s->c)};
}

inline size_t on_128(size_t bytes)
{
    return (bytes + 127) / 128 * 128;
}

} // namespace

#endif
