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

/* Windows of 3, 5 or 7 rows and columns, one or two apart, of whose rows some are the next one's; and gaps not larger than the
 * results are, nor than what three of them can be added to. */
inline bool has_strips(const pc__cuda_groups &s)
{
    return s.dtype != PC__CUDA_F64 && s.kh == s.kw && (s.kw == 3 || s.kw == 5 || s.kw == 7) && s.sh == s.sw &&
           (s.sw == 1 || (s.sw == 2 && (s.dh % 2 == 0 || !has_gaps(s)))) && s.dh <= s.oh && s.dh <= 1 << 28;
}

/* From a result to the one below it whose taps fall on the same rows. */
inline int apart_of(const pc__cuda_groups &s)
{
    return has_gaps(s) ? s.dh / s.sh : 1;
}

/* Strips of a column: results apart_of() each other are in one. */
inline int strips_down(const pc__cuda_groups &s)
{
    const int apart = apart_of(s);
    return apart * (((s.oh + apart - 1) / apart + DOWN - 1) / DOWN);
}

/* The first result of a strip, whose results are so far apart. */
__device__ __forceinline__ int first_row(int strip, int apart)
{
    const int lot = strip / apart;
    return strip - lot * apart + lot * DOWN * apart;
}

/* launch(constant<K>, constant<S>, constant<GAPS>) of a shape that has strips. S is how many taps further the next result of a
 * strip sees a row; where there are gaps strides are known when it runs. */
template <class LAUNCH> void with_strips(const pc__cuda_groups &s, LAUNCH launch)
{
    with_window(s, [&](auto k, auto stride) {
        if (has_gaps(s))
            return launch(k, constant<1>(), constant<1>());
        launch(k, stride, constant<0>());
    });
}

} // namespace

#endif
