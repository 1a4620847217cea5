/* attention.c: scaled dot-product attention and its gradients: 16-bit numbers by matrix units where their sizes allow it, by
 * way of float32 where not; float32 and float64 by plain products. */
#include "cuda/attention/attention.h"

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
        if (sizes[i] > INT_MAX / 4 || rows > INT_MAX)
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

static bool wants_floats(const pc__cuda_attention *a)
{
    return pc__is_half((pc_dtype)a->dtype) && !pc__cuda_attention_has_units(a);
}

PC__CUDA_KERNEL(attention)
{
    PC__TRY(check(call));
    pc__cuda_attention a = described(stream, call, pc__attention_inputs(call->attributes));
    if (wants_floats(&a))
        return pc__cuda_in_floats(stream, call, pc__cuda_op_attention);
    a.y = matrices(call->out[0]);
    a.norms = pc_tensor_count(call->out[1]) ? pc__data(call->out[1]) : NULL;
    if (pc__is_half((pc_dtype)a.dtype))
        pc__cuda_attention_units(&a);
    else
        pc__cuda_attention_plain(&a);
    return pc__cuda_launched(call);
}

PC__CUDA_KERNEL(attention_backward)
{
    const int n = pc__attention_inputs(call->attributes);
    PC__TRY(check(call));
    pc__cuda_attention a = described(stream, call, n + 3);
    if (wants_floats(&a))
        return pc__cuda_in_floats(stream, call, pc__cuda_op_attention_backward);
    const size_t rows = (size_t)(a.batches * a.l), size = a.dtype == PC_F64 ? sizeof(double) : sizeof(float);
    pc__attention_operands gradients;
    pc__attention_take(&gradients, call->attributes, call->out);
    a.g = matrices(call->in[n]);
    a.y = matrices(call->in[n + 1]);
    a.norms = pc__data(call->in[n + 2]);
    a.dq = matrices(gradients.of[0]);
    a.dk = matrices(gradients.of[1]);
    a.dv = matrices(gradients.of[2]);
    a.means = rows ? pc__cuda_scratch(stream, rows * size) : NULL;
    if (rows && !a.means)
        return PC_ERR_MEMORY;
    if (rows)
        pc__cuda_attention_means(&a);
    if (pc__is_half((pc_dtype)a.dtype))
        pc__cuda_attention_units_backward(&a);
    else
        pc__cuda_attention_plain_backward(&a);
    return pc__cuda_launched(call);
}
