/* gemm_few.c: the loops of gemm_few.h. A panel of B is as wide as registers allow for three rows, so that much of what is read
 * lies side by side, and is in the first-level cache for the next three. */
#include "cpu/level/gemm_few.h"

enum {
    ROWS = 3,
    VECTORS = 4,
    OF_ONE_ROW = 8,  /* vectors, likewise */
    NARROW_ROWS = 4, /* of less than a vector */
};

INLINE void panel(const few_product *f, int64_t row, int64_t at, const int rows, const int vectors)
{
    const int64_t a_row = f->a_row, a_k = f->a_k, b_row = f->b_row;
    const real *a = f->a + row * a_row, *b = f->b + at;
    real *c = f->c + row * f->c_row + at;
    vec sum[ROWS][OF_ONE_ROW];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = (vec){0};
    for (int64_t k = f->k; k > 0; k--, a += a_k, b += b_row) {
        vec column[OF_ONE_ROW];
        UNROLL for (int v = 0; v < vectors; v++) column[v] = LOAD(b + v * W);
        UNROLL for (int r = 0; r < rows; r++)
        {
            const vec one = SPLAT(a[r * a_row]);
            UNROLL for (int v = 0; v < vectors; v++) sum[r][v] += one * column[v];
        }
    }
    if (f->add)
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) AT(c + r * f->c_row + v * W) +=
            sum[r][v];
    else
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) AT(c + r * f->c_row + v * W) =
            sum[r][v];
}

INLINE void all_rows(const few_product *f, int64_t at, const int vectors)
{
    int64_t row = 0;
    for (; f->rows - row == ROWS || f->rows - row > ROWS + 1; row += ROWS)
        panel(f, row, at, ROWS, vectors);
    for (; f->rows - row >= 2; row += 2)
        panel(f, row, at, 2, vectors);
    if (row < f->rows)
        panel(f, row, at, 1, vectors);
}

/* The last vectors lie over the ones before where the columns do not fill them. */
#define ALL_COLUMNS(all, vectors)                                                                                      \
    {                                                                                                                  \
        const int64_t n = f->columns, wide = (vectors)*W;                                                              \
        int64_t at = 0;                                                                                                \
        for (; at + wide <= n; at += wide)                                                                             \
            all(f, at, vectors);                                                                                       \
        if (n - at > 2 * W && at > 0 && !f->add) {                                                                     \
            all(f, n - wide, vectors);                                                                                 \
            return;                                                                                                    \
        }                                                                                                              \
        for (; at + 2 * W <= n; at += 2 * W)                                                                           \
            all(f, at, 2);                                                                                             \
        for (; at < n; at += W)                                                                                        \
            all(f, PC__MIN(at, n - W), 1);                                                                             \
    }

INLINE void one_row(const few_product *f, int64_t at, const int vectors)
{
    panel(f, 0, at, 1, vectors);
}

static void columns_of_one(const few_product *f)
{
    ALL_COLUMNS(one_row, OF_ONE_ROW)
}

static void columns_of_more(const few_product *f)
{
    ALL_COLUMNS(all_rows, VECTORS)
}

/* Less than a vector of columns. */
static void put_narrow(const few_product *f, int64_t row, int64_t rows, const vec *sums)
{
    const real *values = (const real *)sums;
    for (real *c = f->c + row * f->c_row; rows > 0; rows--, values += W, c += f->c_row)
        if (f->add)
            for (int64_t j = 0; j < f->columns; j++)
                c[j] += values[j];
        else
            copy_some(c, values, f->columns);
}

/* Lanes beyond the columns have what comes next in memory, or in rest[beyond][W] for the last rows of B, and are dropped. */
INLINE void narrow(const few_product *f, int64_t row, const int rows, const real *rest, int64_t beyond)
{
    const int64_t a_row = f->a_row, a_k = f->a_k;
    const real *a = f->a + row * a_row;
    vec sum[NARROW_ROWS];
    UNROLL for (int r = 0; r < rows; r++) sum[r] = (vec){0};
    for (int part = 0; part < 2; part++) {
        const real *b = part ? rest : f->b;
        const int64_t b_row = part ? W : f->b_row;
        for (int64_t k = part ? beyond : f->k - beyond; k > 0; k--, a += a_k, b += b_row) {
            const vec column = LOAD(b);
            UNROLL for (int r = 0; r < rows; r++) sum[r] += SPLAT(a[r * a_row]) * column;
        }
    }
    put_narrow(f, row, rows, sum);
}

static void narrow_rows(const few_product *f)
{
    real rest[W * W] = {0};
    const int64_t n = f->columns, beyond = PC__MIN((W - n + f->b_row - 1) / f->b_row, f->k);
    for (int64_t k = 0; k < beyond; k++)
        copy_some(rest + k * W, f->b + (f->k - beyond + k) * f->b_row, n);
    int64_t row = 0;
    for (; f->rows - row >= NARROW_ROWS; row += NARROW_ROWS)
        narrow(f, row, NARROW_ROWS, rest, beyond);
    for (; f->rows - row >= 2; row += 2)
        narrow(f, row, 2, rest, beyond);
    if (row < f->rows)
        narrow(f, row, 1, rest, beyond);
}

void few_rows(const few_product *f)
{
    if (f->columns < W)
        narrow_rows(f);
    else
        f->rows == 1 ? columns_of_one(f) : columns_of_more(f);
}
