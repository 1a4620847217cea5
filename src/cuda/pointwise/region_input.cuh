/* region_input.cuh: what a thread has of a region's inputs: neighbours, as they are in memory and as numbers. */
#ifndef PC__CUDA_REGION_INPUT_CUH
#define PC__CUDA_REGION_INPUT_CUH

#include "cuda/pointwise/region.h"
#include "cuda/shared/functions.cuh"

namespace
{

/* N neighbours of a value. */
template <int N> struct item {
    float v[N];
};

/* What a region's inputs, steps and outputs are: all float32; all float16 or all bfloat16, but for steps of float32; any. */
enum region_kind { FLOATS, FLOAT16S, BFLOAT16S, ANY };

constexpr bool is_half(region_kind kind)
{
    return kind == FLOAT16S || kind == BFLOAT16S;
}

/* An input's neighbours as they are in memory: nothing waits for them before all inputs are on their way. Two numbers of 16 bits
 * are in a word, where it may be any there is a word for each number. */
template <int N, region_kind KIND> struct raw {
    uint32_t word[is_half(KIND) ? N / 2 : N];
    bool packed; /* ANY: two 16-bit numbers in each of the first words all the same */
};

/* As many words at `from`, which lies on their size, 16 bytes at most. */
template <int WORDS> __device__ __forceinline__ void fetch_words(const char *from, uint32_t *word)
{
    constexpr int EACH = WORDS < 4 ? WORDS : 4;
#pragma unroll
    for (int i = 0; i < WORDS; i += EACH) {
        const pc::pack<uint32_t, EACH> some = reinterpret_cast<const pc::pack<uint32_t, EACH> *>(from)[i / EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++)
            word[i + k] = some.v[k];
    }
}

/* Number k is that one. */
template <int N, region_kind KIND>
__device__ __forceinline__ void set_number(raw<N, KIND> &x, int k, const void *data, bool wide, uint32_t at)
{
    const uint32_t number = wide ? static_cast<const uint32_t *>(data)[at] : static_cast<const uint16_t *>(data)[at];
    if (is_half(KIND))
        x.word[k / 2] |= number << k % 2 * 16;
    else
        x.word[k] = number;
}

template <int N, region_kind KIND>
__device__ __forceinline__ raw<N, KIND> fetch_dense(const void *data, bool wide, uint32_t i, uint32_t n)
{
    constexpr int BYTES = N / 2 * 4; /* of an access at most, where a number has two */
    raw<N, KIND> x = {};
    const char *from = static_cast<const char *>(data) + i * (wide ? 4ull : 2ull);
    const uintptr_t place = reinterpret_cast<uintptr_t>(from);
    if (!is_half(KIND) && wide && n == N && place % 16 == 0) {
        fetch_words<(is_half(KIND) ? N / 2 : N)>(from, x.word);
    } else if (KIND != FLOATS && !wide && n == N && place % BYTES == 0) {
        fetch_words<N / 2>(from, x.word);
        x.packed = true;
    } else {
#pragma unroll
        for (int k = 0; k < N; k++)
            if (k < n)
                set_number(x, k, from, wide, k);
    }
    return x;
}

/* Two divisions for all neighbours; where they are neighbours in the input too, one access. */
template <int N, region_kind KIND>
__device__ __forceinline__ raw<N, KIND> fetch_broadcast(const void *data, bool wide, uint32_t i, uint32_t inner,
                                                        uint32_t n)
{
    const uint32_t outer = inner == 1 ? i : i / inner;
    uint32_t at = outer % n, rest = i - outer * inner;
    if (inner == 1 && at + N <= n)
        return fetch_dense<N, KIND>(data, wide, at, N);
    raw<N, KIND> x = {};
#pragma unroll
    for (int k = 0; k < N; k++) {
        set_number(x, k, data, wide, at);
        if (++rest == inner) {
            rest = 0;
            at = at + 1 == n ? 0 : at + 1;
        }
    }
    return x;
}

template <int N, region_kind KIND>
__device__ __forceinline__ raw<N, KIND> fetch(const pc__cuda_region &r, int k, uint32_t i, uint32_t n)
{
    const pc__region_in &in = r.region.in[k];
    const bool wide = KIND == FLOATS || (KIND == ANY && r.in_dtype[k] == PC__CUDA_F32);
    return in.n ? fetch_broadcast<N, KIND>(r.in[k], wide, i, uint32_t(in.inner), uint32_t(in.n))
                : fetch_dense<N, KIND>(r.in[k], wide, i, n);
}

/* A number of 16 bits of a region of that kind; `dtype` where it may be any. */
template <region_kind KIND> __device__ __forceinline__ float number_of(uint32_t half, int dtype)
{
    return KIND == BFLOAT16S || (KIND == ANY && dtype == PC__CUDA_BF16)
               ? __uint_as_float(half << 16)
               : float(pc::of_bits<pc::f16>(static_cast<uint16_t>(half)));
}

template <int N, region_kind KIND> __device__ __forceinline__ item<N> numbers_of(const raw<N, KIND> &x, int dtype)
{
    item<N> y;
#pragma unroll
    for (int k = 0; k < N; k++) {
        const uint32_t word = x.word[is_half(KIND) ? k / 2 : k];
        const uint32_t half = (is_half(KIND) || x.packed ? x.word[k / 2] >> k % 2 * 16 : word) & 0xffff;
        y.v[k] = KIND == FLOATS || (KIND == ANY && dtype == PC__CUDA_F32) ? __uint_as_float(word)
                                                                          : number_of<KIND>(half, dtype);
    }
    return y;
}

} // namespace

#endif
