/* pairs_narrow.c: the convolution of bfloat16 to so few outputs that several places of y share a vector (pairs.h): one load has what
 * a row of their windows needs, and a permutation brings each lane its pair. */
#include "cpu/level/pairs.h"

#if defined(PC__LEVEL_v4)
#include <immintrin.h>

#define PAIRS __attribute__((target("avx512bf16")))

enum { TOGETHER = 8 }; /* vectors of sums */

int64_t pair_narrow_together(int64_t k, int64_t a_row, int64_t outputs)
{
    const int64_t fit = W / outputs, loaded = k <= 2 * W ? 1 + (2 * W - k) / PC__MAX(a_row, 1) : 0;
    return pair_tiles_there() ? 0 : PC__MIN(fit, loaded); /* of 16 columns few are no loss there */
}

/* The first n of 32. */
static inline __mmask32 some(int64_t n)
{
    return n >= 32 ? ~(__mmask32)0 : ((__mmask32)1 << n) - 1;
}

void pair_narrow_spread(pair_narrow *n, uint32_t *b, uint32_t *bias)
{
    const int64_t outputs = n->outputs, all = n->segments * ((n->k + 1) / 2);
    for (int64_t i = 0; i < 2 * W; i++)
        n->at[i] = (uint16_t)(PC__MIN(i / 2 / outputs, n->together - 1) * n->a_row + i % 2);
    for (int64_t i = outputs; i < outputs * n->together; i++) {
        for (int64_t p = 0; p < all; p++)
            b[p * W + i] = b[p * W + i - outputs];
        bias[i] = bias[i - outputs];
    }
}

/* `many` vectors of sums, each of `there` places. `more`: so many numbers of c follow that whole vectors are stored, whose ends
 * the next ones overwrite: stores by masks are slow. */
PAIRS INLINE void vectors_run(const pair_narrow *n, const pc_bf16 *a, pc_bf16 *c, int64_t there, bool more,
                              const int many)
{
    const int64_t pairs = (n->k + 1) / 2, step = n->together * n->a_row, outputs = n->together * n->outputs;
    const __mmask32 all = some(2 * outputs), last = n->k % 2 ? all & 0x55555555 : all;
    const __mmask32 loaded = some((there - 1) * n->a_row + n->k);
    const __m512i at = _mm512_loadu_si512(n->at);
    const uint32_t *b = n->b;
    __m512 sum[TOGETHER];
    UNROLL for (int i = 0; i < many; i++) sum[i] = _mm512_loadu_ps(n->bias);
    for (int64_t s = 0; s < n->segments; s++, a += n->a_segment) {
        __m512i row[TOGETHER], from = at;
        UNROLL for (int i = 0; i < many; i++) row[i] = _mm512_maskz_loadu_epi16(loaded, a + i * step);
        for (int64_t p = pairs; p > 0; p--, b += W) {
            const __mmask32 halves = p > 1 ? all : last;
            const __m512bh weight = (__m512bh)_mm512_loadu_si512(b);
            UNROLL for (int i = 0; i < many; i++) sum[i] =
                _mm512_dpbf16_ps(sum[i], (__m512bh)_mm512_maskz_permutexvar_epi16(halves, from, row[i]), weight);
            from = _mm512_add_epi16(from, _mm512_set1_epi16(2));
        }
    }
    if (n->relu) /* NaN stays */
        UNROLL for (int i = 0; i < many; i++) sum[i] =
            _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(sum[i], _mm512_setzero_ps(), _CMP_NLT_UQ), sum[i]);
    if (more)
        UNROLL for (int i = 0; i < many; i++)
            _mm256_storeu_si256((__m256i *)(void *)(c + i * outputs), (__m256i)_mm512_cvtneps_pbh(sum[i]));
    else
        UNROLL for (int i = 0; i < many; i++) _mm256_mask_storeu_epi16(
            c + i * outputs, (__mmask16)some(there * n->outputs), (__m256i)_mm512_cvtneps_pbh(sum[i]));
}

PAIRS void pair_narrow_run(const pair_narrow *n, const pc_bf16 *a, pc_bf16 *c, int64_t places)
{
    const int64_t one = n->together, all = TOGETHER * one, step = one * n->outputs;
    const int64_t behind =
        step < W ? (W - 1) / n->outputs + 1 - one : 0; /* places that a vector reaches beyond its own */
    for (; places >= all; places -= all, a += all * n->a_row, c += TOGETHER * step)
        vectors_run(n, a, c, one, places >= all + behind, TOGETHER);
    for (; places > 0; places -= one, a += one * n->a_row, c += step)
        vectors_run(n, a, c, PC__MIN(places, one), places >= one + behind, 1);
}

#else

int64_t pair_narrow_together(int64_t k, int64_t a_row, int64_t outputs)
{
    (void)k, (void)a_row, (void)outputs;
    return 0;
}

void pair_narrow_spread(pair_narrow *n, uint32_t *b, uint32_t *bias)
{
    (void)n, (void)b, (void)bias;
}

void pair_narrow_run(const pair_narrow *n, const pc_bf16 *a, pc_bf16 *c, int64_t places)
{
    (void)n, (void)a, (void)c, (void)places;
}

#endif
