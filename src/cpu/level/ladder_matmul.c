/* ladder_matmul.c: c = a b for square matrices of float32, from three loops to nearly the library's speed. Read it from
 * the top: each function does something about what the one before waited for. The library's own (gemm.c) goes on from
 * here: it copies pieces of a and b into the order in which they are read. */
#include "ops/ladder.h"

#include "cpu/level/lessons.h"

typedef float vector __attribute__((vector_size(PC__VECTOR_BYTES)));

#define LANES ((int64_t)(PC__VECTOR_BYTES / sizeof(float)))

typedef struct product {
    const float *a, *b;
    float *c;
    int64_t n;
} product;

/* As the formula says. The inner loop goes down a column of b: n numbers from n cache lines. */
static void three_loops(const product *p)
{
    for (int64_t i = 0; i < p->n; i++)
        for (int64_t j = 0; j < p->n; j++) {
            float sum = 0;
            for (int64_t k = 0; k < p->n; k++)
                sum += p->a[i * p->n + k] * p->b[k * p->n + j];
            p->c[i * p->n + j] = sum;
        }
}

/* c[0..columns) += a * b[0..columns): along rows, which the compiler turns into SIMD. */
static inline void add_row(float *restrict c, float a, const float *restrict b, int64_t columns)
{
    for (int64_t j = 0; j < columns; j++)
        c[j] += a * b[j];
}

static void other_order(const product *p)
{
    memset(p->c, 0, (size_t)(p->n * p->n) * sizeof *p->c);
    for (int64_t i = 0; i < p->n; i++)
        for (int64_t k = 0; k < p->n; k++)
            add_row(p->c + i * p->n, p->a[i * p->n + k], p->b + k * p->n, p->n);
}

/* A block of b, 64 rows of 512 columns (128 KiB), stays in the second cache while all rows of a use it. */
static void cache_blocks(const product *p)
{
    enum { DEEP = 64, WIDE = 512 };
    memset(p->c, 0, (size_t)(p->n * p->n) * sizeof *p->c);
    for (int64_t j = 0; j < p->n; j += WIDE)
        for (int64_t k = 0; k < p->n; k += DEEP)
            for (int64_t i = 0; i < p->n; i++)
                for (int64_t deep = k; deep < PC__MIN(k + DEEP, p->n); deep++)
                    add_row(p->c + i * p->n + j, p->a[i * p->n + deep], p->b + deep * p->n + j,
                            PC__MIN(WIDE, p->n - j));
}

/* A tile of c stays in registers: for 8 rows and 2 vectors of columns, 2 loads of b and 8 of a serve 16 multiply-adds,
 * and nothing is stored on the way. What it takes from b, 256 rows of 2 vectors, is copied to one place first: as it
 * lies, its rows are a power of two apart, and push each other out of the first cache. */
enum { TILE_ROWS = PC__VECTOR_REGISTERS / 4, TILE_VECTORS = 2, TILE_DEEP = 256 };

typedef struct strip {
    vector of_b[TILE_DEEP][TILE_VECTORS]; /* 32 KiB at most */
} strip;

static inline void register_tile(const product *p, const strip *s, int64_t i, int64_t j, int64_t k, int64_t deep)
{
    vector sum[TILE_ROWS][TILE_VECTORS];
    for (int r = 0; r < TILE_ROWS; r++)
        memcpy(sum[r], p->c + (i + r) * p->n + j, sizeof sum[r]);
    for (int64_t d = 0; d < deep; d++)
        for (int r = 0; r < TILE_ROWS; r++)
            for (int v = 0; v < TILE_VECTORS; v++)
                sum[r][v] += p->a[(i + r) * p->n + k + d] * s->of_b[d][v];
    for (int r = 0; r < TILE_ROWS; r++)
        memcpy(p->c + (i + r) * p->n + j, sum[r], sizeof sum[r]);
}

/* Rows from..to of c. */
static void register_tiles(const product *p, int64_t from, int64_t to)
{
    strip s;
    memset(p->c + from * p->n, 0, (size_t)((to - from) * p->n) * sizeof *p->c);
    for (int64_t k = 0; k < p->n; k += TILE_DEEP) {
        const int64_t deep = PC__MIN(TILE_DEEP, p->n - k);
        for (int64_t j = 0; j < p->n; j += TILE_VECTORS * LANES) {
            for (int64_t d = 0; d < deep; d++)
                memcpy(s.of_b[d], p->b + (k + d) * p->n + j, sizeof s.of_b[d]);
            for (int64_t i = from; i < to; i += TILE_ROWS)
                register_tile(p, &s, i, j, k, deep);
        }
    }
}

static void rows_of_a_core(void *context, int64_t piece)
{
    register_tiles(context, piece * PC__LADDER_SIDE, (piece + 1) * PC__LADDER_SIDE);
}

PC__LESSON_KERNEL(ladder_matmul)
{
    const pc__ladder_attributes *attributes = run->attributes;
    product p = {run->in[0].data, run->in[1].data, run->out[0].data, run->out[0].shape[0]};
    if (attributes->rung == PC__CPU_MATMUL_LOOPS)
        three_loops(&p);
    else if (attributes->rung == PC__CPU_MATMUL_ORDER)
        other_order(&p);
    else if (attributes->rung == PC__CPU_MATMUL_BLOCKS)
        cache_blocks(&p);
    else if (attributes->rung == PC__CPU_MATMUL_REGISTERS)
        register_tiles(&p, 0, p.n);
    else
        pc__parallel(pc__threads(2 * p.n * p.n * p.n), p.n / PC__LADDER_SIDE, rows_of_a_core, &p);
    return PC_OK;
}
