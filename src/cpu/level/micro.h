/* micro.h: the inner loop that everything heavy here is made of, cut to the number of registers of the level: there is one
 * of every tile size in use, picked from a table. */
#ifndef PC__MICRO_H
#define PC__MICRO_H

#include "cpu/level/compute.h"
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

/* c[row][column] (+)= sum over planes p, segments s, k: a[row * a_row + k * a_k + s * a_segment + p * a_plane]
 *                                                      * b[k * b_k + s * b_segment + p * b_plane + column]
 * for a whole number of vectors of columns. */
typedef struct tile {
    int64_t planes, segments, k;
    const real *a;
    int64_t a_row, a_k, a_segment, a_plane;
    const real *b;
    int64_t b_k, b_segment, b_plane;
    real *c;
    int64_t c_row;
    bool add;
} tile;

typedef void tile_function(const tile *t);

/* By vectors and rows: micro.c. */
#define tile_functions PC__R(tile_functions)
extern tile_function *const tile_functions[TILE_VECTORS + 1][TILE_ROWS_MAX + 1];

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
