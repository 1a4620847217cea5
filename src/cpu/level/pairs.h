/* pairs.h: the tile of bfloat16 on processors that multiply two pairs of them in each lane of a vector and add both products
 * to a sum of float32 (AVX512_BF16): twice micro.h's rate, and nothing has to become float32 first. */
#ifndef PC__PAIRS_H
#define PC__PAIRS_H

#include "cpu/level/micro.h"

#include "tensor/half.h"

/* Whether there is such a tile. */
#define pc__has_pairs PC__K(has_pairs)
bool pc__has_pairs(void);

/* c[row][column] (+)= sum over segments s, over k: a[row * a_row + k + s * a_segment]
 *                                                 * b[(k / 2 * b_k + s * b_segment + column) * 2 + k % 2]
 * for a whole number of vectors of columns. */
typedef struct pair_tile {
    int64_t segments, k;
    const pc_bf16 *a;
    int64_t a_row, a_segment;
    const uint32_t *b; /* pairs, the second one 0 where k ends with a first one */
    int64_t b_k, b_segment;
    float *c;
    int64_t c_row;
    bool by_vectors; /* even where there are matrix registers */
} pair_tile;

/* Two numbers that lie so far apart; or the first beside 0. */
static inline uint32_t pair_of(const pc_bf16 *first, int64_t apart, bool both)
{
    return first->bits | (both ? (uint32_t)first[apart].bits << 16 : 0);
}

/* Any number of rows. */
#define pair_rows_run PC__K(pair_rows_run)
void pair_rows_run(pair_tile *t, int64_t rows, int vectors);

/* pairs_tiles.c: the same where the processor has matrix registers: ten times the rate. */
#define pair_tiles_there PC__K(pair_tiles_there)
bool pair_tiles_there(void);
#define pair_tiles_run PC__K(pair_tiles_run)
void pair_tiles_run(pair_tile *t, int64_t rows, int vectors);

/* values[row][column] = sum over k: a[row * a_row + k] * b[column * b_column + k], for up to PAIR_DOT_ROWS rows and
 * PAIR_DOT_COLUMNS columns, which lie so many apart in values. */
#define PAIR_DOT_ROWS 4
#define PAIR_DOT_COLUMNS 6

typedef struct pair_dot {
    int64_t k;
    const pc_bf16 *a, *b;
    int64_t a_row, b_column;
    float *values;
    int64_t value_row;
} pair_dot;

#define pair_dot_run PC__K(pair_dot_run)
void pair_dot_run(const pair_dot *d, int64_t rows, int64_t columns);

/* Rows of B where they lie, for few rows of A: sums += the sum over `pairs` pairs of b's rows of a[pair] times them, columns in an
 * order of their own, `columns` rounded up to 2 W of them. The last row is NULL where it is left out. */
#define PAIR_FEW 4 /* pairs that are fast */

typedef struct pair_few {
    int64_t pairs, columns;
    const uint32_t *a;
    const pc_bf16 *const *b; /* [2 * pairs]: rows */
    float *sums;
} pair_few;

#define pair_few_run PC__K(pair_few_run)
void pair_few_run(const pair_few *f);

/* Such sums in order, `columns` of them. */
#define pair_few_order PC__K(pair_few_order)
void pair_few_order(float *to, const float *sums, int64_t columns);

/* pairs_narrow.c: c[place][output], rounded as by pair_store, = bias + sum over segments s, over k: a[place * a_row + k + s * a_segment]
 * * b[s][k / 2][output][k % 2], or 0 where that is below 0 and `relu`. `together` places share a vector. */
typedef struct pair_narrow {
    int64_t segments, k, a_row, a_segment, outputs, together;
    const uint32_t *b; /* [segments][pairs][W], of each of these places */
    const float *bias; /* [W], the same */
    bool relu;
    uint16_t at[2 * W]; /* where each lane's first pair is behind `a` */
} pair_narrow;

/* How many can; below 1: no tile of this kind. */
#define pair_narrow_together PC__K(pair_narrow_together)
int64_t pair_narrow_together(int64_t k, int64_t a_row, int64_t outputs);

/* b and bias of the first place: of all; and `at`. */
#define pair_narrow_spread PC__K(pair_narrow_spread)
void pair_narrow_spread(pair_narrow *n, uint32_t *b, uint32_t *bias);

#define pair_narrow_run PC__K(pair_narrow_run)
void pair_narrow_run(const pair_narrow *n, const pc_bf16 *a, pc_bf16 *c, int64_t places);

/* n sums, rounded: to the bits of pc__bf16_of, but that denormals are zero. */
#define pair_store PC__K(pair_store)
void pair_store(pc_bf16 *to, const float *from, int64_t n);

#endif
