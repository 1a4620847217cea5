/* gemm.c: matrix products of any strides. Two ways: columns() broadcasts elements of A against vectors of B's rows
 * (packed where that pays), dots() multiplies vectors that run along k. */
#include "cpu/level/compute.h"
#include "cpu/level/gemm_dot.h"
#include "cpu/level/micro.h"
#include "cpu/parallel.h"

#define K_BLOCK 192          /* a packed panel of TILE_WIDTH columns stays in the first-level cache */
#define ROW_BLOCK 96         /* rows of A against which a panel is reused before the next one comes */
#define COLUMNS_MOST 256     /* columns packed at once: K_BLOCK x COLUMNS_MOST fit the second-level cache */
#define ROWS_MOST 512        /* rows of one task */
#define DOT_ROW_BLOCK 32     /* rows whose partial sums wait while a block of B is read */
#define DOT_K_BLOCK 1024     /* elements of k for which rows of A and B stay in the first-level cache */
#define CHUNKS_MOST 16       /* pieces of a long k */
#define CHUNK_K 1024         /* the shortest such piece */
#define CHUNKED_OUTPUT 16384 /* outputs above which there are tiles enough for all cores */

static const real *at_a(const pc__gemm *g, int64_t row, int64_t k)
{
    return (const real *)g->a + row * g->a_rs + k * g->a_cs;
}

static const real *at_b(const pc__gemm *g, int64_t k, int64_t column)
{
    return (const real *)g->b + k * g->b_rs + column * g->b_cs;
}

static real *at_c(const pc__gemm *g, int64_t row, int64_t column)
{
    return (real *)g->c + row * g->c_rs + column * g->c_cs;
}

/* out[k][width] = a block of B, columns past the end zero. */
static void pack(const pc__gemm *g, int64_t k0, int64_t kc, int64_t column, int64_t columns, int64_t width, real *out)
{
    if (columns < width)
        for (int64_t k = 0; k < kc; k++)
            memset(out + k * width + columns, 0, (size_t)(width - columns) * sizeof(real));
    if (g->b_cs == 1) {
        for (int64_t k = 0; k < kc; k++)
            memcpy(out + k * width, at_b(g, k0 + k, column), (size_t)columns * sizeof(real));
        return;
    }
    for (int64_t k = 0; k < kc; k += W)
        for (int64_t j = 0; j < columns; j++) {
            const real *from = at_b(g, k0 + k, column + j);
            for (int64_t i = 0; i < PC__MIN(kc - k, W); i++)
                out[(k + i) * width + j] = from[i * g->b_rs];
        }
}

/* Bias and activation over finished values that lie side by side. */
static void finish(const pc__gemm *g, real *values, int64_t column, int64_t columns)
{
    const real *bias = g->bias;
    if (bias)
        for (int64_t j = 0; j < columns; j++)
            values[j] += bias[column + j];
    activate(g->activation, values, columns);
}

/* One panel of columns times rows of A where C cannot take whole vectors: by way of a tile on the stack. */
static void panel_by_copy(const pc__gemm *g, tile t, int64_t row, int64_t rows, int64_t column, int64_t columns,
                          int vectors, bool last)
{
    real block[TILE_SIZE];
    const int step = tile_rows[vectors], width = vectors * W;
    const bool add = t.add;
    t.c = block, t.c_row = width, t.add = false;
    for (int64_t r = row; r < row + rows; r += step, t.a += step * t.a_row) {
        const int64_t count = PC__MIN(step, row + rows - r);
        tile_functions[vectors][count](&t);
        for (int64_t i = 0; i < count; i++) {
            real *values = block + i * width, *c = at_c(g, r + i, column);
            if (add)
                for (int64_t j = 0; j < columns; j++)
                    values[j] = c[j * g->c_cs] + values[j];
            if (last)
                finish(g, values, column, columns);
            for (int64_t j = 0; j < columns; j++)
                c[j * g->c_cs] = values[j];
        }
    }
}

/* A panel of columns times rows of A, straight into C. */
static void panel_direct(const pc__gemm *g, tile t, int64_t row, int64_t rows, int64_t column, int vectors, bool last)
{
    const int step = tile_rows[vectors], width = vectors * W;
    const bool more = last && (g->bias || g->activation != PC__ACT_NONE);
    t.c_row = g->c_rs;
    for (int64_t r = row; r < row + rows; r += step, t.a += step * t.a_row) {
        const int64_t count = PC__MIN(step, row + rows - r);
        t.c = at_c(g, r, column);
        tile_functions[vectors][count](&t);
        for (int64_t i = 0; more && i < count; i++)
            finish(g, t.c + i * g->c_rs, column, width);
    }
}

/* Elements of k that are packed at once, and room for the panels of `columns` columns. */
static int64_t k_block(const pc__gemm *g)
{
    return PC__MIN(K_BLOCK, g->k);
}

static int64_t scratch_size(const pc__gemm *g, int64_t columns)
{
    return k_block(g) * round_up(PC__MIN(columns, g->n), TILE_WIDTH);
}

/* C for rows [row, row + rows) and columns [column, column + columns); scratch is as scratch_size says. */
static void columns_run(const pc__gemm *g, int64_t row, int64_t rows, int64_t column, int64_t columns, real *scratch)
{
    const bool packing = g->b_cs != 1 || rows > 2 * TILE_ROWS_MAX;
    for (int64_t k0 = 0; k0 == 0 || k0 < g->k; k0 += K_BLOCK) {
        const int64_t kc = PC__MIN(K_BLOCK, g->k - k0);
        const bool last = k0 + kc >= g->k;
        for (int64_t r = row; r < row + rows; r += ROW_BLOCK)
            for (int64_t j = 0; j < columns; j += TILE_WIDTH) {
                const int64_t count = PC__MIN(TILE_WIDTH, columns - j), here = PC__MIN(ROW_BLOCK, row + rows - r);
                const int vectors = (int)((count + W - 1) / W);
                const bool copied = packing || count < vectors * W;
                real *panel = scratch + j * k_block(g);
                if (copied && r == row)
                    pack(g, k0, kc, column + j, count, vectors * W, panel);
                tile t = {.segments = 1,
                          .k = kc,
                          .a = at_a(g, r, k0),
                          .a_row = g->a_rs,
                          .a_k = g->a_cs,
                          .b = copied ? panel : at_b(g, k0, column + j),
                          .b_k = copied ? vectors * W : g->b_rs,
                          .add = g->accumulate || k0 > 0};
                if (g->c_cs == 1 && count == vectors * W)
                    panel_direct(g, t, r, here, column + j, vectors, last);
                else
                    panel_by_copy(g, t, r, here, column + j, count, vectors, last);
            }
    }
}

/* C for up to DOT_ROW_BLOCK rows and DOT_COLUMNS columns. */
static void dots_run(const pc__gemm *g, int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    vec sums[DOT_ROW_BLOCK / DOT_ROWS + 1][DOT_ROWS * DOT_COLUMNS];
    const int64_t whole = g->k / W * W, tiles = (rows + DOT_ROWS - 1) / DOT_ROWS;
    memset(sums, 0, (size_t)tiles * sizeof(sums[0]));
    for (int64_t k0 = 0; k0 < whole; k0 += DOT_K_BLOCK)
        for (int64_t i = 0; i < tiles; i++) {
            dot d = {.k = PC__MIN(DOT_K_BLOCK, whole - k0),
                     .a = at_a(g, row + i * DOT_ROWS, k0),
                     .a_row = g->a_rs,
                     .b = at_b(g, k0, column),
                     .b_column = g->b_cs,
                     .sums = sums[i]};
            dot_functions[PC__MIN(DOT_ROWS, rows - i * DOT_ROWS)][columns](&d);
        }
    for (int64_t i = 0; i < rows; i++) {
        real values[DOT_COLUMNS];
        real *c = at_c(g, row + i, column);
        for (int64_t j = 0; j < columns; j++) {
            const real *a = at_a(g, row + i, whole), *b = at_b(g, whole, column + j);
            values[j] = vector_sum(sums[i / DOT_ROWS][i % DOT_ROWS * DOT_COLUMNS + j]);
            for (int64_t k = 0; k < g->k - whole; k++)
                values[j] += a[k] * b[k];
            if (g->accumulate)
                values[j] += c[j * g->c_cs];
        }
        finish(g, values, column, columns);
        for (int64_t j = 0; j < columns; j++)
            c[j * g->c_cs] = values[j];
    }
}

/* How a product is cut into tasks; any cut gives the same bits. */
typedef struct cut {
    bool dots;
    int64_t rows, columns; /* of one task */
    int64_t down, across;  /* tasks */
} cut;

static cut cut_for(const pc__gemm *g, int threads)
{
    cut c = {.rows = ROWS_MOST, .columns = COLUMNS_MOST};
    c.dots = g->a_cs == 1 && g->b_rs == 1 && g->k >= 2 * W && (g->m <= 64 || g->n <= 2 * DOT_COLUMNS);
    if (c.dots)
        c.rows = DOT_ROW_BLOCK, c.columns = DOT_COLUMNS;
    for (;;) {
        c.down = (g->m + c.rows - 1) / c.rows;
        c.across = (g->n + c.columns - 1) / c.columns;
        if (c.dots || threads == 1 || c.down * c.across >= 4 * threads)
            return c;
        if (c.rows > ROW_BLOCK && c.rows / 2 < g->m)
            c.rows = PC__MAX(c.rows / 2, ROW_BLOCK);
        else if (c.columns > TILE_WIDTH)
            c.columns = PC__MAX(round_up(c.columns / 2, TILE_WIDTH), TILE_WIDTH);
        else
            return c;
    }
}

static void task_run(const pc__gemm *g, const cut *c, int64_t task, real *scratch)
{
    const int64_t row = task / c->across * c->rows, column = task % c->across * c->columns;
    const int64_t rows = PC__MIN(c->rows, g->m - row), columns = PC__MIN(c->columns, g->n - column);
    if (c->dots)
        dots_run(g, row, rows, column, columns);
    else
        columns_run(g, row, rows, column, columns, scratch);
}

/* Few outputs, long k: pieces of k side by side, then their sum in order. */
static pc_status chunked(const pc__gemm *g, int64_t chunks, int threads)
{
    const int64_t outputs = g->m * g->n, step = (g->k + chunks - 1) / chunks, room = scratch_size(g, COLUMNS_MOST);
    real *slab = pc__alloc_aligned((size_t)(chunks * outputs + threads * room) * sizeof(real), 64);
    if (!slab)
        return PC_ERR_MEMORY;
    real *scratch = slab + chunks * outputs;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(dynamic)
    for (int64_t i = 0; i < chunks; i++) {
        pc__gemm part = {.m = g->m,
                         .n = g->n,
                         .k = PC__MAX(PC__MIN(step, g->k - i * step), 0),
                         .a = at_a(g, 0, i * step),
                         .a_rs = g->a_rs,
                         .a_cs = g->a_cs,
                         .b = at_b(g, i * step, 0),
                         .b_rs = g->b_rs,
                         .b_cs = g->b_cs,
                         .c = slab + i * outputs,
                         .c_rs = g->n,
                         .c_cs = 1};
        const cut c = cut_for(&part, 1);
        for (int64_t task = 0; task < c.down * c.across; task++)
            task_run(&part, &c, task, scratch + pc__thread() * room);
    }
    for (int64_t i = 0; i < g->m; i++) {
        real *sum = slab + i * g->n;
        for (int64_t chunk = 1; chunk < chunks; chunk++)
            for (int64_t j = 0; j < g->n; j++)
                sum[j] += sum[chunk * outputs + j];
        for (int64_t j = 0; g->accumulate && j < g->n; j++)
            sum[j] += *at_c(g, i, j);
        finish(g, sum, 0, g->n);
        for (int64_t j = 0; j < g->n; j++)
            *at_c(g, i, j) = sum[j];
    }
    pc__free(slab);
    return PC_OK;
}

/* The product of the transposes, for a C that runs down its columns. */
static pc__gemm transposed(const pc__gemm *g)
{
    pc__gemm t = *g;
    t.m = g->n, t.n = g->m;
    t.a = g->b, t.a_rs = g->b_cs, t.a_cs = g->b_rs;
    t.b = g->a, t.b_rs = g->a_cs, t.b_cs = g->a_rs;
    t.c_rs = g->c_cs, t.c_cs = g->c_rs;
    return t;
}

pc_status PC__R(gemm)(const pc__gemm *request)
{
    if (request->m <= 0 || request->n <= 0)
        return PC_OK;
    const bool turn = request->c_cs != 1 && request->c_rs == 1 && !request->bias;
    const pc__gemm product = turn ? transposed(request) : *request, *g = &product;
    const int threads = pc__threads(2 * g->m * g->n * g->k);
    const int64_t chunks = PC__MIN(CHUNKS_MOST, g->k / CHUNK_K);
    if (chunks > 1 && g->m * g->n <= CHUNKED_OUTPUT)
        return chunked(g, chunks, threads);
    const cut c = cut_for(g, threads);
    const int64_t tasks = c.down * c.across, room = c.dots ? 0 : scratch_size(g, c.columns);
    real *scratch = NULL;
    if (room && !(scratch = pc__alloc_aligned((size_t)(threads * room) * sizeof(real), 64)))
        return PC_ERR_MEMORY;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(dynamic)
    for (int64_t task = 0; task < tasks; task++)
        task_run(g, &c, task, scratch ? scratch + pc__thread() * room : NULL);
    pc__free(scratch);
    return PC_OK;
}
