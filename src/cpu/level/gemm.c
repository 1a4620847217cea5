/* gemm.c: matrix products of any strides. Two ways: columns() broadcasts elements of A against vectors of B's rows
 * (packed where that pays), dots() multiplies vectors that run along k. */
#include "cpu/level/compute.h"
#include "cpu/level/gemm_dot.h"
#include "cpu/level/gemm_few.h"
#include "cpu/level/micro.h"
#include "cpu/level/turn.h"
#include "base/parallel.h"

#define K_BLOCK 192        /* a packed panel of TILE_WIDTH columns stays in the first-level cache */
#define PANELS_BYTES 32768 /* packed panels that stay in the first-level cache all together */
#define ROW_BLOCK 96       /* rows of A against which a panel is reused before the next one comes */
#define COLUMNS_MOST 256   /* columns packed at once: K_BLOCK x COLUMNS_MOST fit the second-level cache */
#define COLUMNS_SHORT 4096 /* the same of a short k: whole rows of C are then written together */
#define ROWS_MOST 512      /* rows of one task */
#define DOT_ROW_BLOCK 32   /* rows whose partial sums wait while a block of B is read */
#define DOT_ROWS_MOST 2 * PC__VECTOR_REGISTERS /* above, packing B pays */
#define DOT_K_BLOCK 1024     /* elements of k for which rows of A and B stay in the first-level cache */
#define FEW_ROWS 12          /* rows that read B where it lies, panel by panel */
#define SHORT_K 96           /* for more rows */
#define SHORT_K_APART 65536  /* bytes: k times the power of 2 that divides the step between rows */
#define COLUMN_ROWS 4        /* rows that are multiplied by one column together */
#define CHUNKS_MOST 16       /* pieces of a long k */
#define CHUNK_K 1024         /* the shortest such piece */
#define DOT_COLUMNS_MOST 72  /* columns whose partial sums wait, likewise */
#define CHUNKED_DOTS 512     /* outputs above which there are tiles enough for all cores */
#define SCRATCH_FEW 16384    /* bytes of scratch that a small product has on the stack */
#define CHUNKED_OUTPUT 16384 /* the same where tiles are larger */

static int64_t pieces(int64_t n, int64_t step)
{
    return (n + step - 1) / step;
}

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

/* Elements of k that are packed at once. */
static int64_t k_block(const pc__gemm *g)
{
    return PC__MIN(K_BLOCK, g->k);
}

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

static void pack(const pc__gemm *g, int64_t k0, int64_t kc, int64_t column, int64_t columns, real *out)
{
    if (g->b_cs == 1)
        pack_rows(g, k0, kc, column, columns, out);
    else
        pack_columns(g, k0, kc, column, columns, out);
}

/* Bias and activation over finished values that lie side by side. */
static __attribute__((noinline)) void finish(const pc__gemm *g, real *values, int64_t column, int64_t columns)
{
    const real *bias = g->bias;
    if (bias)
        for (int64_t j = 0; j < columns; j++)
            values[j] += bias[column + j];
    if (g->activation != PC__ACT_NONE)
        activate(g->activation, values, columns);
}

/* One panel of columns times rows of A where C cannot take whole vectors: by way of a tile on the stack. */
static void panel_by_copy(const pc__gemm *g, tile *t, int64_t row, int64_t rows, int64_t column, int64_t columns,
                          int vectors, bool last)
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
static void panel_run(const pc__gemm *g, const real *panel, int64_t k0, int64_t row, int64_t rows, int64_t column,
                      int64_t count)
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
    if (g->b_cs != 1 || g->c_cs != 1 || columns < W || (adds && columns % W))
        return false;
    return rows <= FEW_ROWS || (columns >= 4 * W && g->k <= SHORT_K && g->k * apart <= SHORT_K_APART);
}

/* The same bits as by tiles. */
static void in_place_run(const pc__gemm *g, int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    for (int64_t k0 = 0; k0 == 0 || k0 < g->k; k0 += K_BLOCK)
        few_rows(&(few_product){.rows = rows,
                                .k = PC__MIN(K_BLOCK, g->k - k0),
                                .columns = columns,
                                .a = at_a(g, row, k0),
                                .a_row = g->a_rs,
                                .a_k = g->a_cs,
                                .b = at_b(g, k0, column),
                                .b_row = g->b_rs,
                                .c = at_c(g, row, column),
                                .c_row = g->c_rs,
                                .add = g->accumulate || k0 > 0});
    for (int64_t r = row; (g->bias || g->activation != PC__ACT_NONE) && r < row + rows; r++)
        finish(g, at_c(g, r, column), column, columns);
}

/* C for rows [row, row + rows) and columns [column, column + columns); scratch is as scratch_size says. Panels are
 * reused from the first-level cache: all of them for each few rows where they fit, else one for many rows. */
static void columns_run(const pc__gemm *g, int64_t row, int64_t rows, int64_t column, int64_t columns, real *scratch)
{
    if (in_place(g, rows, columns)) {
        in_place_run(g, row, rows, column, columns);
        return;
    }
    const bool packing = g->b_cs != 1 || rows > 2 * TILE_ROWS_MAX;
    const int64_t tail = columns % W ? columns / TILE_WIDTH * TILE_WIDTH : columns;
    const bool small = k_block(g) * columns * (int64_t)sizeof(real) <= PANELS_BYTES;
    const int64_t few = columns <= TILE_WIDTH ? rows : tile_rows[TILE_VECTORS], step = small ? few : ROW_BLOCK;
    for (int64_t k0 = 0; k0 == 0 || k0 < g->k; k0 += K_BLOCK) {
        const int64_t kc = PC__MIN(K_BLOCK, g->k - k0), first = packing ? 0 : tail;
        pack(g, k0, kc, column + first, columns - first, scratch + first * k_block(g));
        for (int64_t r = row; r < row + rows; r += step)
            for (int64_t j = 0; j < columns; j += TILE_WIDTH)
                panel_run(g, j >= first ? scratch + j * k_block(g) : NULL, k0, r, PC__MIN(step, row + rows - r),
                          column + j, panel_columns(j, columns));
    }
}

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

/* C for up to DOT_ROW_BLOCK rows and any columns. Blocks of k are outermost: the block of A stays in the second-level
 * cache for all columns, that of B in the first-level cache for all rows. The sums wait in scratch meanwhile. */
static void dots_run(const pc__gemm *g, int64_t row, int64_t rows, int64_t column, int64_t columns, vec *scratch)
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

/* C of one column, for some rows, which lie along k. */
static void column_run(const pc__gemm *g, int64_t row, int64_t rows)
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

/* How a product is cut into tasks; any cut gives the same bits. */
typedef struct cut {
    bool dots;
    int64_t rows, columns; /* of one task */
    int64_t down, across;  /* tasks */
} cut;

/* Both operands run along k, and it is long enough that its sums, which lie across a vector at the end, cost less than
 * packing B, which is done once for all rows, or than the lanes that few columns leave empty. */
static bool both_along_k(const pc__gemm *g)
{
    const bool narrow = g->n < g->m && g->n <= W / 2;
    const int64_t least = narrow ? PC__MAX(12 * g->n, W) : 2 * W * PC__MIN(g->m, g->n);
    return g->a_cs == 1 && g->b_rs == 1 && g->k >= least && (g->m <= DOT_ROWS_MOST || g->n <= 2 * DOT_COLUMNS);
}

static cut cut_for(const pc__gemm *g, int threads)
{
    const int64_t fit = PANELS_BYTES / (int64_t)sizeof(real) / PC__MAX(g->k, 1) / TILE_WIDTH * TILE_WIDTH;
    cut c = {.dots = both_along_k(g), .rows = ROWS_MOST, .columns = PC__MIN(PC__MAX(fit, COLUMNS_MOST), COLUMNS_SHORT)};
    if (c.dots) {
        c.rows = DOT_ROW_BLOCK;
        c.columns = PC__MIN(round_up(pieces(g->n, threads), DOT_COLUMNS), DOT_COLUMNS_MOST);
    } else {
        while (threads > 1 && pieces(g->m, c.rows) * pieces(g->n, c.columns) < 4 * threads)
            if (c.rows > ROW_BLOCK && c.rows / 2 < g->m)
                c.rows = PC__MAX(c.rows / 2, ROW_BLOCK);
            else if (c.columns > TILE_WIDTH)
                c.columns = round_up(c.columns / 2, TILE_WIDTH);
            else
                break;
    }
    c.down = pieces(g->m, c.rows);
    c.across = pieces(g->n, c.columns);
    return c;
}

/* Elements of scratch for a task: packed panels of B, or vectors of sums. */
static int64_t scratch_size(const pc__gemm *g, const cut *c)
{
    if (!c->dots)
        return k_block(g) * round_up(PC__MIN(c->columns, g->n), TILE_WIDTH);
    return pieces(PC__MIN(c->rows, g->m), DOT_ROWS) * pieces(PC__MIN(c->columns, g->n), DOT_COLUMNS) * DOT_ROWS *
           DOT_COLUMNS * W;
}

static void task_run(const pc__gemm *g, const cut *c, int64_t task, real *scratch)
{
    const int64_t row = task / c->across * c->rows, column = task % c->across * c->columns;
    const int64_t rows = PC__MIN(c->rows, g->m - row), columns = PC__MIN(c->columns, g->n - column);
    if (c->dots && g->n == 1)
        column_run(g, row, rows);
    else if (c->dots)
        dots_run(g, row, rows, column, columns, (vec *)scratch);
    else
        columns_run(g, row, rows, column, columns, scratch);
}

/* One call, for its tasks: scratch has `room` values per thread. */
typedef struct product {
    const pc__gemm *g;
    const cut *c;
    real *scratch;
    int64_t room;
    int64_t step; /* chunked: of k for each chunk, whose sums go to `sums` */
    real *sums;
} product;

static void product_task(void *context, int64_t task)
{
    const product *p = context;
    task_run(p->g, p->c, task, p->scratch ? p->scratch + pc__thread() * p->room : NULL);
}

static void chunk_run(void *context, int64_t i)
{
    const product *p = context;
    const pc__gemm *g = p->g;
    pc__gemm part = *g;
    part.k = PC__MAX(PC__MIN(p->step, g->k - i * p->step), 0);
    part.a = at_a(g, 0, i * p->step);
    part.b = at_b(g, i * p->step, 0);
    part.c = p->sums + i * g->m * g->n;
    part.c_rs = g->n;
    part.c_cs = 1;
    part.bias = NULL;
    part.accumulate = false;
    part.activation = PC__ACT_NONE;
    for (int64_t task = 0; task < p->c->down * p->c->across; task++)
        task_run(&part, p->c, task, p->scratch + pc__thread() * p->room);
}

/* Few outputs, long k: pieces of k side by side, then their sum in order. */
static pc_status chunked(const pc__gemm *g, int64_t chunks, int threads)
{
    const int64_t outputs = g->m * g->n, step = (g->k + chunks - 1) / chunks;
    const cut c = cut_for(g, 1);
    const int64_t room = scratch_size(g, &c), shared = round_up(chunks * outputs, W);
    real *slab = pc__alloc_aligned((size_t)(shared + threads * room) * sizeof(real), 64);
    if (!slab)
        return PC_ERR_MEMORY;
    real *scratch = slab + shared;
    pc__parallel(threads, chunks, chunk_run, &(product){g, &c, scratch, room, step, slab});
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

/* The product of the transposes, for a C, or a column and an A, that runs down its columns. */
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
    const bool down = request->c_cs != 1 || (request->n == 1 && request->a_cs != 1 && request->a_rs == 1);
    const bool turn = down && request->c_rs == 1 && !request->bias;
    const pc__gemm turned = turn ? transposed(request) : *request, *g = &turned;
    const int threads = pc__threads(g->k * (2 * g->m * g->n + 4 * (int64_t)sizeof(real) * PC__MAX(g->m, g->n)));
    const int64_t chunks = PC__MIN(CHUNKS_MOST, g->k / CHUNK_K);
    if (chunks > 1 && g->m * g->n <= (both_along_k(g) ? CHUNKED_DOTS : CHUNKED_OUTPUT))
        return chunked(g, chunks, threads);
    const cut c = cut_for(g, threads);
    const int64_t tasks = c.down * c.across, room = scratch_size(g, &c);
    _Alignas(64) real few[SCRATCH_FEW / sizeof(real)], *scratch = few;
    const bool is_few = threads == 1 && room <= PC__COUNT(few);
    if (!is_few && !(scratch = pc__alloc_aligned((size_t)(threads * room) * sizeof(real), 64)))
        return PC_ERR_MEMORY;
    pc__parallel(threads, tasks, product_task, &(product){.g = g, .c = &c, .scratch = scratch, .room = room});
    if (!is_few)
        pc__free(scratch);
    return PC_OK;
}
