/* gemm_half.c: products of 16-bit numbers: blocks of both factors become float32 where they stay in the second-level cache,
 * and are multiplied there. A few rows against rows that lie along k are read once, without a copy. Sums are those of
 * float32, and rounded once. bfloat16 stays as it is where pairs of it can be multiplied (gemm_pairs.c). */
#include "cpu/level/gemm_half.h"
#include "cpu/level/each.h"
#include "cpu/level/halves.h"
#include "cpu/level/pairs.h"
#include "cpu/level/real.h"
#include "base/parallel.h"

#include <stdatomic.h>

enum {
    ROWS = 128,            /* of a block of A and C */
    DEPTH = 1024,          /* of k at once */
    BLOCK = 65536,         /* numbers of a block of B at most */
    COLUMNS = 256,         /* of it at most */
    STEP = 32,             /* to which its columns are rounded */
    FEW_ROWS = 4,          /* that are multiplied without a copy */
    TOGETHER = 4,          /* columns at once there, */
    FEW_COLUMNS = 128,     /* of so many the sums wait to be finished: whole TOGETHER */
    TOGETHER_HALVES = 256, /* that lie apart */
    PART = 1 << 18,        /* numbers of B of a task there */
    ON_STACK = 1 << 14,    /* bytes of a small product */
};

/* A product, and how it is cut: by sizes alone. */
typedef struct work {
    half_product p;
    int64_t rows, columns, depth; /* of a block */
    int64_t across;
    float *room; /* of each thread: a block of A, of B, of C and of the bias */
    int64_t size;
    const float *x;            /* few rows: A, in the order in which halves are taken, */
    int64_t whole, x_row;      /* of k; what k / PC__HALVES leaves comes once more behind zeros */
    uint16_t last[PC__HALVES]; /* a mask: the last ones of k among as many */
    atomic_bool failed;
} work;

/* outer x inner numbers, in the order of memory: inner ones lie side by side where one of the steps is 1. */
static void take_block(const work *w, float *to, const void *from, int64_t outer, int64_t outer_step, int64_t inner,
                       int64_t inner_step)
{
    if (inner_step == 1 && outer_step == inner)
        inner *= outer, outer = 1;
    for (int64_t i = 0; i < outer; i++, to += inner) {
        const pc_bf16 *row = half_at(from, i * outer_step);
        if (inner_step == 1) {
            pc__load_halves(to, row, inner, w->p.is_f16);
            continue;
        }
        pc_bf16 together[TOGETHER_HALVES];
        for (int64_t k = 0, n; k < inner; k += n) {
            n = PC__MIN(TOGETHER_HALVES, inner - k);
            pc__move((char *)together, sizeof *row, (const char *)(row + k * inner_step), inner_step * 2, n, 2);
            pc__load_halves(to + k, together, n, w->p.is_f16);
        }
    }
}

void give_block(const half_product *p, const float *from, int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    const pc__gemm *g = p->g;
    if (g->c_cs == 1 && g->c_rs == columns)
        columns *= rows, rows = 1;
    for (int64_t i = 0; i < rows; i++, from += columns) {
        const int64_t to = (row + i) * g->c_rs + column * g->c_cs;
        if (g->accumulate)
            for (int64_t k = 0; k < columns; k++)
                ((float *)g->c)[to + k * g->c_cs] += from[k];
        else if (p->wide && g->c_cs == 1)
            memcpy((float *)g->c + to, from, (size_t)columns * sizeof *from);
        else if (p->wide)
            for (int64_t k = 0; k < columns; k++)
                ((float *)g->c)[to + k * g->c_cs] = from[k];
        else if (g->c_cs == 1 && p->pairs)
            pair_store((pc_bf16 *)g->c + to, from, columns);
        else if (g->c_cs == 1)
            pc__store_halves((pc_bf16 *)g->c + to, from, columns, p->is_f16);
        else
            for (int64_t k = 0; k < columns; k++)
                pc__store_halves((pc_bf16 *)g->c + to + k * g->c_cs, from + k, 1, p->is_f16);
    }
}

void finish_block(const half_product *p, float *values, int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    const pc__gemm *g = p->g;
    float bias[FINISHED];
    if (g->bias)
        pc__load_halves(bias, half_at(g->bias, column), columns, p->is_f16);
    for (int64_t i = 0; g->bias && i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            values[i * columns + j] += bias[j];
    if (g->activation != PC__ACT_NONE)
        activate(g->activation, values, rows * columns);
    give_block(p, values, row, rows, column, columns);
}

/* A block of C. The inner product has A by rows where its rows lie so, else by columns, and B alike. */
static void block_task(void *context, int64_t task)
{
    work *w = context;
    const pc__gemm *g = w->p.g;
    const int64_t row = task / w->across * w->rows, column = task % w->across * w->columns;
    const int64_t rows = PC__MIN(w->rows, g->m - row), columns = PC__MIN(w->columns, g->n - column);
    float *a = w->room + pc__thread() * w->size, *b = a + w->rows * w->depth, *c = b + w->columns * w->depth;
    float *bias = c + w->rows * w->columns;
    const bool a_down = g->a_cs != 1 && g->a_rs == 1, b_down = g->b_cs != 1;
    if (g->bias)
        pc__load_halves(bias, half_at(g->bias, column), columns, w->p.is_f16);
    for (int64_t k = 0; k == 0 || k < g->k; k += w->depth) {
        const int64_t depth = PC__MIN(w->depth, g->k - k);
        const bool last = k + w->depth >= g->k;
        const pc_bf16 *from_a = half_at(g->a, row * g->a_rs + k * g->a_cs);
        const pc_bf16 *from_b = half_at(g->b, k * g->b_rs + column * g->b_cs);
        if (a_down)
            take_block(w, a, from_a, depth, g->a_cs, rows, g->a_rs);
        else
            take_block(w, a, from_a, rows, g->a_rs, depth, g->a_cs);
        if (b_down)
            take_block(w, b, from_b, columns, g->b_cs, depth, g->b_rs);
        else
            take_block(w, b, from_b, depth, g->b_rs, columns, g->b_cs);
        const pc__gemm inner = {.m = rows,
                                .n = columns,
                                .k = depth,
                                .a = a,
                                .a_rs = a_down ? 1 : depth,
                                .a_cs = a_down ? rows : 1,
                                .b = b,
                                .b_rs = b_down ? 1 : columns,
                                .b_cs = b_down ? depth : 1,
                                .c = c,
                                .c_rs = columns,
                                .c_cs = 1,
                                .bias = last && g->bias ? bias : NULL,
                                .accumulate = k > 0,
                                .activation = last ? g->activation : PC__ACT_NONE};
        if (PC__K(gemm_f32)(&inner) != PC_OK) {
            atomic_store(&w->failed, true);
            return;
        }
    }
    give_block(&w->p, c, row, rows, column, columns);
}

static pc_status in_blocks(work *w)
{
    const pc__gemm *g = w->p.g;
    _Alignas(64) float few[ON_STACK / sizeof(float)];
    w->depth = PC__MAX(PC__MIN(g->k, DEPTH), 1);
    w->rows = PC__MIN(g->m, ROWS);
    w->columns = PC__MIN(g->n, PC__MIN(PC__MAX(BLOCK / w->depth / STEP, 1) * STEP, COLUMNS));
    w->across = (g->n + w->columns - 1) / w->columns;
    const int64_t tasks = (g->m + w->rows - 1) / w->rows * w->across;
    const int64_t cost = PC__MAX(2 * g->m * g->n * g->k + 8 * (g->m + g->n) * g->k, 8 * g->m * g->n);
    const int threads = tasks > 1 ? pc__threads(cost) : 1;
    w->size = (w->rows * w->depth + w->columns * w->depth + w->rows * w->columns + w->columns + 15) / 16 * 16;
    const bool is_few = threads == 1 && w->size <= PC__COUNT(few);
    w->room = is_few ? few : pc__alloc_aligned((size_t)(threads * w->size) * sizeof(float), 64);
    if (!w->room)
        return PC_ERR_MEMORY;
    pc__parallel(threads, tasks, block_task, w);
    if (!is_few)
        pc__free(w->room);
    return atomic_load(&w->failed) ? pc__fail(PC_ERR_MEMORY, "out of memory in a product of 16-bit numbers") : PC_OK;
}

/* --- few rows --- */

typedef float singles __attribute__((vector_size(PC__VECTOR_BYTES), aligned(4), may_alias));

PC__HALVES_FN taken(float *to, const void *from, bool is_f16)
{
    if (is_f16)
        pc__take_f16(to, from);
    else
        pc__take_bf16(to, from);
}

/* The last PC__HALVES of k; zero where they were among the whole ones before. */
PC__HALVES_FN taken_last(const work *w, float *to, const pc_bf16 *row, bool is_f16)
{
    typedef uint16_t words __attribute__((vector_size(PC__VECTOR_BYTES), aligned(2), may_alias));
    words last = *(const words *)(const void *)(row + w->p.g->k - PC__HALVES) & *(const words *)w->last;
    taken(to, &last, is_f16);
}

/* The sums of some columns of B, which lie along k. Their number and kind are known where it is called, so that they stay in
 * registers. */
PC__HALVES_FN dots(const work *w, const float *x, int64_t column, const int columns, const bool is_f16, singles *out)
{
    const int64_t step = w->p.g->b_cs;
    const pc_bf16 *from = half_at(w->p.g->b, column * step);
    _Alignas(PC__VECTOR_BYTES) singles sums[TOGETHER] = {0};
    for (int64_t k = 0; k < w->x_row; k += PC__HALVES) {
        const singles *a = (const singles *)(x + k);
        UNROLL for (int j = 0; j < columns; j++)
        {
            _Alignas(PC__VECTOR_BYTES) float b[PC__HALVES];
            if (k < w->whole)
                taken(b, from + j * step + k, is_f16);
            else
                taken_last(w, b, from + j * step, is_f16);
            sums[j] += a[0] * ((const singles *)b)[0] + a[1] * ((const singles *)b)[1];
        }
    }
    UNROLL for (int j = 0; j < columns; j++) out[j] = sums[j];
}

static void all_dots(const work *w, const float *x, int64_t column, int64_t columns, singles *out)
{
    if (columns == TOGETHER && w->p.is_f16)
        dots(w, x, column, TOGETHER, true, out);
    else if (columns == TOGETHER)
        dots(w, x, column, TOGETHER, false, out);
    for (int64_t j = 0; columns < TOGETHER && j < columns; j++)
        if (w->p.is_f16)
            dots(w, x, column + j, 1, true, &out[j]);
        else
            dots(w, x, column + j, 1, false, &out[j]);
}

static float sum_of(const singles *sum)
{
    const float *s = (const float *)sum;
    float part[4] = {0};
    for (int i = 0; i < PC__VECTOR_BYTES / 4; i += 4)
        for (int k = 0; k < 4; k++)
            part[k] += s[i + k];
    return (part[0] + part[1]) + (part[2] + part[3]);
}

/* Columns [first, first + columns) of all rows. */
static void few_columns(const work *w, int64_t first, int64_t columns)
{
    float values[FEW_ROWS * FEW_COLUMNS];
    for (int64_t column = 0; column < columns; column += TOGETHER)
        for (int64_t r = 0; r < w->p.g->m; r++) {
            const int64_t some = PC__MIN(TOGETHER, columns - column);
            _Alignas(PC__VECTOR_BYTES) singles sums[TOGETHER];
            all_dots(w, w->x + r * w->x_row, first + column, some, sums);
            for (int64_t j = 0; j < some; j++)
                values[r * columns + column + j] = sum_of(&sums[j]);
        }
    finish_block(&w->p, values, 0, w->p.g->m, first, columns);
}

static void few_task(void *context, int64_t task)
{
    const work *w = context;
    const int64_t end = PC__MIN((task + 1) * w->columns, w->p.g->n);
    for (int64_t first = task * w->columns; first < end; first += FEW_COLUMNS)
        few_columns(w, first, PC__MIN(FEW_COLUMNS, end - first));
}

static pc_status in_rows(work *w)
{
    const pc__gemm *g = w->p.g;
    const int64_t whole = g->k / PC__HALVES * PC__HALVES, rest = g->k - whole;
    w->whole = whole, w->x_row = whole + (rest ? PC__HALVES : 0);
    memset(w->last + PC__HALVES - rest, 0xff, (size_t)rest * sizeof *w->last);
    float *x = pc__alloc_aligned((size_t)(g->m * w->x_row) * sizeof *x, 64);
    if (!x)
        return PC_ERR_MEMORY;
    for (int64_t r = 0; r < g->m; r++) {
        const pc_bf16 *row = half_at(g->a, r * g->a_rs);
        for (int64_t k = 0; k < whole; k += PC__HALVES)
            taken(x + r * w->x_row + k, row + k, w->p.is_f16);
        if (rest)
            taken_last(w, x + r * w->x_row + whole, row, w->p.is_f16);
    }
    w->x = x;
    w->columns = PC__MAX(PART / g->k / TOGETHER, 1) * TOGETHER;
    pc__parallel(pc__threads((2 * g->m + 8) * g->n * g->k), (g->n + w->columns - 1) / w->columns, few_task, w);
    pc__free(x);
    return PC_OK;
}

pc_status PC__K(gemm_half)(const pc__gemm *g, bool is_f16, bool wide)
{
    work w = {.p = {.g = g, .is_f16 = is_f16, .wide = wide, .pairs = !is_f16 && pc__has_pairs()}};
    if (g->m <= 0 || g->n <= 0)
        return PC_OK;
    if (w.p.pairs)
        return PC__K(gemm_pairs)(&w.p);
    const bool few = g->m <= FEW_ROWS && g->k >= PC__HALVES && g->a_cs == 1 && g->b_rs == 1;
    return few ? in_rows(&w) : in_blocks(&w);
}
