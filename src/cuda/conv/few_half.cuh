/* few_half.cuh: a band of a picture of three channels of 16-bit numbers in shared memory, four to a pixel, the
 * last one zero: rows of pixels with the zeros around them. */
#ifndef PC__CUDA_CONV_FEW_HALF_CUH
#define PC__CUDA_CONV_FEW_HALF_CUH

#include "cuda/conv/few_half.h"
#include "cuda/conv/patch_finish.cuh"

namespace
{

constexpr int COLORS = 3, TAPS = 9;

/* A band of pooling windows; its patch is that of patch.cuh with one chunk of four numbers for each pixel. */
inline cut few_cut_of(const pc__cuda_conv *s, int rows)
{
    cut c;
    c.bands = over(s->yh, rows < 1 ? 1 : rows);
    c.rows = over(s->yh, c.bands);
    c.height = (2 * c.rows - 1) * s->sh + 3;
    c.width = (2 * s->yw - 1) * s->sw + 3;
    const int own = s->w + s->pw;
    c.width = ((c.width > own ? c.width : own) + 3) / 4 * 4;
    return c;
}

inline size_t few_bytes(const cut &c)
{
    return (size_t)c.height * c.width * 8;
}

/* Four pixels of a row that lie on 8 bytes, or one. */
template <class T> __device__ inline void load_pixels(const T *from, uint2 *to, bool whole)
{
    const uint16_t *u = (const uint16_t *)from;
    if (!whole) {
        *to = make_uint2(pc::ahead(u) | (unsigned)pc::ahead(u + 1) << 16, pc::ahead(u + 2));
        return;
    }
    const uint2 a = pc::ahead((const uint2 *)u), b = pc::ahead((const uint2 *)(u + 4)),
                c = pc::ahead((const uint2 *)(u + 8));
    to[0] = make_uint2(a.x, a.y & 0xffffu);
    to[1] = make_uint2(a.y >> 16 | b.x << 16, b.x >> 16);
    to[2] = make_uint2(b.y, c.x & 0xffffu);
    to[3] = make_uint2(c.x >> 16 | c.y << 16, c.y >> 16);
}

/* The band whose first row of windows is `first`; past first-level memory, so it may be read ahead (shared/dependent_launch.cuh). */
template <class T>
__device__ inline void load_few(const pc__cuda_conv &s, const cut &c, const T *picture, int first, uint2 *band)
{
    const int top = first * 2 * s.sh - s.ph, each = s.pw == 0 && s.w % 4 == 0 ? 4 : 1, across = c.width / each;
    for (int i = threadIdx.x; i < c.height * across; i += blockDim.x) {
        const int r = i / across, row = top + r, column = (i - r * across) * each - s.pw;
        uint2 *to = band + r * c.width + column + s.pw;
        if ((unsigned)row < (unsigned)s.h && (unsigned)column < (unsigned)s.w) {
            load_pixels(picture + ((long long)row * s.w + column) * COLORS, to, each == 4);
            continue;
        }
        for (int k = 0; k < each; k++)
            to[k] = make_uint2(0, 0);
    }
}

} // namespace

#endif
