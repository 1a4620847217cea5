/* micro.c: the inner loop of micro.h in every tile size, written with compiler vectors. */
#include "cpu/level/micro.h"

INLINE void tile_run(const tile *t, const int rows, const int vectors)
{
    vec sum[TILE_ROWS_MAX][TILE_VECTORS];
    const int64_t a_row = t->a_row, a_k = t->a_k, b_k = t->b_k;
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = (vec){0};
    for (int64_t p = 0; p < t->planes; p++)
        for (int64_t s = 0; s < t->segments; s++) {
            const real *a = t->a + p * t->a_plane + s * t->a_segment, *b = t->b + p * t->b_plane + s * t->b_segment;
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
tile_function *const tile_functions[TILE_VECTORS + 1][TILE_ROWS_MAX + 1] = {
    {NULL}, {NAMES_TO_12(1)}, {NAMES_TO_12(2)}, {NAMES_TO_8(3)}, {NAMES_TO_6(4)}};
#else
TILES_TO_8(1)
TILES_TO_6(2)
tile_function *const tile_functions[TILE_VECTORS + 1][TILE_ROWS_MAX + 1] = {{NULL}, {NAMES_TO_8(1)}, {NAMES_TO_6(2)}};
#endif
