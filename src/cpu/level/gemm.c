/* gemm.c: matrix products of any strides, cut into tasks. */
#include "cpu/level/gemm_work.h"

#include "base/parallel.h"

#define COLUMNS_MOST 256      /* columns packed at once: K_BLOCK x COLUMNS_MOST fit the second-level cache */
#define COLUMNS_SHORT 4096    /* the same of a short k: whole rows of C are then written together */
#define ROWS_MOST 512         /* rows of one task */
#define SHARED_ROWS 192       /* from so many on B is packed for all tasks at once, */
#define SHARED_MOST (1 << 20) /* so many values of it or fewer at a time */
#define DOT_ROW_BLOCK 32      /* rows whose partial sums wait while a block of B is read */
#define DOT_ROWS_MOST 2 * PC__VECTOR_REGISTERS /* above, packing B pays */
#define DOT_COLUMNS_MOST 72                    /* columns whose partial sums wait, likewise */
#define CHUNKS_MOST 16                         /* pieces of a long k */
#define CHUNK_K 1024                           /* the shortest such piece */
#define CHUNKED_DOTS 512                       /* outputs above which there are tiles enough for all cores */
#define CHUNKED_OUTPUT 16384                   /* the same where tiles are larger */
#define SCRATCH_FEW 16384                      /* bytes of scratch that a small product has on the stack */

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
    const bool tiny = g->m == 1 && g->n <= W; /* nor do lanes that stay empty pay */
    const int64_t least = tiny ? W : narrow ? PC__MAX(12 * g->n, W) : 2 * W * PC__MIN(g->m, g->n);
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

static bool turns_column(const pc__gemm *g)
{
    return g->n == 1 && g->a_cs == 1 && g->k > 0 && g->k <= COLUMN_SHORT && g->m >= W;
}

static void task_run(const pc__gemm *g, const cut *c, int64_t task, real *scratch)
{
    const int64_t row = task / c->across * c->rows, column = task % c->across * c->columns;
    const int64_t rows = PC__MIN(c->rows, g->m - row), columns = PC__MIN(c->columns, g->n - column);
    if (c->dots && g->n == 1)
        column_run(g, row, rows);
    else if (turns_column(g))
        column_turned(g, row, rows);
    else if (c->dots)
        dots_run(g, row, rows, column, columns, (vec *)scratch);
    else
        columns_run(g, row, rows, column, columns, &(packed_b){0}, scratch);
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

/* A product of many rows, whose B is packed once for all of them, some columns at a time. */
typedef struct together {
    const pc__gemm *g;
    int64_t rows, columns; /* of a task */
    int64_t across;        /* tasks for the same rows */
    int64_t first, end;    /* columns that are packed */
    int64_t apart;         /* values of a block of k */
    real *values;
} together;

static void pack_task(void *context, int64_t task)
{
    const together *p = context;
    const int64_t block = task / p->across, column = p->first + task % p->across * p->columns;
    pack_block(p->g, block * K_BLOCK, column, PC__MIN(p->columns, p->end - column),
               p->values + block * p->apart + (column - p->first) * k_block(p->g));
}

static void packed_task(void *context, int64_t task)
{
    const together *p = context;
    const int64_t row = task / p->across * p->rows, column = p->first + task % p->across * p->columns;
    columns_run(p->g, row, PC__MIN(p->rows, p->g->m - row), column, PC__MIN(p->columns, p->end - column),
                &(packed_b){p->values, p->first, p->apart}, NULL);
}

/* Whether it pays: every task would pack for its rows alone. */
static bool is_shared(const pc__gemm *g, const cut *c, int threads)
{
    return !c->dots && !turns_column(g) && threads > 1 && g->m >= SHARED_ROWS && g->k > 0 &&
           columns_pack(g, PC__MIN(c->rows, g->m), PC__MIN(c->columns, g->n));
}

static pc_status run_shared(const pc__gemm *g, const cut *c, int threads)
{
    const int64_t blocks = pieces(g->k, K_BLOCK), wide = round_up(PC__MIN(c->columns, g->n), TILE_WIDTH);
    const int64_t depth = blocks * k_block(g), fit = SHARED_MOST / depth / wide * wide;
    const int64_t columns = PC__MIN(PC__MAX(fit, wide), round_up(g->n, TILE_WIDTH));
    together p = {.g = g, .rows = SHARED_ROWS / 2, .columns = wide, .apart = columns * k_block(g)};
    if (!(p.values = pc__alloc_aligned((size_t)(depth * columns) * sizeof(real), 64)))
        return PC_ERR_MEMORY;
    for (; p.first < g->n; p.first = p.end) {
        p.end = PC__MIN(p.first + columns, g->n);
        p.across = pieces(p.end - p.first, wide);
        pc__parallel(threads, blocks * p.across, pack_task, &p);
        pc__parallel(threads, pieces(g->m, p.rows) * p.across, packed_task, &p);
    }
    pc__free(p.values);
    return PC_OK;
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
    const int64_t size = sizeof(real), outputs = g->m * g->n;
    const int threads = pc__threads(PC__MAX(g->k * (2 * outputs + 4 * size * PC__MAX(g->m, g->n)), 4 * size * outputs));
    const int64_t chunks = PC__MIN(CHUNKS_MOST, g->k / CHUNK_K);
    if (chunks > 1 && g->m * g->n <= (both_along_k(g) ? CHUNKED_DOTS : CHUNKED_OUTPUT))
        return chunked(g, chunks, threads);
    const cut c = cut_for(g, threads);
    if (is_shared(g, &c, threads))
        return run_shared(g, &c, threads);
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
