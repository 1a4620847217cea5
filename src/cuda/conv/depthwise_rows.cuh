/* depthwise_rows.cuh: strips of a row of results, of convolutions of each channel alone with common windows. A thread has PLACES
 * neighbours among those whose taps fall on the same columns, so that what it reads of a row serves them all. */
#ifndef PC__CUDA_CONV_DEPTHWISE_ROWS_CUH
#define PC__CUDA_CONV_DEPTHWISE_ROWS_CUH

#include "cuda/conv/depthwise.cuh"

namespace
{

constexpr int PLACES = 4,
              NARROW = 4 /* channels of a thread, but for 16-bit numbers where windows have three columns */;

/* Rows of `seen` packs whose numbers are on their way at once, of `rows`: as many as registers hold beside the sums of
 * PLACES_THERE packs. */
template <class T, int N, int PLACES_THERE> constexpr int rows_ahead(int seen, int rows)
{
    const int row = seen * N * (int)sizeof(T) / 4, room = 92 - PLACES_THERE * N, least = row > 48 || N > NARROW ? 1 : 2;
    const int held = room / row < least ? least : room / row;
    return held < rows ? held : rows;
}

/* Weights of a block with so many lanes: bytes of dynamic shared memory. */
template <class T, int N> size_t weight_bytes(const pc__cuda_groups &s, int lanes)
{
    return (size_t)s.kh * s.kw * lanes * N * sizeof(pc::math<T>);
}

template <class T, int N> bool weights_fit(const pc__cuda_groups &s)
{
    return weight_bytes<T, N>(s, lanes_of(s.c, N)) <= WEIGHTS_MOST * sizeof(float);
}

template <class T, int N> __device__ __forceinline__ void put_pack(T *to, const pc::math<T> (&sum)[N])
{
    vector<T, N> out;
#pragma unroll
    for (int i = 0; i < N; i++)
        out.at[i] = T(sum[i]);
    *reinterpret_cast<vector<T, N> *>(to) = out;
}

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

/* One behind the other along a row. */
__device__ __forceinline__ strip strip_of(const pc__cuda_groups &s, long long index, int across)
{
    const place at = place_of(index, s.oh, across);
    const int along = at.column / s.dw;
    return {at.picture, at.row, at.column - along * s.dw + along * PLACES * s.dw};
}

/* So many columns from `line` on, dw apart, zeros where there is no bit of `inside`. */
template <class T, int N, int COUNT>
__device__ __forceinline__ void take_line(const T *line, long long step, unsigned inside, words<T, N> (&to)[COUNT])
{
#pragma unroll
    for (int m = 0; m < COUNT; m++)
        to[m] = inside >> m & 1 ? *reinterpret_cast<const words<T, N> *>(line + m * step) : words<T, N>{};
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
    enum { SOME = 1 << 20 };
    return (s.kw == 3 || s.kw == 5 || s.kw == 7) && (s.sw == 1 || (s.sw == 2 && s.dw == 1)) && s.c % pack == 0 &&
           s.pw <= (s.w > SOME ? s.w : SOME) && s.pw >= -s.w && s.dw <= s.w && s.dw <= s.ow;
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
