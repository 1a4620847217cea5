/* grid_gather.h: vectors of numbers that lie anywhere. */
#ifndef PC__CPU_GRID_GATHER_H
#define PC__CPU_GRID_GATHER_H

#include "cpu/level/real.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

/* from[at[i]] */
INLINE vec gather(const real *from, lanes at)
{
#if defined(__AVX512F__) && defined(PC__DOUBLE)
    return (vec)_mm512_i64gather_pd((__m512i)at, from, 8);
#elif defined(__AVX512F__)
    return (vec)_mm512_i32gather_ps((__m512i)at, from, 4);
#elif defined(__AVX2__) && defined(PC__DOUBLE)
    return (vec)_mm256_i64gather_pd(from, (__m256i)at, 8);
#elif defined(__AVX2__)
    return (vec)_mm256_i32gather_ps(from, (__m256i)at, 4);
#else
    vec found;
    UNROLL for (int i = 0; i < W; i++) found[i] = from[at[i]];
    return found;
#endif
}

/* The same, and from[at[i] + 1]: two floats are one number to be read. */
INLINE void gather_pairs(const real *from, lanes at, vec *first, vec *second)
{
#if defined(__AVX512F__) && !defined(PC__DOUBLE)
    const __m512i all = (__m512i)at;
    const vec low = (vec)_mm512_i32gather_epi64(_mm512_castsi512_si256(all), from, 4);
    const vec high = (vec)_mm512_i32gather_epi64(_mm512_extracti64x4_epi64(all, 1), from, 4);
    *first = __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    *second = __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
#elif defined(__AVX2__) && !defined(PC__DOUBLE)
    const __m256i all = (__m256i)at;
    const vec low = (vec)_mm256_i32gather_epi64((const long long *)from, _mm256_castsi256_si128(all), 4);
    const vec high = (vec)_mm256_i32gather_epi64((const long long *)from, _mm256_extracti128_si256(all, 1), 4);
    *first = __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14);
    *second = __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15);
#else
    *first = gather(from, at);
    *second = gather(from + 1, at);
#endif
}

#endif
