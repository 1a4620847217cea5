/* gemm_few.h: products of few rows by rows of B where they lie: one call goes along all columns, whose sums are in registers. */
#ifndef PC__GEMM_FEW_H
#define PC__GEMM_FEW_H

#include "cpu/level/compute.h"
#include "cpu/level/real.h"

/* c[row][column] (+)= sum over k: a[row * a_row + k * a_k] * b[k * b_row + column] for `columns` columns; where W or more are
 * added to C, whole vectors of them. Below W rows of B are at least so far apart. */
typedef struct few_product {
    int64_t rows, columns, k;
    const real *a;
    int64_t a_row, a_k;
    const real *b;
    int64_t b_row;
    real *c;
    int64_t c_row;
    bool add;
} few_product;

#define few_rows PC__R(few_rows)
void few_rows(const few_product *f);

#endif
