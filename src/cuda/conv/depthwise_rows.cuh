/* depthwise_rows.cuh: strips of a row of results, of convolutions of each channel alone with common windows. A thread has PLACES
 * neighbours among those whose taps fall on the same columns, so that what it reads of a row serves them all. */
#ifndef PC__CUDA_CONV_DEPTHWISE_ROWS_CUH
#define PC__CUDA_CONV_DEPTHWISE_ROWS_CUH

#include "cuda/conv/depthwise.cuh"

namespace
{

constexpr int PLACES = 4;

/* Columns of x that PLACES results with K taps see, S of them apart. */
template <int K, int S> constexpr int COLUMNS = (PLACES - 1) * S + K;

/* Strips side by side: results dw apart are in one, where taps are. */
inline int strips_of(const pc__cuda_groups &s)
{
    return s.dw * (((s.ow + s.dw - 1) / s.dw + PLACES - 1) / PLACES);
}

struct strip {
    long long picture;
    int row, column; /* of the first result */
};

__device__ __forceinline__ strip strip_of(const pc__cuda_groups &s, long long index, int across)
{
    const place at = place_of(index, s.oh, across);
    const int along = at.column / s.dw;
    return {at.picture, at.row, at.column - along * s.dw + along * PLACES * s.dw};
}

/* So many columns from `line` on, dw apart, zeros where there is no bit of `inside`. */
template <class T, int N, int COUNT>
__device__ __forceinline__ void take_line(const T *line, long long step, unsigned inside, vector<T, N> (&to)[COUNT])
{
#pragma unroll
    for (int m = 0; m < COUNT; m++)
        to[m] = inside >> m & 1 ? pack_at<T, N>(line + m * step) : vector<T, N>{};
}

/* Which of so many columns, `step` apart, lie within a row. */
template <int COUNT> __device__ __forceinline__ unsigned inside_of(int first, int step, int width)
{
    unsigned inside = 0;
#pragma unroll
    for (int m = 0; m < COUNT; m++)
        inside |= ((unsigned)(first + m * step) < (unsigned)width ? 1u : 0u) << m;
    return inside;
}

/* Windows of 3, 5 or 7 columns, one or two apart, not both apart and with gaps; and columns counted in 32 bits. */
inline bool has_rows(const pc__cuda_groups &s, int pack)
{
    return (s.kw == 3 || s.kw == 5 || s.kw == 7) && (s.sw == 1 || (s.sw == 2 && s.dw == 1)) && s.c % pack == 0 &&
           s.pw <= s.w && s.pw >= -s.w && s.dw <= s.w && s.dw <= s.ow;
}

template <int V> struct constant {
    static constexpr int value = V;
};

/* launch(constant<K>, constant<S>) of a shape that has rows. */
template <class LAUNCH> void with_window(const pc__cuda_groups &s, LAUNCH launch)
{
    const auto strided = [&](auto k) {
        if (s.sw == 1)
            launch(k, constant<1>());
        else
            launch(k, constant<2>());
    };
    if (s.kw == 3)
        strided(constant<3>());
    else if (s.kw == 5)
        strided(constant<5>());
    else
        strided(constant<7>());
}

} // namespace

#endif
