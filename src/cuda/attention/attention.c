/* attention.c: scaled dot-product attention and its gradients: what a call asks for, for the rows that may do it. */
#include "cuda/attention/choose.h"

#include "cuda/pointwise/each.h"
#include "ops/attention.h"

#include <limits.h>

static pc__cuda_matrices matrices(const pc_tensor *t)
{
    const int n = t->ndim - 2;
    pc__cuda_matrices m = {.data = pc__data(t), .row = t->strides[n], .column = t->strides[n + 1]};
    memcpy(m.batch, t->strides, (size_t)n * sizeof *m.batch);
    return m;
}

/* Numbers that kernels count in an int, or with blocks of a grid. */
static pc_status check(const pc_call *call)
{
    pc__attention_operands o;
    pc__attention_take(&o, call->attributes, call->in);
    const pc_tensor *q = o.of[0], *k = o.of[1], *v = o.of[2];
    const int n = q->ndim - 2;
    const int64_t sizes[] = {q->shape[n], k->shape[n], q->shape[n + 1], v->shape[n + 1]};
    const int64_t rows = pc__count(n, q->shape) * ((PC__MAX(sizes[0], sizes[1]) + 15) / 16);
    for (int i = 0; i < 4; i++)
        if (sizes[i] > INT_MAX / 4 || rows > INT_MAX / 2)
            return pc__fail(PC_ERR_SHAPE,
                            "attention: q %s, k %s and v %s are too large for CUDA's grids; cut the batch",
                            PC__SHAPE_OF(q), PC__SHAPE_OF(k), PC__SHAPE_OF(v));
    return PC_OK;
}

/* What both passes are told. The optional inputs begin at `more`. */
static pc__cuda_attention described(pc_stream *stream, const pc_call *call, int more)
{
    const pc__attention_attributes *o = call->attributes;
    pc__attention_operands operands;
    pc__attention_take(&operands, o, call->in);
    const pc_tensor *q = operands.of[0], *k = operands.of[1], *v = operands.of[2];
    const int n = q->ndim - 2, base = more + o->masked;
    pc__cuda_attention a = {.dtype = q->dtype,
                            .early = pc__cuda_early(stream),
                            .dims = n,
                            .batches = pc__count(n, q->shape),
                            .l = (int)q->shape[n],
                            .s = (int)k->shape[n],
                            .e = (int)q->shape[n + 1],
                            .ev = (int)v->shape[n + 1],
                            .causal = o->causal,
                            .q = matrices(q),
                            .k = matrices(k),
                            .v = matrices(v),
                            .scale = o->scale,
                            .p = o->drawn.low,
                            .seed = o->drawn.seed,
                            .stream = o->drawn.stream,
                            .base = call->n_in > base ? pc__data(call->in[base]) : NULL,
                            .queue = pc__cuda_queue(stream)};
    memcpy(a.shape, q->shape, (size_t)n * sizeof *a.shape);
    if (o->masked) {
        a.mask = matrices(call->in[more]);
        a.mask_is_bool = call->in[more]->dtype == PC_BOOL;
    }
    return a;
}

/* While a recording prepares, choices are made, and cuDNN has something to prepare. */
static pc_status run(pc_stream *stream, const pc_call *call, const pc__attention_problem *p)
{
    const pc__rows *rows = p->backward ? &pc__attention_backward_rows : &pc__attention_rows;
    const pc__row *row;
    bool done = false;
    PC__TRY(pc__attention_choose(stream, call, p, &row));
    if (!((const pc__cuda_stream *)stream->implementation)->prepares)
        return pc__rows_run_by(rows, row, stream, call, p);
    row = row ? row : pc__rows_pick(rows, stream, p);
    const bool cudnn = row && row->supports == pc__attention_cudnn_supports;
    return cudnn ? pc__attention_cudnn_run(stream, call, p, NULL, &done) : PC_OK;
}

PC__CUDA_KERNEL(attention)
{
    PC__TRY(check(call));
    pc__attention_problem p = {described(stream, call, pc__attention_inputs(call->attributes)), false};
    p.a.y = matrices(call->out[0]);
    p.a.norms = pc_tensor_count(call->out[1]) ? pc__data(call->out[1]) : NULL;
    return run(stream, call, &p);
}

PC__CUDA_KERNEL(attention_backward)
{
    const int n = pc__attention_inputs(call->attributes);
    PC__TRY(check(call));
    pc__attention_problem p = {described(stream, call, n + 3), true};
    pc__attention_operands gradients;
    pc__attention_take(&gradients, call->attributes, call->out);
    p.a.g = matrices(call->in[n]);
    p.a.y = matrices(call->in[n + 1]);
    p.a.norms = pc__data(call->in[n + 2]);
    p.a.dq = matrices(gradients.of[0]);
    p.a.dk = matrices(gradients.of[1]);
    p.a.dv = matrices(gradients.of[2]);
    return run(stream, call, &p);
}
