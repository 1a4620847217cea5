/* halves.c: rows of 16-bit numbers to and from float32. */
#include "cpu/level/halves.h"

/* GCC makes six instructions of it for AVX2. */
#if defined(PC__LEVEL_v3)
#define WIDENED(words) ((pc__pairs)_mm256_cvtepu16_epi32((__m128i)(words)))
#else
#define WIDENED(words) __builtin_convertvector(words, pc__pairs)
#endif

/* PC__HALVES in memory's order. */
static inline void take_in_order(float *to, const void *from, bool is_f16)
{
    typedef uint16_t words __attribute__((vector_size(PC__VECTOR_BYTES / 2), aligned(2), may_alias));
    const words *halves = from;
    pc__pairs_in_memory *floats = (pc__pairs_in_memory *)(void *)to;
    if (is_f16) {
        pc__take_f16(to, from);
        return;
    }
    floats[0] = WIDENED(halves[0]) << 16;
    floats[1] = WIDENED(halves[1]) << 16;
}

static inline void put_in_order(void *to, const float *from, bool is_f16)
{
    typedef uint16_t words __attribute__((vector_size(PC__VECTOR_BYTES / 2), aligned(2), may_alias));
    const pc__pairs_in_memory *floats = (const pc__pairs_in_memory *)(const void *)from;
    words *out = to;
    if (is_f16) {
        pc__put_f16(to, from);
        return;
    }
    pc__pairs low = floats[0], high = floats[1];
    if (__builtin_expect(pc__any_nan((pc__singles)low, (pc__singles)high), 0))
        low = pc__rounded_bf16(low), high = pc__rounded_bf16(high);
    else
        low += 0x7fff + (low >> 16 & 1), high += 0x7fff + (high >> 16 & 1);
    out[0] = __builtin_convertvector(low >> 16, words);
    out[1] = __builtin_convertvector(high >> 16, words);
}

/* The same of eight. */
typedef uint16_t eight_words __attribute__((vector_size(16), aligned(2), may_alias));
typedef uint32_t eight_bits __attribute__((vector_size(32)));
typedef float eight_floats __attribute__((vector_size(32)));
typedef uint32_t eight_bits_in_memory __attribute__((vector_size(32), aligned(4), may_alias));

#ifdef PC__LEVEL_base
#define EIGHT_WIDENED(words) __builtin_convertvector(words, eight_bits)
#define TAKE_EIGHT_F16(to, from)                                                                                       \
    for (int i = 0; i < 8; i++)                                                                                        \
    (to)[i] = pc__f16_float((pc_f16){(from)[i]})
#define PUT_EIGHT_F16(to, from)                                                                                        \
    for (int i = 0; i < 8; i++)                                                                                        \
    (to)[i] = pc__f16_of((from)[i]).bits
#else
#define EIGHT_WIDENED(words) ((eight_bits)_mm256_cvtepu16_epi32((__m128i)(words)))
#define TAKE_EIGHT_F16(to, from)                                                                                       \
    _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from))))
#define PUT_EIGHT_F16(to, from)                                                                                        \
    _mm_storeu_si128((__m128i *)(void *)(to), _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT))
#endif

static inline void take_eight(float *to, const uint16_t *from, bool is_f16)
{
    if (is_f16)
        TAKE_EIGHT_F16(to, from);
    else
        *(eight_bits_in_memory *)(void *)to = EIGHT_WIDENED(*(const eight_words *)from) << 16;
}

static inline void put_eight(uint16_t *to, const float *from, bool is_f16)
{
    const eight_bits bits = *(const eight_bits_in_memory *)(const void *)from;
    const eight_bits nan = (eight_bits)((eight_floats)bits != (eight_floats)bits);
    if (is_f16)
        PUT_EIGHT_F16(to, from);
    else
        *(eight_words *)to = __builtin_convertvector(PC__ROUNDED_BF16(bits, nan) >> 16, eight_words);
}

/* Blocks of n numbers, at least one. Those at the end that fill none are part of the last one, which lies over the one before.
 * Not masked: some processors take a hundred cycles for a masked store, or for what reads it next. */
#define IN_BLOCKS(block, step, to, from, n, is_f16)                                                                    \
    do {                                                                                                               \
        int64_t at = 0;                                                                                                \
        for (; at + (step) <= (n); at += (step))                                                                       \
            block((to) + at, (from) + at, is_f16);                                                                     \
        if (at < (n))                                                                                                  \
            block((to) + (n) - (step), (from) + (n) - (step), is_f16);                                                 \
    } while (0)

void pc__load_halves(float *restrict to, const void *restrict from, int64_t n, bool is_f16)
{
    const uint16_t *halves = from;
    if (n >= PC__HALVES)
        IN_BLOCKS(take_in_order, PC__HALVES, to, halves, n, is_f16);
    else if (n >= 8)
        IN_BLOCKS(take_eight, 8, to, halves, n, is_f16);
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = is_f16 ? pc__f16_float((pc_f16){halves[i]}) : pc__bf16_float((pc_bf16){halves[i]});
}

void pc__store_halves(void *restrict to, const float *restrict from, int64_t n, bool is_f16)
{
    uint16_t *halves = to;
    if (n >= PC__HALVES)
        IN_BLOCKS(put_in_order, PC__HALVES, halves, from, n, is_f16);
    else if (n >= 8)
        IN_BLOCKS(put_eight, 8, halves, from, n, is_f16);
    else
        for (int64_t i = 0; i < n; i++)
            halves[i] = is_f16 ? pc__f16_of(from[i]).bits : pc__bf16_of(from[i]).bits;
}
