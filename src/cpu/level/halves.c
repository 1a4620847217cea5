/* halves.c: rows of 16-bit numbers to and from float32. */
#include "cpu/level/halves.h"

#include "tensor/half.h"

#ifdef __F16C__ /* converts 8 numbers in one instruction, to the same bits */
#include <immintrin.h>

/* How many of n were converted. */
static inline int64_t load_f16(float *restrict to, const pc_f16 *restrict from, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i))));
    return i;
}

static inline int64_t store_f16(pc_f16 *restrict to, const float *restrict from, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}
#else
#define load_f16(to, from, n) 0
#define store_f16(to, from, n) 0
#endif

void pc__load_halves(float *restrict to, const void *restrict from, int64_t n, bool is_f16)
{
    const pc_f16 *f16 = from;
    const pc_bf16 *bf16 = from;
    if (is_f16)
        for (int64_t i = load_f16(to, f16, n); i < n; i++)
            to[i] = pc__f16_float(f16[i]);
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = pc__bf16_float(bf16[i]);
}

void pc__store_halves(void *restrict to, const float *restrict from, int64_t n, bool is_f16)
{
    pc_f16 *f16 = to;
    pc_bf16 *bf16 = to;
    if (is_f16)
        for (int64_t i = store_f16(f16, from, n); i < n; i++)
            f16[i] = pc__f16_of(from[i]);
    else
        for (int64_t i = 0; i < n; i++)
            bf16[i] = pc__bf16_of(from[i]);
}
