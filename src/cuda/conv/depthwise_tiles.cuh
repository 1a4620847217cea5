/* depthwise_tiles.cuh: tiles of results of convolutions of each channel alone with common windows, and what their windows see in
 * shared memory. A block has some packs of channels. */
#ifndef PC__CUDA_CONV_DEPTHWISE_TILES_CUH
#define PC__CUDA_CONV_DEPTHWISE_TILES_CUH

#include "cuda/conv/depthwise_rows.cuh"
#include "cuda/shared/divisor.cuh"
#include "cuda/shared/mma.cuh"

#include <limits.h>

namespace
{

enum {
    CHIP = 132,
    STAY = 4 /* blocks of a multiprocessor */,
    LINE = 128,
    TILES_MOST = 64 << 10 /* bytes of a block */
};

struct tiling {
    int high, wide;          /* results of a tile, in whole strips */
    int down, across;        /* tiles of a picture */
    int pixels;              /* of x that a tile's windows see, */
    pc__cuda_divisor seen;   /* so many of them in a row */
    pc__cuda_divisor strips; /* of a row of a tile */
};

/* One tile of one picture: its first result. */
struct corner {
    long long picture;
    int row, column;
};

__device__ __forceinline__ corner corner_of(const tiling &by, long long tile)
{
    const place at = place_of(tile, by.down, by.across);
    return {at.picture, at.row * by.high, at.column * by.wide};
}

/* Where a strip of a tile begins. */
struct strip_place {
    int row, column;
};

__device__ __forceinline__ strip_place strip_in(const tiling &by, int strip, int gap)
{
    const int row = pc::over(strip, by.strips), begin = strip - row * (int)by.strips.by, along = begin / gap;
    return {row, begin - along * gap + along * PLACES * gap};
}

/* A pack to shared memory, zeros where it is not `there`. */
template <class V> __device__ __forceinline__ void bring_pack(V *to, const V *from, bool there)
{
#if TENSOR_UNITS
    send_or_clear<(int)sizeof(V)>(to, from, there);
#else
    *to = there ? *from : V{};
#endif
}

/* Packs of a rectangle of a picture, height x width of c channels, zeros around it: to[pixel][pack]. */
template <class T, int N>
__device__ __forceinline__ void bring_pixels(const T *picture, int height, int width, int c, int top, int left,
                                             int pixels, const pc__cuda_divisor &line, bool mine, vector<T, N> *to)
{
    for (int p = threadIdx.y; p < pixels; p += blockDim.y) {
        const int r = pc::over(p, line), row = top + r, column = left + p - r * (int)line.by;
        const bool there = mine && (unsigned)row < (unsigned)height && (unsigned)column < (unsigned)width;
        const T *from = picture + (there ? ((long long)row * width + column) * c : 0);
        bring_pack(to + p * blockDim.x + threadIdx.x, reinterpret_cast<const vector<T, N> *>(from), there);
    }
}

/* The end of a group of what is brought. */
__device__ __forceinline__ void all_brought()
{
#if TENSOR_UNITS
    sent();
#endif
}

/* Until the groups of all threads are there, but for the latest one unless it is the `last`. */
__device__ __forceinline__ void wait_brought(bool last)
{
#if TENSOR_UNITS
    last ? wait_sent<0>() : wait_sent<1>();
#endif
    __syncthreads();
}

/* Packs in shared memory, `step` apart, as numbers. */
template <class T, int N, int COUNT>
__device__ __forceinline__ void take_packs(const vector<T, N> *from, int step, pc::math<T> (&to)[COUNT][N])
{
#pragma unroll
    for (int m = 0; m < COUNT; m++) {
        const vector<T, N> pack = from[m * step];
#pragma unroll
        for (int i = 0; i < N; i++)
            to[m][i] = pc::math<T>(pack.at[i]);
    }
}

/* Of `results` in tiles of at most so many, as even as whole steps are. */
inline int shared_out(int results, int most, int step)
{
    const int tiles = (results + most - 1) / most, each = (results + tiles - 1) / tiles;
    return (each + step - 1) / step * step;
}

/* Tiles of at most high x wide results, whose rows come by so many, and of `taps` rows of the kernel. */
inline void cut_tiles(const pc__cuda_groups &s, int high, int wide, int rows, int taps, tiling *by)
{
    const int strip = PLACES * s.dw;
    by->high = shared_out(s.oh, high, rows), by->wide = shared_out(s.ow, wide > strip ? wide : strip, strip);
    by->down = (s.oh + by->high - 1) / by->high, by->across = (s.ow + by->wide - 1) / by->wide;
    const long long seen = (by->wide - 1ll) * s.sw + (s.kw - 1ll) * s.dw + 1;
    const long long pixels = ((by->high - 1ll) * s.sh + (taps - 1ll) * s.dh + 1) * seen;
    by->pixels = (int)(pixels < INT_MAX ? pixels : INT_MAX);
    by->seen = pc__cuda_divisor_of(seen), by->strips = pc__cuda_divisor_of(by->wide / PLACES);
}

/* Square windows whose taps are near enough for a common tile, of packs of channels. */
template <class T, int N> bool has_tiles(const pc__cuda_groups &s, const void *a, const void *b)
{
    enum { FAR = 1 << 12 };
    return s.kh == s.kw && s.dw <= FAR && has_rows(s, N) && ((uintptr_t)a | (uintptr_t)b) % (N * sizeof(T)) == 0;
}

} // namespace

#endif
