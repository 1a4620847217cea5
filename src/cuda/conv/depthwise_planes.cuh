/* depthwise_planes.cuh: convolutions of each channel alone of pictures in C order. Neighbouring threads have neighbouring columns,
 * each of them DOWN results below each other, so that what it reads serves them all. */
#ifndef PC__CUDA_CONV_DEPTHWISE_PLANES_CUH
#define PC__CUDA_CONV_DEPTHWISE_PLANES_CUH

#include "cuda/conv/depthwise_rows.cuh"

namespace
{

constexpr int DOWN = PLACES;

/* Rows of x that DOWN results with K taps see, S of them apart. */
template <int K, int S> constexpr int ROWS = COLUMNS<K, S>;

/* The K columns of a row from `left` on, `gap` apart, zeros beyond the picture. */
template <class T, int K>
__device__ __forceinline__ void take_columns(const pc__cuda_groups &s, const T *plane, int row, int left, int gap,
                                             pc::math<T> (&to)[K])
{
    const bool inside = (unsigned)row < (unsigned)s.h;
    const T *line = plane + (long long)row * s.w + left;
#pragma unroll
    for (int k = 0; k < K; k++)
        to[k] = inside && (unsigned)(left + k * gap) < (unsigned)s.w ? pc::math<T>(line[k * gap]) : pc::math<T>(0);
}

/* Of `gaps` what is known when compiling: taps are one apart. */
template <bool GAPS> __device__ __forceinline__ int gap_of(int gap)
{
    return GAPS ? gap : 1;
}

inline bool has_gaps(const pc__cuda_groups &s)
{
    return s.dh > 1 || s.dw > 1;
}

/* Windows of 3, 5 or 7 rows and columns, one or two apart, not both apart and with gaps; and these not larger than the
 * results are, nor than what three of them can be added to. */
inline bool has_strips(const pc__cuda_groups &s)
{
    return s.dtype != PC__CUDA_F64 && s.kh == s.kw && (s.kw == 3 || s.kw == 5 || s.kw == 7) && s.sh == s.sw &&
           (s.sw == 1 || (s.sw == 2 && s.dh == 1 && s.dw == 1)) && s.dh <= s.oh && s.dh <= 1 << 28;
}

/* Strips of a column: results dh apart are in one, where taps are. */
inline int strips_down(const pc__cuda_groups &s)
{
    return s.dh * (((s.oh + s.dh - 1) / s.dh + DOWN - 1) / DOWN);
}

/* The first result of a strip, with those of its taps `gap` apart. */
__device__ __forceinline__ int first_row(int strip, int gap)
{
    const int lot = strip / gap;
    return strip - lot * gap + lot * DOWN * gap;
}

/* launch(constant<K>, constant<S>, constant<GAPS>) of a shape that has strips. */
template <class LAUNCH> void with_strips(const pc__cuda_groups &s, LAUNCH launch)
{
    with_window(s, [&](auto k, auto stride) {
        if constexpr (decltype(stride)::value == 1)
            if (has_gaps(s))
                return launch(k, stride, constant<1>());
        launch(k, stride, constant<0>());
    });
}

} // namespace

#endif
