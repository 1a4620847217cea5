/* halves.c: rows of 16-bit numbers to and from float32. */
#include "cpu/level/halves.h"

#if defined(PC__LEVEL_v4)
enum { MASKED = 16 };

/* Up to so many numbers behind the last whole vectors. */
static inline __mmask16 those(int64_t n)
{
    return n >= MASKED ? (__mmask16)~0 : (__mmask16)((1 << n) - 1);
}

static inline void load_masked(float *to, const void *from, int64_t n, bool is_f16)
{
    const __m256i halves = _mm256_maskz_loadu_epi16(those(n), from);
    const __m512 floats =
        is_f16 ? _mm512_cvtph_ps(halves) : _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
    _mm512_mask_storeu_ps(to, those(n), floats);
}

static inline void store_masked(void *to, const float *from, int64_t n, bool is_f16)
{
    const __m512 floats = _mm512_maskz_loadu_ps(those(n), from);
    const __m256i halves = is_f16 ? _mm512_cvtps_ph(floats, _MM_FROUND_TO_NEAREST_INT)
                                  : _mm512_cvtepi32_epi16((__m512i)(pc__rounded_bf16((pc__pairs)floats) >> 16));
    _mm256_mask_storeu_epi16(to, those(n), halves);
}
#else
enum { MASKED = 0 };
#define load_masked(to, from, n, is_f16) (void)0
#define store_masked(to, from, n, is_f16) (void)0
#endif

void pc__load_halves(float *restrict to, const void *restrict from, int64_t n, bool is_f16)
{
    const pc_f16 *f16 = from;
    const pc_bf16 *bf16 = from;
    int64_t i = 0;
    for (; is_f16 && i + PC__HALVES <= n; i += PC__HALVES)
        pc__take_f16(to + i, f16 + i);
    for (; MASKED && !is_f16 && i + MASKED <= n; i += MASKED)
        load_masked(to + i, bf16 + i, MASKED, false);
    for (; MASKED && i < n; i += MASKED)
        load_masked(to + i, bf16 + i, n - i, is_f16);
    for (; is_f16 && i < n; i++)
        to[i] = pc__f16_float(f16[i]);
    for (; i < n; i++)
        to[i] = pc__bf16_float(bf16[i]);
}

/* PC__HALVES bfloat16 in memory's order. */
static inline void put_in_order(pc_bf16 *to, const float *from)
{
    typedef uint16_t words __attribute__((vector_size(PC__VECTOR_BYTES / 2), aligned(2), may_alias));
    const pc__pairs_in_memory *floats = (const pc__pairs_in_memory *)(const void *)from;
    pc__pairs low = floats[0], high = floats[1];
    words *out = (words *)(void *)to;
    if (__builtin_expect(pc__any_nan((pc__singles)low, (pc__singles)high), 0))
        low = pc__rounded_bf16(low), high = pc__rounded_bf16(high);
    else
        low += 0x7fff + (low >> 16 & 1), high += 0x7fff + (high >> 16 & 1);
    out[0] = __builtin_convertvector(low >> 16, words);
    out[1] = __builtin_convertvector(high >> 16, words);
}

void pc__store_halves(void *restrict to, const float *restrict from, int64_t n, bool is_f16)
{
    pc_f16 *f16 = to;
    pc_bf16 *bf16 = to;
    int64_t i = 0;
    for (; is_f16 && i + PC__HALVES <= n; i += PC__HALVES)
        pc__put_f16(f16 + i, from + i);
    for (; !is_f16 && i + PC__HALVES <= n; i += PC__HALVES)
        put_in_order(bf16 + i, from + i);
    for (; MASKED && i < n; i += MASKED)
        store_masked(bf16 + i, from + i, n - i, is_f16);
    for (; is_f16 && i < n; i++)
        f16[i] = pc__f16_of(from[i]);
    for (; i < n; i++)
        bf16[i] = pc__bf16_of(from[i]);
}
