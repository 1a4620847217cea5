/* gemm_work.h: what tasks of gemm.c's products do. Two ways: columns_run broadcasts elements of A against vectors of B's rows
 * (packed where that pays), dots_run multiplies vectors that run along k. */
#ifndef PC__GEMM_WORK_H
#define PC__GEMM_WORK_H

#include "cpu/level/compute.h"
#include "cpu/level/gemm_dot.h"
#include "cpu/level/micro.h"

#define K_BLOCK 192        /* a packed panel of TILE_WIDTH columns stays in the first-level cache */
#define PANELS_BYTES 32768 /* packed panels that stay in the first-level cache all together */
#define ROW_BLOCK 96       /* rows of A against which a panel is reused before the next one comes */

INLINE int64_t pieces(int64_t n, int64_t step)
{
    return (n + step - 1) / step;
}

INLINE const real *at_a(const pc__gemm *g, int64_t row, int64_t k)
{
    return (const real *)g->a + row * g->a_rs + k * g->a_cs;
}

INLINE const real *at_b(const pc__gemm *g, int64_t k, int64_t column)
{
    return (const real *)g->b + k * g->b_rs + column * g->b_cs;
}

INLINE real *at_c(const pc__gemm *g, int64_t row, int64_t column)
{
    return (real *)g->c + row * g->c_rs + column * g->c_cs;
}

/* Elements of k that are packed at once. */
INLINE int64_t k_block(const pc__gemm *g)
{
    return PC__MIN(K_BLOCK, g->k);
}

/* Bias and activation over finished values that lie side by side. */
#define finish PC__R(gemm_finish)
void finish(const pc__gemm *g, real *values, int64_t column, int64_t columns);

/* B packed for all tasks: of columns from `first` on, blocks of k one behind the other, so many values apart. */
typedef struct packed_b {
    const real *values; /* NULL: each task packs for itself */
    int64_t first, apart;
} packed_b;

/* Whether columns_run packs B for so many rows and columns, and a block of it: panels[panel][k][width]. */
#define columns_pack PC__R(gemm_columns_pack)
#define pack_block PC__R(gemm_pack_block)
bool columns_pack(const pc__gemm *g, int64_t rows, int64_t columns);
void pack_block(const pc__gemm *g, int64_t k0, int64_t column, int64_t columns, real *panels);

/* C for rows [row, row + rows) and columns [column, column + columns). Scratch holds k_block values for each of the columns,
 * rounded up to TILE_WIDTH, where B is not packed already. */
#define columns_run PC__R(gemm_columns_run)
void columns_run(const pc__gemm *g, int64_t row, int64_t rows, int64_t column, int64_t columns, const packed_b *packed,
                 real *scratch);

/* The same for operands that both run along k. Scratch holds the sums: DOT_ROWS x DOT_COLUMNS for each tile of such. */
#define dots_run PC__R(gemm_dots_run)
void dots_run(const pc__gemm *g, int64_t row, int64_t rows, int64_t column, int64_t columns, vec *scratch);

/* The same for a C of one column. */
#define column_run PC__R(gemm_column_run)
void column_run(const pc__gemm *g, int64_t row, int64_t rows);

/* The same where k is COLUMN_SHORT at most, and not 0: rows of A are turned, so that a vector is of neighbours in C. The bits are
 * those of columns_run. */
enum { COLUMN_SHORT = 15 };
#define column_turned PC__R(gemm_column_turned)
void column_turned(const pc__gemm *g, int64_t row, int64_t rows);

#endif
