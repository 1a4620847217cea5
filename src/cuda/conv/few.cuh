/* few.cuh: a band of a picture in shared memory: the rows under some rows of pooling windows, with the zeros
 * around them. Without pooling, windows of 2 x 2 pixels are worked on just the same. */
#ifndef PC__CUDA_CONV_FEW_CUH
#define PC__CUDA_CONV_FEW_CUH

#include "cuda/conv/few.h"
#include "cuda/conv/order.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/load.cuh"
#include "cuda/shared/mma.cuh"

namespace
{

constexpr int COLORS = 3, TAPS = 9, DEPTH = COLORS * TAPS, LANES = 32, SHARED_MOST = 48 << 10;

/* How pictures are cut. Windows count [n][high][wide]; a band is `rows` rows of them. */
struct cut {
    int high, wide, rows, bands; /* bands of a picture */
    int pitch, height, lead;     /* of a band in memory: floats of a row, rows, floats before the picture's first */
    bool whole;                  /* rows of the picture come in fours */
};

inline int over(long long a, long long b)
{
    return (int)((a + b - 1) / b);
}

/* Rows lie 4 floats apart, modulo 32 banks: the four places of a window then lie in banks of their own. */
inline cut cut_of(const pc__cuda_conv *s, int rows)
{
    cut c;
    c.high = s->pool == 2 ? s->yh : over(s->yh, 2);
    c.wide = s->pool == 2 ? s->yw : over(s->yw, 2);
    c.bands = over(c.high, rows < 1 ? 1 : rows);
    c.rows = over(c.high, c.bands < 1 ? 1 : c.bands);
    c.lead = s->pw * COLORS;
    const int reach = ((2 * c.wide - 1) * s->sw + 3) * COLORS, own = c.lead + s->w * COLORS;
    c.pitch = ((reach > own ? reach : own) + 1 + 27) / 32 * 32 + 4;
    c.height = (2 * c.rows - 1) * s->sh + 3;
    c.whole = c.lead % 4 == 0 && s->w % 4 == 0;
    return c;
}

inline size_t band_bytes(const cut &c)
{
    return (size_t)c.pitch * c.height * sizeof(float);
}

/* N floats of a row to shared memory; zeros where they are not inside. */
template <int N> __device__ inline void bring(float *to, const float *from, bool inside)
{
#if TENSOR_UNITS
    if constexpr (N == 4)
        send_past(to, from, inside);
    else
        send<N * sizeof(float)>(to, from, inside);
#else
    for (int j = 0; j < N; j++)
        to[j] = inside ? from[j] : 0;
#endif
}

/* A warp for a row, and what a lane asks of its column once for all its rows. Rows that travel by themselves need no
 * longer code: none is waited for. */
template <int N>
__device__ inline void load_rows(const pc__cuda_conv &s, const cut &c, const float *picture, int first, float *band)
{
    const int width = s.w * COLORS, begin = threadIdx.x / LANES, warps = blockDim.x / LANES;
    for (int i = threadIdx.x % LANES * N; i < c.pitch; i += LANES * N) {
        const bool inside = i >= c.lead && i < c.lead + width;
        const float *from = picture + (long long)(first + begin) * width + i - c.lead;
        float *to = band + begin * c.pitch + i;
#pragma unroll 1
        for (int row = begin; row < c.height; row += warps) {
            const bool there = inside && (unsigned)(first + row) < (unsigned)s.h;
            bring<N>(to, there ? from : picture, there);
            from += warps * width;
            to += warps * c.pitch;
        }
    }
}

/* `first` is the picture's row that comes first; zeros where there is no picture. */
__device__ inline void load_band(const pc__cuda_conv &s, const cut &c, const float *picture, int first, float *band)
{
    if (c.whole)
        load_rows<4>(s, c, picture, first, band);
    else
        load_rows<1>(s, c, picture, first, band);
}

/* Whether a band may be loaded ahead (shared/dependent_launch.cuh), where the pictures are ready: all of it past first-level memory. */
__device__ inline bool passes(const cut &c)
{
    return TENSOR_UNITS && (c.whole);
}

__device__ inline void wait_loaded()
{
#if TENSOR_UNITS
    sent();
    wait_sent<0>();
#endif
    __syncthreads();
}

} // namespace

#endif
