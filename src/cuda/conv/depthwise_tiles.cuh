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

/* Of taps dh x dw apart results so far apart are neighbours in a tile: these see what neighbours see without gaps. */
struct tiling {
    int high, wide;                /* results of a tile, in whole strips */
    int down, across;              /* tiles of a picture */
    int phase_rows, phase_columns; /* of these tiles so many belong to results that begin at the same place of a gap */
    int pixels;                    /* of x that a tile's windows see, */
    pc__cuda_divisor seen;         /* so many of them in a row */
    pc__cuda_divisor strips;       /* of a row of a tile */
};

/* One tile of one picture: its first result. */
struct corner {
    long long picture;
    int row, column;
};

__device__ __forceinline__ corner corner_of(const pc__cuda_groups &s, const tiling &by, long long tile)
{
    const place at = place_of(tile, by.down, by.across);
    const int phase_row = at.row / by.phase_rows, phase_column = at.column / by.phase_columns;
    return {at.picture, phase_row + (at.row - phase_row * by.phase_rows) * by.high * s.dh,
            phase_column + (at.column - phase_column * by.phase_columns) * by.wide * s.dw};
}

/* Where a strip of a tile begins, in results of the tile. */
struct strip_place {
    int row, column;
};

__device__ __forceinline__ strip_place strip_in(const tiling &by, int strip)
{
    const int row = pc::over(strip, by.strips);
    return {row, (strip - row * (int)by.strips.by) * PLACES};
}

/* BYTES to shared memory, zeros where they are not `there`. */
template <int BYTES> __device__ __forceinline__ void bring_bytes(char *to, const char *from, bool there)
{
    typedef vector<float, BYTES / 4> V;
#if TENSOR_UNITS
    if constexpr (BYTES == 16) {
        send_past(to, from, there);
    } else {
        send_or_clear<BYTES>(to, from, there);
    }
#else
    *reinterpret_cast<V *>(to) = there ? *reinterpret_cast<const V *>(from) : V{};
#endif
}

/* Of the block's channels in a pixel a thread brings those from `channel` on: of pixels from `first` on, `step` apart. */
struct carrying {
    int units, unit; /* of a pixel */
    int channel, first, step;
};

/* 16 bytes are brought at once where pixels lie so (`wide`), by twice as many threads for half of the packs. */
template <class T, int N> __device__ __forceinline__ carrying carrying_of(bool wide)
{
    const int packs = blockDim.x, units = wide ? packs / 2 : packs, behind = (int)threadIdx.x >= units;
    const int unit = threadIdx.x - (behind ? units : 0), across = wide ? 2 : 1;
    return {units, unit, (int)blockIdx.y * packs * N + unit * N * across, (int)threadIdx.y * across + behind,
            (int)blockDim.y * across};
}

/* A rectangle of a picture, height x width of c channels, whose rows and columns are some apart, zeros around the picture: to[pixel]. */
struct rectangle {
    int height, width, top, left, pixels;
};

template <int BYTES, class T>
__device__ __forceinline__ void bring_units(const pc__cuda_groups &s, const carrying &of, const T *picture,
                                            const rectangle &seen, const pc__cuda_divisor &line, void *to)
{
    const bool mine = of.channel < s.c;
    const char *const from = reinterpret_cast<const char *>(picture + (mine ? of.channel : 0));
    char *place = static_cast<char *>(to) + (of.first * of.units + of.unit) * BYTES;
    for (int p = of.first; p < seen.pixels; p += of.step, place += of.step * of.units * BYTES) {
        const int r = pc::over(p, line), row = seen.top + r * s.dh, column = seen.left + (p - r * (int)line.by) * s.dw;
        const bool there = mine && (unsigned)row < (unsigned)seen.height && (unsigned)column < (unsigned)seen.width;
        const unsigned at = there ? (unsigned)row * (unsigned)seen.width + (unsigned)column : 0u;
        bring_bytes<BYTES>(place, from + (unsigned long long)at * (unsigned)(s.c * (int)sizeof(T)), there);
    }
}

template <class T, int N>
__device__ __forceinline__ void bring_pixels(const pc__cuda_groups &s, const carrying &of, const T *picture,
                                             const rectangle &seen, const pc__cuda_divisor &line, vector<T, N> *to)
{
    if constexpr (N * sizeof(T) < 16) {
        if (of.units < (int)blockDim.x)
            return bring_units<16>(s, of, picture, seen, line, to);
    }
    bring_units<N *(int)sizeof(T)>(s, of, picture, seen, line, to);
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

/* The tiles of a block: bring(corner, buffer) the next one into one of two buffers while use(corner, buffer) has the other, meanwhile()
 * while the first one is on its way. */
template <class BRING, class MEANWHILE, class USE>
__device__ __forceinline__ void each_tile(const pc__cuda_groups &s, const tiling &by, BRING &&bring,
                                          MEANWHILE &&meanwhile, USE &&use)
{
    const long long all = s.n * by.down * by.across;
    corner at = corner_of(s, by, blockIdx.x);
    int held = 0;
    pc::wait_for_earlier();
    bring(at, 0);
    all_brought();
    meanwhile();
#pragma unroll 1
    for (long long tile = blockIdx.x; tile < all; tile += gridDim.x, held ^= 1) {
        const bool last = tile + gridDim.x >= all;
        const corner next = last ? at : corner_of(s, by, tile + gridDim.x);
        if (!last) {
            bring(next, held ^ 1);
            all_brought();
        }
        wait_brought(last);
        use(at, held);
        __syncthreads();
        at = next;
    }
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

/* Along one dimension: how many tiles those have whose results are `gap` apart. */
inline int tiles_of_phase(int results, int gap, int each)
{
    return ((results + gap - 1) / gap + each - 1) / each;
}

/* Tiles of at most high x wide results, whose rows come by so many, and of `taps` rows of the kernel. */
inline void cut_tiles(const pc__cuda_groups &s, int high, int wide, int rows, int taps, tiling *by)
{
    by->high = shared_out((s.oh + s.dh - 1) / s.dh, high, rows);
    by->wide = shared_out((s.ow + s.dw - 1) / s.dw, wide, PLACES);
    by->phase_rows = tiles_of_phase(s.oh, s.dh, by->high), by->phase_columns = tiles_of_phase(s.ow, s.dw, by->wide);
    by->down = by->phase_rows * (s.dh < s.oh ? s.dh : s.oh);
    by->across = by->phase_columns * (s.dw < s.ow ? s.dw : s.ow);
    const int seen = (by->wide - 1) * s.sw + s.kw;
    by->pixels = ((by->high - 1) * s.sh + taps) * seen;
    by->seen = pc__cuda_divisor_of(seen), by->strips = pc__cuda_divisor_of(by->wide / PLACES);
}

/* Blocks with so much shared memory that are on a multiprocessor at once, at most STAY of those that stay. */
inline int blocks_in(size_t bytes)
{
    enum { SHARED = 164 << 10 /* where first-level memory is divided as it is by default */, OF_BLOCK = 1 << 10 };
    const int in = (int)(SHARED / (bytes + OF_BLOCK));
    return in < STAY ? in : STAY;
}

/* Blocks of each of `groups` that stay for its tiles, `in` on a multiprocessor. */
inline long long held_blocks(long long tiles, int groups, int in)
{
    const long long room = (long long)in * CHIP / groups, blocks = room > 1 ? room : 1;
    return tiles < blocks ? tiles : blocks;
}

/* The time that they take, in products of a pack: a thread has so many of a tile, and brings `brought` packs. More blocks on a
 * multiprocessor hide more waiting: one takes half of the time that four take. */
inline long long time_of(long long tiles, int groups, int in, int products, int brought)
{
    enum { BRING = 4, BEGIN = 20, IDLE = 2 };
    const long long blocks = held_blocks(tiles, groups, in), there = (blocks * groups + CHIP - 1) / CHIP;
    return (tiles + blocks - 1) / blocks * ((there < in ? there : in) + IDLE) *
           ((long long)products + BRING * brought + BEGIN);
}

/* Square windows of packs of channels, which have gaps or steps, not both; rows are counted in 32 bits. */
template <class T, int N> bool has_tiles(const pc__cuda_groups &s, const void *a, const void *b)
{
    enum { FAR = 1 << 24, STEPS = 1 << 10, CHANNELS = 1 << 28 };
    return s.kh == s.kw && (s.sh == 1 || s.dh == 1) && s.sh <= STEPS && s.dh <= FAR && s.dw <= FAR && has_rows(s, N) &&
           (long long)s.h * s.w <= INT_MAX && (long long)s.oh * s.ow <= INT_MAX && s.c <= CHANNELS &&
           ((uintptr_t)a | (uintptr_t)b) % (N * sizeof(T)) == 0;
}

/* Whether packs of fewer than 16 bytes are brought by twos. */
template <class T, int N> bool is_wide(const pc__cuda_groups &s, const void *a, const void *b)
{
    return N * sizeof(T) == 8 && s.c % (2 * N) == 0 && ((uintptr_t)a | (uintptr_t)b) % 16 == 0;
}

/* Packs of a block, at most so many, in whole units. */
template <class T, int N> int lanes_of_units(const pc__cuda_groups &s, bool wide, int most)
{
    return wide ? 2 * lanes_of(s.c, 2 * N, most / 2) : lanes_of(s.c, N, most);
}

} // namespace

#endif
