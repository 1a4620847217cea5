/* padded.c: what of a product is copied. Matrix units' kernels want the rows of all three matrices on 16 bytes, and so
 * whole packs of 16 bytes in each; cuBLASLt takes others by slower kernels, also where rows lie so and a size alone is
 * odd. Where plans have left room behind rows (plan/pitches.c), sizes are rounded up in place. */
#include "cuda/matmul/padded.h"
#include "cuda/runtime/cuda.h"

#include <math.h>

/* An operand of rows and columns as it lies in memory: `inner` elements side by side, `outer` times. */
typedef struct operand {
    int64_t outer, inner, outer_stride, inner_stride, batch_stride;
    bool turned; /* inner are its rows */
    bool askew;
    bool goes_on; /* not askew, and zeros behind its ends */
} operand;

static int64_t whole(int64_t n, int64_t pack)
{
    return (n + pack - 1) / pack * pack;
}

static operand operand_of(const void *data, int64_t batch, int64_t rows, int64_t columns, int64_t rs, int64_t cs,
                          int64_t batch_stride, int64_t pack, bool zeros)
{
    operand o = {columns, rows, cs, rs, batch > 1 ? batch_stride : 0, true, false, false};
    if (cs == 1 || rs != 1)
        o = (operand){rows, columns, rs, cs, o.batch_stride, false, false, false};
    o.askew = (uintptr_t)data % 16 != 0 || o.batch_stride % pack != 0 || (o.inner > 1 && o.inner_stride != 1) ||
              (o.outer > 1 && (o.outer_stride % pack != 0 || o.outer_stride < o.inner));
    o.goes_on = zeros && !o.askew;
    return o;
}

/* Room in scratch memory behind what has some. */
static void *take(pc__cuda_padded *plan, char *scratch, int64_t count, int size)
{
    void *room = scratch ? scratch + plan->bytes : NULL;
    plan->bytes += pc__cuda_whole((size_t)(count * size));
    return room;
}

/* Copy an operand to `rows` x `columns`, whose strides come back; a batch of one that serves for all stays one. */
static void *copied(pc__cuda_padded *plan, char *scratch, const operand *o, const void *from, int64_t batch,
                    int64_t rows, int64_t columns, int64_t *rs, int64_t *cs, int64_t *batch_stride)
{
    const int64_t pack = 16 / plan->size, outer = o->turned ? columns : rows;
    const int64_t inner = whole(o->turned ? rows : columns, pack), count = o->batch_stride ? batch : 1;
    void *to = take(plan, scratch, count * outer * inner, plan->size);
    plan->pads[plan->count++] = (pc__cuda_pad){.from = from,
                                               .to = to,
                                               .batch = count,
                                               .rows = o->outer,
                                               .columns = o->inner,
                                               .batch_stride = o->batch_stride,
                                               .row_stride = o->outer_stride,
                                               .column_stride = o->inner_stride,
                                               .to_rows = outer,
                                               .to_columns = inner};
    *rs = o->turned ? 1 : inner, *cs = o->turned ? inner : 1;
    *batch_stride = o->batch_stride ? outer * inner : 0;
    return to;
}

/* c of g, which is `rows` rows of the inner product's columns there. */
static void cut_back(pc__cuda_padded *plan, char *scratch, const pc__cuda_gemm *g, int size)
{
    pc__cuda_gemm *inner = &plan->inner;
    plan->cut_size = size;
    inner->c = take(plan, scratch, g->batch * inner->m * inner->n, size);
    inner->pitch = 0;
    plan->cut = (pc__cuda_cut){inner->c, g->c, g->batch, g->m, g->n, inner->m, inner->n};
}

/* A bias for as many columns as the inner product has. */
static void copy_bias(pc__cuda_padded *plan, char *scratch, const pc__cuda_gemm *g)
{
    pc__cuda_gemm *inner = &plan->inner;
    const operand bias = {1, g->n, 0, 1, 0, false, true, false};
    int64_t strides[3];
    if (g->bias && inner->n != g->n)
        inner->bias = copied(plan, scratch, &bias, g->bias, 1, 1, inner->n, &strides[0], &strides[1], &strides[2]);
}

/* The rows of a that lie side by side go in whole packs, those behind the last of these in a product of their own: the
 * result has no room behind it. */
static void part_rows(pc__cuda_padded *plan, const pc__cuda_gemm *g, int64_t pack, int size_c)
{
    const int64_t rows = g->m / pack * pack;
    plan->rest = *g;
    plan->rest.m = g->m - rows;
    plan->rest.a = (const char *)g->a + rows * g->a_rs * plan->size;
    plan->rest.c = (char *)g->c + rows * g->n * size_c;
    plan->inner.m = rows;
}

/* The inner product's sizes; whether its result is copied. */
static bool round_up(pc__cuda_padded *plan, const pc__cuda_gemm *g, const operand *a, const operand *b, int64_t pack,
                     int size_c)
{
    pc__cuda_gemm *inner = &plan->inner;
    const bool ends = a->askew && a->turned && g->m % pack != 0; /* packs of a copied a that end beyond its rows */
    const bool room = g->pitch >= whole(g->n, pack);
    const bool askew_c = (uintptr_t)g->c % 16 != 0 || pc__cuda_gemm_row(g) * size_c % 16 != 0 || ends;
    if (((a->askew || a->goes_on) && !a->turned) || ((b->askew || b->goes_on) && b->turned))
        inner->k = whole(g->k, pack); /* sums along rows: zeros behind both */
    if (askew_c || room)
        inner->n = whole(g->n, pack);
    if (askew_c && a->turned && (a->askew || a->goes_on))
        inner->m = whole(g->m, pack);
    else if (a->goes_on && a->turned && g->m % pack != 0 && g->m > pack && g->batch == 1 && !g->pitch)
        part_rows(plan, g, pack, size_c);
    return askew_c;
}

bool pc__cuda_padded_plan(const pc__cuda_gemm *g, char *scratch, pc__cuda_padded *plan)
{
    const int64_t most = 1 << 30;
    if (g->dtype == PC__CUDA_F64 || g->k == 0 || g->m > most || g->n > most || g->k > most)
        return false;
    *plan = (pc__cuda_padded){.inner = *g, .size = g->dtype == PC__CUDA_F32 ? 4 : 2};
    const int64_t pack = 16 / plan->size;
    const int size_c = g->wide ? 4 : plan->size;
    const operand a =
        operand_of(g->a, g->batch, g->m, g->k, g->a_rs, g->a_cs, g->a_batch, pack, g->zeros & PC__CUDA_GEMM_ZEROS_A);
    const operand b =
        operand_of(g->b, g->batch, g->k, g->n, g->b_rs, g->b_cs, g->b_batch, pack, g->zeros & PC__CUDA_GEMM_ZEROS_B);
    pc__cuda_gemm *inner = &plan->inner;
    const bool askew_c = round_up(plan, g, &a, &b, pack, size_c);
    if (!a.askew && !b.askew && !askew_c && inner->m == g->m && inner->k == g->k && inner->n == g->n)
        return false;
    if (!a.goes_on && (a.askew || inner->k != g->k))
        inner->a =
            copied(plan, scratch, &a, g->a, g->batch, inner->m, inner->k, &inner->a_rs, &inner->a_cs, &inner->a_batch);
    if (!b.goes_on && (b.askew || inner->k != g->k || inner->n != g->n))
        inner->b =
            copied(plan, scratch, &b, g->b, g->batch, inner->k, inner->n, &inner->b_rs, &inner->b_cs, &inner->b_batch);
    if (askew_c)
        cut_back(plan, scratch, g, size_c);
    copy_bias(plan, scratch, g);
    return true;
}

/* Seconds that a product loses where its rows are askew: some for each multiplication, and some for each step of the sums in
 * each turn of the device's tiles. Fitted to drawn products on an H200 (docs/kernels-cuda.md). */
static double lost(const pc__cuda_gemm *g, int multiprocessors)
{
    enum { TILE = 128 };
    const bool single = g->dtype == PC__CUDA_F32;
    const double flop = 2 * (double)g->batch * (double)g->m * (double)g->n * (double)g->k;
    const double tiles = (double)g->batch * ceil((double)g->m / TILE) * ceil((double)g->n / TILE);
    return flop / (single ? 100e12 : 45e12) + (double)g->k * ceil(tiles / multiprocessors) * (single ? 6e-9 : 2e-9);
}

bool pc__cuda_padded_suits(const pc__cuda_gemm *g, const pc__cuda_padded *plan, int multiprocessors)
{
    enum { FEW = 8 };                    /* rows or columns: memory is the floor, which a copy only raises */
    const size_t most = (size_t)2 << 30; /* logits of 16,384 tokens of GPT-2's 50,257 are 1.65e9 */
    const double launches = (plan->count > 0) + (plan->cut_size > 0) + (plan->rest.m > 0);
    return plan->bytes <= most && PC__MIN(g->m, g->n) >= FEW &&
           lost(g, multiprocessors) > launches * 1.5e-6 + 2 * (double)plan->bytes / 3e12;
}
