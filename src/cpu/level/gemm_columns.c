/* gemm_columns.c: products of elements of A with vectors of B's rows, by panels of columns. */
#include "cpu/level/gemm_few.h"
#include "cpu/level/gemm_work.h"
#include "cpu/level/turn.h"

#define FEW_ROWS 12         /* rows that read B where it lies, panel by panel */
#define CLOSE 3072          /* numbers of C that are finished in the first-level cache, */
#define TILES_MOST 24       /* or of so many tiles one below the other */
#define SHORT_K 96          /* for more rows */
#define TURNED_K 32         /* for a B that is turned first */
#define SHORT_K_APART 65536 /* bytes: k times the power of 2 that divides the step between rows */

/* Columns of the panel at column j of `columns`, and its width: whole vectors. */
static int64_t panel_columns(int64_t j, int64_t columns)
{
    return PC__MIN(TILE_WIDTH, columns - j);
}

static int panel_vectors(int64_t j, int64_t columns)
{
    return (int)((panel_columns(j, columns) + W - 1) / W);
}

/* out[panel][k][width] = a block of B from its rows, in the order of memory; columns past the end zero. */
static void pack_rows(const pc__gemm *g, int64_t k0, int64_t kc, int64_t column, int64_t columns, real *out)
{
    for (int64_t k = 0; k < kc; k++) {
        const real *from = at_b(g, k0 + k, column);
        for (int64_t j = 0; j < columns; j += TILE_WIDTH) {
            const int64_t count = panel_columns(j, columns), width = panel_vectors(j, columns) * W;
            real *to = out + j * k_block(g) + k * width;
            copy_some(to, from + j, count);
            for (int64_t i = count; i < width; i++)
                to[i] = 0;
        }
    }
}

/* The same for any strides, down the columns. */
static void pack_columns(const pc__gemm *g, int64_t k0, int64_t kc, int64_t column, int64_t columns, real *out)
{
    for (int64_t j = 0; j < columns; j += TILE_WIDTH) {
        const int64_t count = panel_columns(j, columns), width = panel_vectors(j, columns) * W;
        real *panel = out + j * k_block(g);
        if (g->b_rs == 1) {
            pc__turn((char *)panel, width * (int64_t)sizeof(real), (const char *)at_b(g, k0, column + j),
                     g->b_cs * (int64_t)sizeof(real), count, kc, sizeof(real));
            for (int64_t k = 0; count < width && k < kc; k++)
                for (int64_t i = count; i < width; i++)
                    panel[k * width + i] = 0;
            continue;
        }
        for (int64_t k = 0; k < kc; k += W)
            for (int64_t i = 0; i < width; i++) {
                const real *from = at_b(g, k0 + k, column + j + i);
                for (int64_t part = 0; part < PC__MIN(kc - k, W); part++)
                    panel[(k + part) * width + i] = i < count ? from[part * g->b_rs] : 0;
            }
    }
}

void pack_block(const pc__gemm *g, int64_t k0, int64_t column, int64_t columns, real *panels)
{
    const int64_t kc = PC__MIN(K_BLOCK, g->k - k0);
    if (g->b_cs == 1)
        pack_rows(g, k0, kc, column, columns, panels);
    else
        pack_columns(g, k0, kc, column, columns, panels);
}

void finish(const pc__gemm *g, real *values, int64_t column, int64_t columns)
{
    const real *bias = g->bias;
    if (bias)
        for (int64_t j = 0; j < columns; j++)
            values[j] += bias[column + j];
    if (g->activation != PC__ACT_NONE)
        activate(g->activation, values, columns);
}

/* The same for rows of C, several at once where they are narrow and side by side. */
static void finish_rows(const pc__gemm *g, int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    enum { TOGETHER = 8 };
    real bias[TOGETHER * TILE_WIDTH];
    pc__gemm several = *g;
    const bool narrow = columns <= TILE_WIDTH && g->c_rs == columns && g->n == columns;
    const int64_t together = narrow ? TOGETHER : 1;
    for (int64_t i = 0; narrow && g->bias && i < together; i++)
        copy_some(bias + i * columns, g->bias, columns);
    if (narrow && g->bias)
        several.bias = bias;
    for (int64_t r = row; r < row + rows; r += together)
        finish(&several, at_c(g, r, column), column, PC__MIN(together, row + rows - r) * columns);
}

/* Rows of C that are done before they are finished: whole tiles. */
static int64_t rows_close(int64_t columns)
{
    const int64_t height = tile_rows[TILE_VECTORS], tiles = CLOSE / (height * PC__MAX(columns, 1));
    return height * PC__MAX(PC__MIN(tiles, TILES_MOST), 1);
}

/* One panel of columns times rows of A where C cannot take whole vectors: by way of a tile on the stack. */
static __attribute__((noinline)) void panel_by_copy(const pc__gemm *g, tile *t, int64_t row, int64_t rows,
                                                    int64_t column, int64_t columns, int vectors, bool last)
{
    real block[TILE_SIZE];
    const int step = tile_rows[vectors], width = vectors * W;
    const bool add = t->add, more = last && (g->bias || g->activation != PC__ACT_NONE);
    t->c = block, t->c_row = width, t->add = false;
    for (int64_t r = row; r < row + rows; r += step, t->a += step * t->a_row) {
        const int64_t count = PC__MIN(step, row + rows - r);
        tile_functions[vectors][count](t);
        for (int64_t i = 0; i < count; i++) {
            real *values = block + i * width, *c = at_c(g, r + i, column);
            if (add)
                for (int64_t j = 0; j < columns; j++)
                    values[j] = c[j * g->c_cs] + values[j];
            if (more)
                finish(g, values, column, columns);
            if (g->c_cs == 1)
                copy_some(c, values, columns);
            else
                for (int64_t j = 0; j < columns; j++)
                    c[j * g->c_cs] = values[j];
        }
    }
}

/* A panel of columns times rows of A, straight into C. */
static void panel_direct(const pc__gemm *g, tile *t, int64_t row, int64_t rows, int64_t column, int64_t columns,
                         int vectors, bool last)
{
    const int step = tile_rows[vectors];
    const bool more = last && (g->bias || g->activation != PC__ACT_NONE);
    t->c_row = g->c_rs;
    for (int64_t r = row; r < row + rows; r += step, t->a += step * t->a_row) {
        const int64_t count = PC__MIN(step, row + rows - r);
        t->c = at_c(g, r, column);
        tile_functions[vectors][count](t);
        for (int64_t i = 0; more && i < count; i++)
            finish(g, t->c + i * g->c_rs, column, columns);
    }
}

/* Rows for which a panel's whole vectors may go to C, `beyond` columns too many: where it is all of a dense C, what is
 * written beyond a row is overwritten by the next ones. */
static int64_t rows_direct(const pc__gemm *g, int64_t rows, int64_t count, int64_t beyond, bool add)
{
    if (g->c_cs == 1 && beyond == 0)
        return rows;
    const bool dense = g->c_cs == 1 && g->c_rs == count && g->n == count && !add;
    return dense ? PC__MAX(rows - pieces(beyond, count), 0) : 0;
}

/* One panel times some rows, by the way that fits. `panel` is packed, or NULL for B where it is. */
static __attribute__((noinline)) void panel_run(const pc__gemm *g, const real *panel, int64_t k0, int64_t row,
                                                int64_t rows, int64_t column, int64_t count)
{
    const int vectors = (int)((count + W - 1) / W);
    const int64_t kc = PC__MIN(K_BLOCK, g->k - k0);
    const bool last = k0 + kc >= g->k, add = g->accumulate || k0 > 0;
    tile t = {.planes = 1,
              .segments = 1,
              .k = kc,
              .a = at_a(g, row, k0),
              .a_row = g->a_rs,
              .a_k = g->a_cs,
              .b = panel ? panel : at_b(g, k0, column),
              .b_k = panel ? vectors * W : g->b_rs,
              .add = add};
    const int64_t direct = rows_direct(g, rows, count, vectors * W - count, add || !last);
    panel_direct(g, &t, row, direct, column, count, vectors, last);
    if (direct == rows)
        return;
    t.a = at_a(g, row + direct, k0);
    panel_by_copy(g, &t, row + direct, rows - direct, column, count, vectors, last);
}

/* B is read where it lies, panel by panel: by few rows, or where k is so short that a panel stays in the first-level cache.
 * Rows of B that are a large power of 2 apart compete for the same places there. */
static bool in_place(const pc__gemm *g, int64_t rows, int64_t columns)
{
    const bool adds = g->accumulate || g->k > K_BLOCK;
    const int64_t step = g->b_rs * (int64_t)sizeof(real), apart = step & -step;
    if (g->b_cs != 1 || g->c_cs != 1)
        return false;
    if (columns < W)
        return rows <= FEW_ROWS && g->b_rs >= columns;
    if (adds && columns % W)
        return false;
    return rows <= FEW_ROWS || (columns >= 4 * W && g->k <= SHORT_K && g->k * apart <= SHORT_K_APART);
}

/* Whole rows of C at once from rows of B, b_row apart; k is one block, or C is added to. The same bits as by tiles. */
static void in_place_run(const pc__gemm *g, int64_t row, int64_t rows, int64_t column, int64_t columns, const real *b,
                         int64_t b_row)
{
    const bool more = g->bias || g->activation != PC__ACT_NONE;
    const int64_t step = more && rows > FEW_ROWS ? rows_close(columns) : rows;
    for (int64_t r = row; r < row + rows; r += step) {
        const int64_t count = PC__MIN(step, row + rows - r);
        for (int64_t k0 = 0; k0 == 0 || k0 < g->k; k0 += K_BLOCK)
            few_rows(&(few_product){.rows = count,
                                    .k = PC__MIN(K_BLOCK, g->k - k0),
                                    .columns = columns,
                                    .a = at_a(g, r, k0),
                                    .a_row = g->a_rs,
                                    .a_k = g->a_cs,
                                    .b = b + k0 * b_row,
                                    .b_row = b_row,
                                    .c = at_c(g, r, column),
                                    .c_row = g->c_rs,
                                    .add = g->accumulate || k0 > 0});
        if (more)
            finish_rows(g, r, count, column, columns);
    }
}

/* The same of a small B that runs along k, turned into scratch. What is added to C are whole vectors. */
static bool is_turned(const pc__gemm *g, int64_t rows, int64_t columns)
{
    return g->b_rs == 1 && g->b_cs != 1 && g->c_cs == 1 && rows > FEW_ROWS && columns >= 4 * W && g->k <= TURNED_K &&
           g->k * columns * (int64_t)sizeof(real) <= PANELS_BYTES && !(g->accumulate && columns % W);
}

/* Few rows read B where it lies, whatever its rows' order. */
static bool packs(const pc__gemm *g, int64_t rows)
{
    return g->b_cs != 1 || rows > 2 * TILE_ROWS_MAX;
}

bool columns_pack(const pc__gemm *g, int64_t rows, int64_t columns)
{
    return packs(g, rows) && !in_place(g, rows, columns) && !is_turned(g, rows, columns);
}

/* By panels, which are reused from the first-level cache: all of them for some rows where they fit, else one for many rows. */
static void panels_run(const pc__gemm *g, int64_t row, int64_t rows, int64_t column, int64_t columns,
                       const packed_b *packed, real *scratch)
{
    const int64_t tail = columns % W ? columns / TILE_WIDTH * TILE_WIDTH : columns;
    const bool small = k_block(g) * columns * (int64_t)sizeof(real) <= PANELS_BYTES;
    const bool more = g->bias || g->activation != PC__ACT_NONE, rowwise = small && more && g->c_cs == 1;
    const bool all = columns <= TILE_WIDTH && !rowwise; /* rows, of a single panel */
    const int64_t step = !small ? ROW_BLOCK : all ? rows : rows_close(columns);
    const int64_t first = packed->values || packs(g, rows) ? 0 : tail;
    pc__gemm plain = *g;
    if (rowwise)
        plain.bias = NULL, plain.activation = PC__ACT_NONE;
    for (int64_t k0 = 0; k0 == 0 || k0 < g->k; k0 += K_BLOCK) {
        const real *panels = scratch;
        if (packed->values)
            panels = packed->values + k0 / K_BLOCK * packed->apart + (column - packed->first) * k_block(g);
        else
            pack_block(g, k0, column + first, columns - first, scratch + first * k_block(g));
        for (int64_t r = row; r < row + rows; r += step) {
            const int64_t count = PC__MIN(step, row + rows - r);
            for (int64_t j = 0; j < columns; j += TILE_WIDTH)
                panel_run(&plain, j >= first ? panels + j * k_block(g) : NULL, k0, r, count, column + j,
                          panel_columns(j, columns));
            if (rowwise && k0 + K_BLOCK >= g->k)
                finish_rows(g, r, count, column, columns);
        }
    }
}

void columns_run(const pc__gemm *g, int64_t row, int64_t rows, int64_t column, int64_t columns, const packed_b *packed,
                 real *scratch)
{
    const int64_t size = sizeof(real);
    if (!packed->values && in_place(g, rows, columns)) {
        in_place_run(g, row, rows, column, columns, at_b(g, 0, column), g->b_rs);
    } else if (!packed->values && is_turned(g, rows, columns)) {
        pc__turn((char *)scratch, columns * size, (const char *)at_b(g, 0, column), g->b_cs * size, columns, g->k,
                 sizeof(real));
        in_place_run(g, row, rows, column, columns, scratch, columns);
    } else {
        panels_run(g, row, rows, column, columns, packed, scratch);
    }
}
