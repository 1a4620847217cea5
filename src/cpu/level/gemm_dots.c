/* gemm_dots.c: products whose operands both run along k. */
#include "cpu/level/gemm_work.h"
#include "cpu/level/turn.h"

#define DOT_K_BLOCK 1024 /* elements of k for which rows of A and B stay in the first-level cache */
#define COLUMN_ROWS 4    /* rows that are multiplied by one column together */

/* Finished values of a tile, from their vectors of partial sums. */
static void dots_finish(const pc__gemm *g, int64_t row, int64_t rows, int64_t column, int64_t columns, const vec *sums)
{
    for (int64_t r = 0; r < rows; r++, sums += DOT_COLUMNS) {
        real values[DOT_COLUMNS], *c = at_c(g, row + r, column);
        for (int64_t j = 0; j < columns; j++)
            values[j] = vector_sum(&sums[j]) + (g->accumulate ? c[j * g->c_cs] : 0);
        if (g->bias || g->activation != PC__ACT_NONE)
            finish(g, values, column, columns);
        for (int64_t j = 0; j < columns; j++)
            c[j * g->c_cs] = values[j];
    }
}

/* Blocks of k are outermost: the block of A stays in the second-level
 * cache for all columns, that of B in the first-level cache for all rows. The sums wait in scratch meanwhile. */
void dots_run(const pc__gemm *g, int64_t row, int64_t rows, int64_t column, int64_t columns, vec *scratch)
{
    const int64_t whole = g->k / W * W, size = DOT_ROWS * DOT_COLUMNS;
    const int64_t down = pieces(rows, DOT_ROWS), across = pieces(columns, DOT_COLUMNS);
    const int64_t step = round_up(pieces(whole, pieces(whole, DOT_K_BLOCK)), W);
    for (int64_t k0 = 0; k0 < whole; k0 += step)
        for (int64_t j = 0; j < across; j++)
            for (int64_t i = 0; i < down; i++) {
                const bool last = k0 + step >= whole;
                const int64_t r = i * DOT_ROWS, some_rows = PC__MIN(DOT_ROWS, rows - r);
                const int64_t c = j * DOT_COLUMNS, some_columns = PC__MIN(DOT_COLUMNS, columns - c);
                dot d = {.k = PC__MIN(step, whole - k0),
                         .rest = last ? g->k - whole : 0,
                         .a = at_a(g, row + r, k0),
                         .a_row = g->a_rs,
                         .b = at_b(g, k0, column + c),
                         .b_column = g->b_cs,
                         .sums = scratch + (step < whole ? (j * down + i) * size : 0),
                         .add = k0 > 0};
                dot_functions[some_rows][some_columns](&d);
                if (last)
                    dots_finish(g, row + r, some_rows, column + c, some_columns, d.sums);
            }
}

/* Sums of `count` rows against one column. */
INLINE void column_sums(const pc__gemm *g, int64_t row, const int count, real *values)
{
    const int64_t whole = g->k / W * W;
    const real *a = at_a(g, row, 0), *b = g->b;
    vec sum[COLUMN_ROWS];
    UNROLL for (int r = 0; r < count; r++) sum[r] = (vec){0};
    for (int64_t k = 0; k < whole; k += W)
        UNROLL for (int r = 0; r < count; r++) sum[r] += LOAD(a + r * g->a_rs + k) * LOAD(b + k);
    if (whole < g->k) {
        const lanes there = last_lanes(g->k - whole);
        const vec right = where(there, LOAD(b + g->k - W));
        UNROLL for (int r = 0; r < count; r++) sum[r] += where(there, LOAD(a + r * g->a_rs + g->k - W)) * right;
    }
    if (count == COLUMN_ROWS)
        four_sums(sum, values);
    else
        UNROLL for (int r = 0; r < count; r++) values[r] = vector_sum(&sum[r]);
}

void column_run(const pc__gemm *g, int64_t row, int64_t rows)
{
    for (int64_t r = row, count; r < row + rows; r += count) {
        real values[COLUMN_ROWS];
        count = row + rows - r >= COLUMN_ROWS ? COLUMN_ROWS : 1;
        if (count > 1)
            column_sums(g, r, COLUMN_ROWS, values);
        else
            column_sums(g, r, 1, values);
        for (int64_t i = 0; i < count; i++) {
            real *c = at_c(g, r + i, 0);
            if (g->accumulate)
                values[i] += *c;
            if (g->bias || g->activation != PC__ACT_NONE)
                finish(g, &values[i], 0, 1);
            *c = values[i];
        }
    }
}

void column_turned(const pc__gemm *g, int64_t row, int64_t rows)
{
    enum { TURNED = 2048 };
    real turned[TURNED], values[TURNED];
    const int64_t size = sizeof(real), step = TURNED / g->k / W * W;
    for (int64_t r = row, count; r < row + rows; r += count) {
        count = PC__MIN(row + rows - r, step);
        pc__turn((char *)turned, step * size, (const char *)at_a(g, r, 0), g->a_rs * size, count, g->k, sizeof(real));
        for (int64_t i = 0; i < count; i += W) {
            vec sum = {0};
            for (int64_t k = 0; k < g->k; k++)
                sum += LOAD(turned + k * step + i) * *at_b(g, k, 0);
            AT(values + i) = sum;
        }
        for (int64_t i = 0; g->accumulate && i < count; i++)
            values[i] += *at_c(g, r + i, 0);
        for (int64_t i = 0; g->bias && i < count; i++)
            values[i] += *(const real *)g->bias;
        if (g->activation != PC__ACT_NONE)
            activate(g->activation, values, count);
        if (g->c_rs == 1)
            memcpy(at_c(g, r, 0), values, (size_t)(count * size));
        for (int64_t i = 0; g->c_rs != 1 && i < count; i++)
            *at_c(g, r + i, 0) = values[i];
    }
}
