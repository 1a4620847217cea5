/* softmax.c: softmax over a dimension, its logarithm, and their gradients. */
#include "cuda/reduce/softmax.h"

#include "cuda/reduce/cut.h"
#include "cuda/runtime/cuda.h"
#include "ops/softmax.h"

/* Short rows that are not whole accesses, but not so many that slabs would bring more at once: singly is sooner done. */
static bool is_singly(const pc__cuda_softmax_rows *r, size_t size)
{
    enum { HALF = 32 /* elements: half of the longest that slabs take */ };
    const int64_t most = r->n <= HALF ? 3 << 16 : size == 2 ? 5 << 16 : 3 << 19;
    return !r->whole && r->count * r->n <= most;
}

static pc_status run_rows(pc_stream *stream, const pc_call *call, const pc__cuda_softmax_columns *c,
                          enum pc__cuda_softmax_op op)
{
    enum { MANY = 128, SHORT = 64 };
    const size_t size = pc_dtype_size((pc_dtype)c->dtype);
    const uintptr_t at[] = {(uintptr_t)c->a, (uintptr_t)c->b, (uintptr_t)c->out};
    pc__cuda_softmax_rows r = {.dtype = c->dtype,
                               .early = c->early,
                               .count = c->outer,
                               .n = c->n,
                               .a = c->a,
                               .b = c->b,
                               .out = c->out,
                               .alike = ((at[0] ^ at[2]) | (at[1] ^ at[2])) % 16 == 0,
                               .few = c->few,
                               .queue = c->queue};
    r.whole = r.n * (int64_t)size % 16 == 0 && (at[0] | at[1] | at[2]) % 16 == 0;
    r.few |= r.n <= SHORT && is_singly(&r, size);
    if (r.n <= SHORT && !r.whole && !r.few) {
        pc__cuda_softmax_slabs(c, op);
        return pc__cuda_launched(call);
    }
    if (!pc__cuda_softmax_short(&r, op)) {
        const pc__cuda_cut cut = pc__cuda_cut_rows(r.count, r.n, size, MANY);
        r.parts = cut.parts;
        r.piece = cut.piece;
        const size_t number = size == 8 ? sizeof(double) : sizeof(float);
        r.between = r.parts > 1 ? pc__cuda_scratch(stream, (size_t)(r.count * r.parts) * 2 * number) : NULL;
        if (r.parts > 1 && !r.between)
            return PC_ERR_MEMORY;
        pc__cuda_softmax_long(&r, op);
    }
    return pc__cuda_launched(call);
}

/* As rows are cut (cut.h): four turns of a block or more to a piece, fewer where pieces would not be as many as a large GPU's
 * multiprocessors, and four pieces or more to a column. */
static void cut_columns(pc__cuda_softmax_columns *c)
{
    enum { TURNS = 4, LEAST = 4, MANY = 128 };
    const int64_t turn = (int64_t)PC__COLUMNS_THREADS / c->lanes * PC__COLUMNS_AT_ONCE;
    int64_t least = TURNS * turn;
    const bool few = c->blocks < MANY && c->n >= LEAST * least;
    while (least > turn && c->blocks * (c->n / least) < MANY)
        least /= 2;
    const int64_t parts = few ? PC__MIN((c->n + least - 1) / least, PC__CUT_BLOCKS / c->blocks) : 1;
    c->piece = (c->n + parts - 1) / parts;
    c->parts = (c->n + c->piece - 1) / c->piece;
}

static pc_status run_columns(pc_stream *stream, const pc_call *call, pc__cuda_softmax_columns *c,
                             enum pc__cuda_softmax_op op)
{
    for (c->lanes = 1; c->lanes < 32 && c->lanes < c->inner;)
        c->lanes *= 2;
    c->blocks = c->outer * ((c->inner + c->lanes - 1) / c->lanes);
    cut_columns(c);
    const size_t number = c->dtype == PC_F64 ? sizeof(double) : sizeof(float);
    const int64_t pieces = c->parts > 1 ? c->blocks * c->lanes * c->parts : 0;
    c->between = pieces ? pc__cuda_scratch(stream, (size_t)pieces * 2 * number) : NULL;
    if (pieces && !c->between)
        return PC_ERR_MEMORY;
    pc__cuda_softmax_down(c, op);
    return pc__cuda_launched(call);
}

/* What may be read where it is: few elements are all under way at once, whatever the order. Else accesses of a warp should
 * lie side by side, straight from memory or in slabs. */
static pc_status run_all_columns(pc_stream *stream, const pc_call *call, pc__cuda_softmax_columns *c, size_t size,
                                 enum pc__cuda_softmax_op op)
{
    enum { SIDE_BY_SIDE = 32, SHORT = 32 };
    const bool slab =
        c->inner < SIDE_BY_SIDE && c->n <= PC__SLAB_MOST && c->n * c->inner * (int64_t)size <= PC__SLAB_BYTES;
    if (slab && !(c->few && c->n <= SHORT))
        pc__cuda_softmax_slabs(c, op);
    else if (!pc__cuda_softmax_held(c, op))
        return run_columns(stream, call, c, op);
    return pc__cuda_launched(call);
}

static pc_status run(pc_stream *stream, const pc_call *call, enum pc__cuda_softmax_op op)
{
    const pc__view a = pc__cuda_view(call->in[0]), out = pc__cuda_view(call->out[0]);
    if (a.count == 0)
        return PC_OK;
    const pc__view b = call->n_in > 1 ? pc__cuda_view(call->in[1]) : a;
    const pc__softmax_attributes *along = call->attributes;
    pc__cuda_softmax_columns c = {.dtype = a.dtype,
                                  .early = pc__cuda_early(stream),
                                  .few = a.count <= PC__SOFTMAX_FEW,
                                  .outer = a.count / along->n / along->inner,
                                  .n = along->n,
                                  .inner = along->inner,
                                  .a = a.data,
                                  .b = b.data,
                                  .out = out.data,
                                  .queue = pc__cuda_queue(stream)};
    if (along->inner == 1)
        return run_rows(stream, call, &c, op);
    return run_all_columns(stream, call, &c, pc_dtype_size((pc_dtype)a.dtype), op);
}

pc_status pc__cuda_op_softmax(pc_stream *stream, const pc_call *call)
{
    return run(stream, call, PC__SOFTMAX);
}

pc_status pc__cuda_op_softmax_backward(pc_stream *stream, const pc_call *call)
{
    return run(stream, call, PC__SOFTMAX_BACKWARD);
}

pc_status pc__cuda_op_log_softmax(pc_stream *stream, const pc_call *call)
{
    return run(stream, call, PC__LOG_SOFTMAX);
}

pc_status pc__cuda_op_log_softmax_backward(pc_stream *stream, const pc_call *call)
{
    return run(stream, call, PC__LOG_SOFTMAX_BACKWARD);
}
