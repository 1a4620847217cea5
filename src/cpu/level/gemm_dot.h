/* gemm_dot.h: the inner loop for products whose operands both run along k in memory: sums of vector products, added
 * up across the vector at the end, nothing to be packed. */
#ifndef PC__GEMM_DOT_H
#define PC__GEMM_DOT_H

#include "cpu/level/real.h"

#if PC__VECTOR_REGISTERS == 32
#define DOT_ROWS 4
#define DOT_COLUMNS 6
#else
#define DOT_ROWS 3
#define DOT_COLUMNS 3
#endif

/* sums[row][column] (vectors of partial sums) (+)= a[row][k..] * b[column][k..] for k below a multiple of W, and `rest` more,
 * which are the last of at least W. */
typedef struct dot {
    int64_t k, rest;
    const real *a, *b;
    int64_t a_row, b_column;
    vec *sums; /* [DOT_ROWS][DOT_COLUMNS] */
    bool add;  /* to what is there */
} dot;

/* The last n lanes. */
INLINE lanes last_lanes(int64_t n)
{
    static const pc__lane_int steps[32] = {[16] = -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    return *(const lanes_in_memory *)(steps + 16 - W + n);
}

INLINE void dot_run(const dot *d, const int rows, const int columns)
{
    vec sum[DOT_ROWS][DOT_COLUMNS];
    if (d->add)
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int c = 0; c < columns; c++) sum[r][c] =
            d->sums[r * DOT_COLUMNS + c];
    else
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int c = 0; c < columns; c++) sum[r][c] = (vec){0};
    const real *a = d->a, *b = d->b;
    const int64_t a_row = d->a_row, b_column = d->b_column;
    for (int64_t k = d->k; k > 0; k -= W, a += W, b += W) {
        vec right[DOT_COLUMNS];
        UNROLL for (int c = 0; c < columns; c++) right[c] = LOAD(b + c * b_column);
        if (rows == 1) /* memory is the limit: the next columns are on their way meanwhile */
            UNROLL for (int c = 0; c < columns; c++) __builtin_prefetch(b + (columns + c) * b_column);
        UNROLL for (int r = 0; r < rows; r++)
        {
            const vec left = LOAD(a + r * a_row);
            UNROLL for (int c = 0; c < columns; c++) sum[r][c] += left * right[c];
        }
    }
    if (d->rest) {
        const lanes there = last_lanes(d->rest);
        vec right[DOT_COLUMNS];
        a += d->rest - W, b += d->rest - W;
        UNROLL for (int c = 0; c < columns; c++) right[c] = where(there, LOAD(b + c * b_column));
        UNROLL for (int r = 0; r < rows; r++)
        {
            const vec left = where(there, LOAD(a + r * a_row));
            UNROLL for (int c = 0; c < columns; c++) sum[r][c] += left * right[c];
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int c = 0; c < columns; c++) d->sums[r * DOT_COLUMNS + c] =
        sum[r][c];
}

typedef void dot_function(const dot *d);

#define DOT(rows, columns)                                                                                             \
    static void dot_##rows##x##columns(const dot *d)                                                                   \
    {                                                                                                                  \
        dot_run(d, rows, columns);                                                                                     \
    }
#if PC__VECTOR_REGISTERS == 32
#define DOTS(rows) DOT(rows, 1) DOT(rows, 2) DOT(rows, 3) DOT(rows, 4) DOT(rows, 5) DOT(rows, 6)
#define NAMES(r)                                                                                                       \
    {                                                                                                                  \
        NULL, dot_##r##x1, dot_##r##x2, dot_##r##x3, dot_##r##x4, dot_##r##x5, dot_##r##x6                             \
    }
DOTS(1)
DOTS(2)
DOTS(3)
DOTS(4)
static dot_function *const dot_functions[DOT_ROWS + 1][DOT_COLUMNS + 1] = {
    {NULL}, NAMES(1), NAMES(2), NAMES(3), NAMES(4)};
#else
#define DOTS(rows) DOT(rows, 1) DOT(rows, 2) DOT(rows, 3)
#define NAMES(r)                                                                                                       \
    {                                                                                                                  \
        NULL, dot_##r##x1, dot_##r##x2, dot_##r##x3                                                                    \
    }
DOTS(1)
DOTS(2)
DOTS(3)
static dot_function *const dot_functions[DOT_ROWS + 1][DOT_COLUMNS + 1] = {{NULL}, NAMES(1), NAMES(2), NAMES(3)};
#endif
#undef DOT
#undef DOTS
#undef NAMES

#endif
