/* half_vectors.h: as many 16-bit numbers as a vector has floats, in memory's order. */
#ifndef PC__HALF_VECTORS_H
#define PC__HALF_VECTORS_H

#include "base/base.h"
#include "cpu/level/halves.h"

static inline __attribute__((always_inline)) pc__singles pc__vector_bf16(const pc_bf16 *from)
{
#if defined(PC__LEVEL_v4)
    return (pc__singles)(((pc__pairs)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)from))) << 16);
#elif defined(PC__LEVEL_v3)
    return (pc__singles)(((pc__pairs)_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)from))) << 16);
#else
    typedef uint16_t halves __attribute__((vector_size(PC__VECTOR_BYTES / 2), aligned(2), may_alias));
    return (pc__singles)(__builtin_convertvector(*(const halves *)(const void *)from, pc__pairs) << 16);
#endif
}

static inline __attribute__((always_inline)) pc__singles pc__vector_f16(const pc_f16 *from)
{
    union {
        float one[PC__VECTOR_BYTES / sizeof(float)];
        pc__singles all;
    } got;
    for (int i = 0; i < PC__COUNT(got.one); i += PC__CONVERTED)
        PC__TAKE(got.one + i, from + i);
    return got.all;
}

#endif
