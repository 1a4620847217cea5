/* pairs.c: the tile of pairs.h in every size, where the compiler has the instruction. */
#include "cpu/level/pairs.h"

#if defined(PC__LEVEL_v4)
#include <immintrin.h>

#define PAIRS __attribute__((target("avx512bf16")))

enum { TILES_LEAST = 8 }; /* along k: shorter sums take no longer by vectors */

bool pc__has_pairs(void)
{
    return __builtin_cpu_supports("avx512bf16");
}

/* One pair of each row, against those of the columns. */
PAIRS INLINE void step(__m512 sum[TILE_ROWS_MAX][TILE_VECTORS], const pair_tile *t, const pc_bf16 *a, const uint32_t *b,
                       const int rows, const int vectors, const bool whole)
{
    __m512bh column[TILE_VECTORS];
    UNROLL for (int v = 0; v < vectors; v++) column[v] = (__m512bh)_mm512_loadu_si512(b + v * W);
    UNROLL for (int r = 0; r < rows; r++)
    {
        uint32_t pair = 0;
        memcpy(&pair, a + r * t->a_row, whole ? 4 : 2);
        const __m512bh row = (__m512bh)_mm512_set1_epi32((int)pair);
        UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], row, column[v]);
    }
}

PAIRS INLINE void pair_run(const pair_tile *t, const int rows, const int vectors)
{
    __m512 sum[TILE_ROWS_MAX][TILE_VECTORS];
    const int64_t b_k = t->b_k;
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = _mm512_setzero_ps();
    for (int64_t s = 0; s < t->segments; s++) {
        const pc_bf16 *a = t->a + s * t->a_segment;
        const uint32_t *b = t->b + s * t->b_segment;
        for (int64_t k = t->k / 2; k > 0; k--, a += 2, b += b_k)
            step(sum, t, a, b, rows, vectors, true);
        if (t->k % 2)
            step(sum, t, a, b, rows, vectors, false);
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++)
        _mm512_storeu_ps(t->c + r * t->c_row + v * W, sum[r][v]);
}

typedef void pair_function(const pair_tile *t);

#define PAIR(rows, vectors)                                                                                            \
    PAIRS static void pair_##rows##x##vectors(const pair_tile *t)                                                      \
    {                                                                                                                  \
        pair_run(t, rows, vectors);                                                                                    \
    }
#define TO_6(v) PAIR(1, v) PAIR(2, v) PAIR(3, v) PAIR(4, v) PAIR(5, v) PAIR(6, v)
#define TO_8(v) TO_6(v) PAIR(7, v) PAIR(8, v)
#define TO_12(v) TO_8(v) PAIR(9, v) PAIR(10, v) PAIR(11, v) PAIR(12, v)
TO_12(1)
TO_12(2)
TO_8(3)
TO_6(4)
#define NAMES_6(v) NULL, pair_1x##v, pair_2x##v, pair_3x##v, pair_4x##v, pair_5x##v, pair_6x##v
#define NAMES_8(v) NAMES_6(v), pair_7x##v, pair_8x##v
#define NAMES_12(v) NAMES_8(v), pair_9x##v, pair_10x##v, pair_11x##v, pair_12x##v
static pair_function *const functions[TILE_VECTORS + 1][TILE_ROWS_MAX + 1] = {
    {NULL}, {NAMES_12(1)}, {NAMES_12(2)}, {NAMES_8(3)}, {NAMES_6(4)}};

/* By the matrix registers or not, whatever the number of rows: how they are shared among threads changes no bit. */
void pair_rows_run(pair_tile *t, int64_t rows, int vectors)
{
    if (rows > 0 && t->k >= TILES_LEAST && !t->by_vectors && pair_tiles_there()) {
        pair_tiles_run(t, rows, vectors);
        return;
    }
    const int64_t tiles = (rows + tile_rows[vectors] - 1) / tile_rows[vectors];
    const int64_t step = tiles > 1 ? (rows + tiles - 1) / tiles : rows;
    for (; rows > 0; rows -= step, t->a += step * t->a_row, t->c += step * t->c_row)
        functions[vectors][PC__MIN(rows, step)](t);
}

/* Vectors along k; what is left of it fills one up with zeros. */
PAIRS INLINE void dot_run(const pair_dot *d, const int rows, const int columns)
{
    __m512 sum[PAIR_DOT_ROWS][PAIR_DOT_COLUMNS];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int c = 0; c < columns; c++) sum[r][c] = _mm512_setzero_ps();
    for (int64_t k = 0; k < d->k; k += 2 * W) {
        const __mmask32 there = d->k - k >= 2 * W ? ~(__mmask32)0 : ((__mmask32)1 << (d->k - k)) - 1;
        __m512bh right[PAIR_DOT_COLUMNS];
        UNROLL for (int c = 0; c < columns; c++) right[c] =
            (__m512bh)_mm512_maskz_loadu_epi16(there, d->b + c * d->b_column + k);
        if (rows == 1) /* memory is the limit: the next columns are on their way meanwhile */
            UNROLL for (int c = 0; c < columns; c++) __builtin_prefetch(d->b + (columns + c) * d->b_column + k);
        UNROLL for (int r = 0; r < rows; r++)
        {
            const __m512bh left = (__m512bh)_mm512_maskz_loadu_epi16(there, d->a + r * d->a_row + k);
            UNROLL for (int c = 0; c < columns; c++) sum[r][c] = _mm512_dpbf16_ps(sum[r][c], left, right[c]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int c = 0; c < columns; c++) d->values[r * d->value_row + c] =
        _mm512_reduce_add_ps(sum[r][c]);
}

typedef void dot_function(const pair_dot *d);

#define DOT(rows, columns)                                                                                             \
    PAIRS static void dot_##rows##x##columns(const pair_dot *d)                                                        \
    {                                                                                                                  \
        dot_run(d, rows, columns);                                                                                     \
    }
#define DOTS(rows) DOT(rows, 1) DOT(rows, 2) DOT(rows, 3) DOT(rows, 4) DOT(rows, 5) DOT(rows, 6)
#define DOT_NAMES(r)                                                                                                   \
    {                                                                                                                  \
        NULL, dot_##r##x1, dot_##r##x2, dot_##r##x3, dot_##r##x4, dot_##r##x5, dot_##r##x6                             \
    }
DOTS(1)
DOTS(2)
DOTS(3)
DOTS(4)
static dot_function *const dot_functions[PAIR_DOT_ROWS + 1][PAIR_DOT_COLUMNS + 1] = {
    {NULL}, DOT_NAMES(1), DOT_NAMES(2), DOT_NAMES(3), DOT_NAMES(4)};

void pair_dot_run(const pair_dot *d, int64_t rows, int64_t columns)
{
    dot_functions[rows][columns](d);
}

/* 2 W columns of some pairs of rows, which `there` says are there; each row of pairs has those of two lanes of 16 bytes each. */
PAIRS INLINE void few_columns(const pair_few *f, int64_t column, __mmask32 there, const int pairs)
{
    float *sums = f->sums + column;
    __m512 low = _mm512_loadu_ps(sums), high = _mm512_loadu_ps(sums + W);
    UNROLL for (int i = 0; i < pairs; i++)
    {
        const __m512i first = _mm512_maskz_loadu_epi16(there, f->b[2 * i] + column);
        const __m512i second =
            f->b[2 * i + 1] ? _mm512_maskz_loadu_epi16(there, f->b[2 * i + 1] + column) : _mm512_setzero_si512();
        const __m512bh a = (__m512bh)_mm512_set1_epi32((int)f->a[i]);
        low = _mm512_dpbf16_ps(low, a, (__m512bh)_mm512_unpacklo_epi16(first, second));
        high = _mm512_dpbf16_ps(high, a, (__m512bh)_mm512_unpackhi_epi16(first, second));
    }
    _mm512_storeu_ps(sums, low);
    _mm512_storeu_ps(sums + W, high);
}

PAIRS void pair_few_run(const pair_few *f)
{
    for (int64_t c = 0; c < f->columns; c += 2 * W) {
        const __mmask32 there = f->columns - c >= 2 * W ? ~(__mmask32)0 : ((__mmask32)1 << (f->columns - c)) - 1;
        if (f->pairs == PAIR_FEW)
            few_columns(f, c, there, PAIR_FEW);
        else
            for (pair_few one = {1, f->columns, f->a, f->b, f->sums}; one.a < f->a + f->pairs; one.a++, one.b += 2)
                few_columns(&one, c, there, 1);
    }
}

void pair_few_order(float *to, const float *sums, int64_t columns)
{
    for (int64_t c = 0; c < columns; c++) {
        const int64_t at = c % (2 * W), lane = at / 8, half = at % 8 / 4;
        to[c] = sums[c - at + half * W + lane * 4 + at % 4];
    }
}

/* The first n of 16, by parts: a masked store takes some processors as long as 40 numbers. */
static inline void put_first(pc_bf16 *to, __m256i from, int64_t n)
{
    __m128i part = _mm256_castsi256_si128(from);
    if (n & 8) {
        _mm_storeu_si128((__m128i *)(void *)to, part);
        part = _mm256_extracti128_si256(from, 1), to += 8;
    }
    if (n & 4) {
        _mm_storeu_si64(to, part);
        part = _mm_srli_si128(part, 8), to += 4;
    }
    if (n & 2) {
        _mm_storeu_si32(to, part);
        part = _mm_srli_si128(part, 4), to += 2;
    }
    if (n & 1)
        to->bits = (uint16_t)_mm_extract_epi16(part, 0);
}

PAIRS void pair_store(pc_bf16 *to, const float *from, int64_t n)
{
    const int64_t all = n;
    for (; n >= 2 * W; n -= 2 * W, from += 2 * W, to += 2 * W)
        _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + W), _mm512_loadu_ps(from)));
    for (; n > 0 && all >= W; n -= W, from += W, to += W) { /* the last ones lie over others */
        const int64_t back = n >= W ? 0 : W - n;
        _mm256_storeu_si256((__m256i *)(void *)(to - back), (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(from - back)));
    }
    if (all < W)
        put_first(to, (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps((__mmask16)((1 << n) - 1), from)), n);
}

#else

bool pc__has_pairs(void)
{
    return false;
}

void pair_dot_run(const pair_dot *d, int64_t rows, int64_t columns)
{
    (void)d, (void)rows, (void)columns;
}

void pair_few_run(const pair_few *f)
{
    (void)f;
}

void pair_few_order(float *to, const float *sums, int64_t columns)
{
    (void)to, (void)sums, (void)columns;
}

void pair_store(pc_bf16 *to, const float *from, int64_t n)
{
    (void)to, (void)from, (void)n;
}

void pair_rows_run(pair_tile *t, int64_t rows, int vectors)
{
    (void)t, (void)rows, (void)vectors;
}

#endif
