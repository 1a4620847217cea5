/* choose.c: which row does a product where choices are measured: all rows that can, those through cuBLASLt with each of
 * the ways that it advises, timed when a shape first comes. */
#include "cuda/matmul/lt.h"
#include "cuda/matmul/rows.h"
#include "cuda/runtime/chosen.h"
#include "cuda/runtime/measure.h"
#include "cuda/runtime/state.h"

#include <paracord/ops.h>
#include <stdio.h>

enum { ROWS = 8, WAYS = ROWS * PC__CUDA_LT_ADVICES };

/* What a choice holds for: the product with the alignment of its operands for their addresses. Compared as bytes: made
 * from zeros. */
typedef struct key {
    int32_t device, dtype, activation, wide, tf32, aligned_a, aligned_b, aligned_bias; /* bytes; 0: no bias */
    int64_t m, n, k, batch, a_rs, a_cs, a_batch, b_rs, b_cs, b_batch, pitch;
    int32_t zeros, unused;
} key;
_Static_assert(sizeof(key) <= PC__CHOSEN_KEY, "");

/* A row, and its way of cuBLASLt; NULL: the rule's. */
typedef struct choice {
    const pc__row *row;
    int advice;
} choice;

static pc__chosen chosen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void make_key(key *k, const pc_stream *stream, const pc__cuda_gemm *g)
{
    memset(k, 0, sizeof *k);
    k->device = stream->device.index;
    k->dtype = g->dtype, k->activation = g->activation, k->wide = g->wide != 0;
    k->tf32 = g->dtype == PC__CUDA_F32 && pc_matmul_precision_get() == PC_PRECISION_TF32;
    k->aligned_a = (int32_t)pc__cuda_alignment(g->a, 16), k->aligned_b = (int32_t)pc__cuda_alignment(g->b, 16);
    k->aligned_bias = g->bias ? (int32_t)pc__cuda_alignment(g->bias, 16) : 0;
    k->m = g->m, k->n = g->n, k->k = g->k, k->batch = g->batch;
    k->a_rs = g->a_rs, k->a_cs = g->a_cs, k->a_batch = g->a_batch;
    k->b_rs = g->b_rs, k->b_cs = g->b_cs, k->b_batch = g->b_batch;
    k->pitch = g->pitch, k->zeros = g->zeros;
}

/* A product that came. */
typedef struct asked {
    key key;
    pc_stream *stream;
    const pc_call *call;
    const pc__cuda_gemm *g;
} asked;

static void name(const void *context, char *text, size_t n)
{
    const key *k = &((const asked *)context)->key;
    char beyond[64] = "";
    if (k->pitch || k->zeros)
        snprintf(beyond, sizeof beyond, " pitch %lld zeros %d", (long long)k->pitch, k->zeros);
    snprintf(text, n,
             "cublaslt %zu matmul %d%s%s m %lld n %lld k %lld batch %lld a %lld %lld %lld /%d b %lld %lld %lld "
             "/%d bias /%d activation %d%s",
             pc__cuda_lt_version(), k->dtype, k->tf32 ? "/tf32" : "", k->wide ? " wide" : "", (long long)k->m,
             (long long)k->n, (long long)k->k, (long long)k->batch, (long long)k->a_rs, (long long)k->a_cs,
             (long long)k->a_batch, k->aligned_a, (long long)k->b_rs, (long long)k->b_cs, (long long)k->b_batch,
             k->aligned_b, k->aligned_bias, k->activation, beyond);
}

/* As it is kept: 0 for the rule's row, else the row's number in the table, from 1, and the advice. */
static int number_of(choice c)
{
    return c.row ? 1 + (int)(c.row - pc__matmul_rows.row) + ROWS * c.advice : 0;
}

/* False: no number of these. */
static bool choice_of(int number, choice *c)
{
    const int row = (number - 1) % ROWS, advice = (number - 1) / ROWS;
    *c = (choice){NULL, 0};
    if (number <= 0)
        return number == 0;
    if (row >= pc__matmul_rows.count || advice >= PC__CUDA_LT_ADVICES)
        return false;
    *c = (choice){&pc__matmul_rows.row[row], advice};
    return true;
}

static bool exists(void *context, int number)
{
    choice c;
    (void)context;
    return choice_of(number, &c);
}

typedef struct work {
    const pc_call *call;
    pc__cuda_gemm product; /* with a result of its own */
    choice way[WAYS];
} work;

static pc_status run(pc_stream *stream, const void *context, int i, bool *fine)
{
    const work *w = context;
    pc__cuda_gemm product = w->product;
    product.advice = w->way[i].advice;
    *fine = true;
    PC__TRY(w->way[i].row->run(stream, w->call, &product, NULL, fine));
    return pc__cuda_launched(w->call);
}

/* The rule's row first. */
static int ways_of(const pc_stream *stream, const pc__cuda_gemm *g, choice *way)
{
    const pc__row *row[ROWS];
    int there = 0;
    const int rows = pc__rows_all(&pc__matmul_rows, stream, g, row, ROWS);
    for (int i = 0; i < rows; i++)
        way[there++] = (choice){row[i], 0};
    for (int i = 0; i < rows; i++)
        for (int advice = 1; advice < PC__CUDA_LT_ADVICES && pc__matmul_takes_advice(row[i]); advice++)
            way[there++] = (choice){row[i], advice};
    return there;
}

/* The fastest; *known false where it could not be measured. */
static pc_status measure(void *context, int *number, bool *known)
{
    const asked *q = context;
    const pc__cuda_gemm *g = q->g;
    const size_t each = g->wide || g->dtype == PC__CUDA_F32 ? 4 : g->dtype == PC__CUDA_F64 ? 8 : 2;
    const size_t bytes = pc__cuda_whole((size_t)(g->batch * g->m * pc__cuda_gemm_row(g)) * each);
    double times[WAYS];
    work w = {.call = q->call, .product = *g};
    const int ways = ways_of(q->stream, g, w.way);
    *number = 0;
    *known = ways > 0;
    pc_status status = ways > 1 ? pc__cuda_allocate(q->stream->device.index, bytes, &w.product.c) : PC_OK;
    if (status == PC_ERR_MEMORY)
        *known = false; /* no error: another time */
    if (ways < 2 || status != PC_OK)
        return *known ? status : PC_OK;
    status = pc__cuda_measure(&(pc__trial){q->stream, &w, "measuring a product", run}, ways, times);
    pc__cuda_release(q->stream->device.index, w.product.c, bytes);
    if (status != PC_OK)
        return status;
    const int fastest = pc__cuda_fastest(times, ways);
    *known = fastest >= 0;
    if (fastest < 0)
        return PC_OK;
    *number = fastest ? number_of(w.way[fastest]) : 0;
    pc__log(PC_LOG_DEBUG, "matmul: %lld x %lld by %lld, %s: %.1f us; %s, advice %d: %.1f us", (long long)g->m,
            (long long)g->k, (long long)g->n, w.way[0].row->name, times[0], w.way[fastest].row->name,
            w.way[fastest].advice, times[fastest]);
    return PC_OK;
}

static pc_status choose(pc_stream *stream, const pc_call *call, const pc__cuda_gemm *g, choice *c)
{
    asked q = {.stream = stream, .call = call, .g = g};
    int number;
    make_key(&q.key, stream, g);
    const pc__choosing by = {&q.key, sizeof q.key, &q, name, exists, measure};
    PC__TRY(pc__chosen_for(&chosen, stream, &by, &number));
    (void)choice_of(number, c);
    if (c->row && pc__row_is_left_out(&pc__matmul_rows, c->row))
        *c = (choice){NULL, 0};
    return PC_OK;
}

pc_status pc__matmul_run(pc_stream *stream, const pc_call *call, const pc__cuda_gemm *g)
{
    const pc__rows *rows = &pc__matmul_rows;
    pc__cuda_gemm product = *g;
    choice c = {NULL, 0};
    if (pc_choice_get() == PC_CHOICE_MEASURED && !rows->only)
        PC__TRY(choose(stream, call, g, &c));
    if (((const pc__cuda_stream *)stream->implementation)->prepares)
        return PC_OK;
    product.advice = c.advice;
    return pc__rows_run_by(rows, c.row, stream, call, &product);
}
