/* micro.h: the inner loops that everything heavy here is made of, written with compiler vectors and cut to the number
 * of registers of the level. Each is instantiated for every tile size in use and picked from a table. */
#ifndef PC__MICRO_H
#define PC__MICRO_H

#include "cpu/level/real.h"

/* Largest tiles: TILE_VECTORS columns of vectors, and per number of vectors the rows that fill the registers. */
#if PC__VECTOR_REGISTERS == 32
#define TILE_VECTORS 4
#define TILE_ROWS_MAX 12
#if defined(__aarch64__) /* the compiler wants registers for all elements of a column of A */
static const int tile_rows[TILE_VECTORS + 1] = {0, 12, 8, 6, 5};
#else
static const int tile_rows[TILE_VECTORS + 1] = {0, 12, 12, 8, 6};
#endif
#else
#define TILE_VECTORS 2
#define TILE_ROWS_MAX 8
static const int tile_rows[TILE_VECTORS + 1] = {0, 8, 6};
#endif
#define TILE_WIDTH (TILE_VECTORS * W)
#define TILE_SIZE (TILE_ROWS_MAX * TILE_WIDTH)

/* c[row][column] (+)= sum over segments s, over k: a[row * a_row + k * a_k + s * a_segment]
 *                                                 * b[k * b_k + s * b_segment + column]
 * for a whole number of vectors of columns. */
typedef struct tile {
    int64_t segments, k;
    const real *a;
    int64_t a_row, a_k, a_segment;
    const real *b;
    int64_t b_k, b_segment;
    real *c;
    int64_t c_row;
    bool add;
} tile;

INLINE void tile_run(const tile *t, const int rows, const int vectors)
{
    vec sum[TILE_ROWS_MAX][TILE_VECTORS];
    const int64_t a_row = t->a_row, a_k = t->a_k, b_k = t->b_k;
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = (vec){0};
    for (int64_t s = 0; s < t->segments; s++) {
        const real *a = t->a + s * t->a_segment, *b = t->b + s * t->b_segment;
        for (int64_t k = t->k; k > 0; k--, a += a_k, b += b_k) {
            vec column[TILE_VECTORS];
            UNROLL for (int v = 0; v < vectors; v++) column[v] = LOAD(b + v * W);
            UNROLL for (int r = 0; r < rows; r++)
            {
                const vec row = SPLAT(a[r * a_row]);
                UNROLL for (int v = 0; v < vectors; v++) sum[r][v] += row * column[v];
            }
        }
    }
    if (t->add)
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++)
            AT(t->c + r * t->c_row + v * W) += sum[r][v];
    else
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) AT(t->c + r * t->c_row + v * W) =
            sum[r][v];
}

typedef void tile_function(const tile *t);

#define TILE(rows, vectors)                                                                                            \
    static void tile_##rows##x##vectors(const tile *t)                                                                 \
    {                                                                                                                  \
        tile_run(t, rows, vectors);                                                                                    \
    }
#define TILES_TO_6(vectors)                                                                                            \
    TILE(1, vectors) TILE(2, vectors) TILE(3, vectors) TILE(4, vectors) TILE(5, vectors) TILE(6, vectors)
#define TILES_TO_8(vectors)                                                                                            \
    TILES_TO_6(vectors)                                                                                                \
    TILE(7, vectors) TILE(8, vectors)
#define TILES_TO_12(vectors)                                                                                           \
    TILES_TO_8(vectors)                                                                                                \
    TILE(9, vectors) TILE(10, vectors) TILE(11, vectors) TILE(12, vectors)
#define NAMES_TO_6(v) NULL, tile_1x##v, tile_2x##v, tile_3x##v, tile_4x##v, tile_5x##v, tile_6x##v
#define NAMES_TO_8(v) NAMES_TO_6(v), tile_7x##v, tile_8x##v
#define NAMES_TO_12(v) NAMES_TO_8(v), tile_9x##v, tile_10x##v, tile_11x##v, tile_12x##v

#if PC__VECTOR_REGISTERS == 32
TILES_TO_12(1)
TILES_TO_12(2)
TILES_TO_8(3)
TILES_TO_6(4)
static tile_function *const tile_functions[TILE_VECTORS + 1][TILE_ROWS_MAX + 1] = {
    {NULL}, {NAMES_TO_12(1)}, {NAMES_TO_12(2)}, {NAMES_TO_8(3)}, {NAMES_TO_6(4)}};
#else
TILES_TO_8(1)
TILES_TO_6(2)
static tile_function *const tile_functions[TILE_VECTORS + 1][TILE_ROWS_MAX + 1] = {
    {NULL}, {NAMES_TO_8(1)}, {NAMES_TO_6(2)}};
#endif

#undef TILE
#undef TILES_TO_6
#undef TILES_TO_8
#undef TILES_TO_12
#undef NAMES_TO_6
#undef NAMES_TO_8
#undef NAMES_TO_12

/* Any number of rows, in tiles of about the same height: short ones do not keep the multipliers busy. The tile moves on
 * itself: a copy would wait for the stores that made it. */
static inline void tile_rows_run(tile *t, int64_t rows, int vectors)
{
    const int64_t tiles = (rows + tile_rows[vectors] - 1) / tile_rows[vectors];
    const int64_t step = tiles > 1 ? (rows + tiles - 1) / tiles : rows;
    for (; rows > 0; rows -= step, t->a += step * t->a_row, t->c += step * t->c_row)
        tile_functions[vectors][PC__MIN(rows, step)](t);
}

#endif
