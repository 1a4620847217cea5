/* halves.h: 16-bit numbers to and from float32, for kernels that convert what they are about to work on: rows of them; and
 * for a kernel's own loop some of them, PC__HALVES, in an order that is not memory's: what takes them puts them back. */
#ifndef PC__HALVES_H
#define PC__HALVES_H

#include "cpu/level/level.h"

#include "tensor/half.h"

#include <stdbool.h>
#include <stdint.h>
#ifndef PC__LEVEL_base /* the processors of the wider levels convert float16, to the same bits */
#include <immintrin.h>
#endif

enum { PC__HALVES = PC__VECTOR_BYTES / 2 };

#define pc__load_halves PC__K(load_halves)
#define pc__store_halves PC__K(store_halves)
/* Memory that does not overlap. */
void pc__load_halves(float *restrict to, const void *restrict from, int64_t n, bool is_f16);
void pc__store_halves(void *restrict to, const float *restrict from, int64_t n, bool is_f16);

#define PC__HALVES_FN static inline __attribute__((always_inline)) void

/* Each 32 bits of memory are two bfloat16: one moved up, one with the other cut off, is two floats. */
typedef uint32_t pc__pairs __attribute__((vector_size(PC__VECTOR_BYTES)));
typedef float pc__singles __attribute__((vector_size(PC__VECTOR_BYTES)));
typedef uint32_t pc__pairs_in_memory __attribute__((vector_size(PC__VECTOR_BYTES), aligned(2), may_alias));

PC__HALVES_FN pc__take_bf16(float *to, const pc_bf16 *from)
{
    const pc__pairs both = *(const pc__pairs_in_memory *)(const void *)from;
    pc__pairs_in_memory *floats = (pc__pairs_in_memory *)(void *)to;
    floats[0] = both << 16;
    floats[1] = both & 0xffff0000;
}

/* pc__bf16_of in the upper half of each word of a vector, of any width. */
#define PC__ROUNDED_BF16(bits, nan) ((~(nan) & ((bits) + 0x7fff + ((bits) >> 16 & 1))) | ((nan) & ((bits) | 0x400000)))

static inline __attribute__((always_inline)) pc__pairs pc__rounded_bf16(pc__pairs bits)
{
    const pc__singles x = (pc__singles)bits;
    const pc__pairs nan = (pc__pairs)(x != x);
    return PC__ROUNDED_BF16(bits, nan);
}

/* Whether some lane of two vectors is no number. */
static inline __attribute__((always_inline)) bool pc__any_nan(pc__singles a, pc__singles b)
{
#if defined(PC__LEVEL_v4)
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_UNORD_Q);
#elif defined(PC__LEVEL_v3)
    return _mm256_movemask_ps(_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_UNORD_Q));
#else
    (void)a, (void)b;
    return true;
#endif
}

/* NaN, which is seldom there, costs more than half of rounding. */
PC__HALVES_FN pc__put_bf16(pc_bf16 *to, const float *from)
{
    const pc__pairs_in_memory *floats = (const pc__pairs_in_memory *)(const void *)from;
    const pc__pairs even = floats[0], odd = floats[1];
    pc__pairs_in_memory *both = (pc__pairs_in_memory *)(void *)to;
    if (__builtin_expect(pc__any_nan((pc__singles)even, (pc__singles)odd), 0))
        *both = pc__rounded_bf16(even) >> 16 | (pc__rounded_bf16(odd) & 0xffff0000);
    else
        *both = (even + 0x7fff + (even >> 16 & 1)) >> 16 | ((odd + 0x7fff + (odd >> 16 & 1)) & 0xffff0000);
}

/* The same of numbers that have no more than 16 bits. */
PC__HALVES_FN pc__keep_bf16(pc_bf16 *to, const float *from)
{
    typedef int16_t words __attribute__((vector_size(PC__VECTOR_BYTES)));
    const pc__pairs_in_memory *floats = (const pc__pairs_in_memory *)(const void *)from;
    const words both = (words)(floats[0] >> 16 | (floats[1] & 0xffff0000));
    *(pc__pairs_in_memory *)(void *)to = (pc__pairs)(both | (((both & 0x7fff) > 0x7f80) & 0x40));
}

#if defined(PC__LEVEL_v4)
#define PC__CONVERTED 16 /* in one instruction */
#define PC__TAKE(to, from)                                                                                             \
    _mm512_storeu_ps(to, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(from))))
#define PC__PUT(to, from)                                                                                              \
    _mm256_storeu_si256((__m256i *)(void *)(to), _mm512_cvtps_ph(_mm512_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT))
#elif defined(PC__LEVEL_v3)
#define PC__CONVERTED 8
#define PC__TAKE(to, from) _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from))))
#define PC__PUT(to, from)                                                                                              \
    _mm_storeu_si128((__m128i *)(void *)(to), _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT))
#else
#define PC__CONVERTED 1
#define PC__TAKE(to, from) *(to) = pc__f16_float(*(from))
#define PC__PUT(to, from) *(to) = pc__f16_of(*(from))
#endif

PC__HALVES_FN pc__take_f16(float *to, const pc_f16 *from)
{
    for (int i = 0; i < PC__HALVES; i += PC__CONVERTED)
        PC__TAKE(to + i, from + i);
}

PC__HALVES_FN pc__put_f16(pc_f16 *to, const float *from)
{
    for (int i = 0; i < PC__HALVES; i += PC__CONVERTED)
        PC__PUT(to + i, from + i);
}

PC__HALVES_FN pc__keep_f16(pc_f16 *to, const float *from)
{
    pc__put_f16(to, from);
}

#endif
