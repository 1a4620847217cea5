/* padded.c: what of a product is copied. Matrix units' kernels want the rows of all three matrices on 16 bytes, and so
 * whole packs of 16 bytes in each; cuBLASLt takes others by slower kernels. */
#include "cuda/matmul/padded.h"
#include "cuda/runtime/cuda.h"

#include <math.h>

/* An operand of rows and columns as it lies in memory: `inner` elements side by side, `outer` times. */
typedef struct operand {
    int64_t outer, inner, outer_stride, inner_stride, batch_stride;
    bool turned; /* inner are its rows */
    bool askew;
} operand;

static int64_t whole(int64_t n, int64_t pack)
{
    return (n + pack - 1) / pack * pack;
}

static operand operand_of(const void *data, int64_t batch, int64_t rows, int64_t columns, int64_t rs, int64_t cs,
                          int64_t batch_stride, int64_t pack)
{
    operand o = {columns, rows, cs, rs, batch > 1 ? batch_stride : 0, true, false};
    if (cs == 1 || rs != 1)
        o = (operand){rows, columns, rs, cs, o.batch_stride, false, false};
    o.askew = (uintptr_t)data % 16 != 0 || o.batch_stride % pack != 0 || (o.inner > 1 && o.inner_stride != 1) ||
              (o.outer > 1 && (o.outer_stride % pack != 0 || o.outer_stride < o.inner));
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
    plan->cut = (pc__cuda_cut){inner->c, g->c, g->batch, g->m, g->n, inner->m, inner->n};
    if (!g->bias || inner->n == g->n)
        return;
    const operand bias = {1, g->n, 0, 1, 0, false, true};
    int64_t strides[3];
    inner->bias = copied(plan, scratch, &bias, g->bias, 1, 1, inner->n, &strides[0], &strides[1], &strides[2]);
}

bool pc__cuda_padded_plan(const pc__cuda_gemm *g, char *scratch, pc__cuda_padded *plan)
{
    const int64_t most = 1 << 30;
    if (g->dtype == PC__CUDA_F64 || g->k == 0 || g->m > most || g->n > most || g->k > most)
        return false;
    *plan = (pc__cuda_padded){.inner = *g, .size = g->dtype == PC__CUDA_F32 ? 4 : 2};
    const int64_t pack = 16 / plan->size;
    const int size_c = g->wide ? 4 : plan->size;
    operand a = operand_of(g->a, g->batch, g->m, g->k, g->a_rs, g->a_cs, g->a_batch, pack);
    operand b = operand_of(g->b, g->batch, g->k, g->n, g->b_rs, g->b_cs, g->b_batch, pack);
    const bool ends = a.askew && a.turned && g->m % pack != 0; /* packs of a copied a that end beyond its rows */
    const bool askew_c = (uintptr_t)g->c % 16 != 0 || g->n * size_c % 16 != 0 || ends;
    if (!a.askew && !b.askew && !askew_c)
        return false;
    pc__cuda_gemm *inner = &plan->inner;
    if ((a.askew && !a.turned) || (b.askew && b.turned)) /* sums along rows: zeros behind both */
        inner->k = whole(g->k, pack);
    if (askew_c)
        inner->n = whole(g->n, pack);
    if (askew_c && a.askew && a.turned)
        inner->m = whole(g->m, pack);
    if (a.askew || inner->k != g->k)
        inner->a =
            copied(plan, scratch, &a, g->a, g->batch, inner->m, inner->k, &inner->a_rs, &inner->a_cs, &inner->a_batch);
    if (b.askew || inner->k != g->k || inner->n != g->n)
        inner->b =
            copied(plan, scratch, &b, g->b, g->batch, inner->k, inner->n, &inner->b_rs, &inner->b_cs, &inner->b_batch);
    if (askew_c)
        cut_back(plan, scratch, g, size_c);
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
    const double launches = (plan->count > 0) + (plan->cut_size > 0);
    return plan->bytes <= most && PC__MIN(g->m, g->n) >= FEW &&
           lost(g, multiprocessors) > launches * 1.5e-6 + 2 * (double)plan->bytes / 3e12;
}
