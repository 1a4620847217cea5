/* attention_call.c: the ops over attention.h's kernels. */
#include "cpu/level/attention.h"
#include "cpu/level/kernels.h"
#include "ops/attention.h"

static pc__matrices matrices(const pc_tensor *t)
{
    const int n = t->ndim - 2;
    pc__matrices m = {.data = pc__data(t), .row = t->strides[n], .column = t->strides[n + 1]};
    memcpy(m.batch, t->strides, (size_t)n * sizeof *m.batch);
    return m;
}

/* What both passes are told. The optional inputs begin at `more`. */
static pc__attention described(const pc_call *call, int more)
{
    const pc__attention_attributes *o = call->attributes;
    pc__attention_operands operands;
    pc__attention_take(&operands, o, call->in);
    const pc_tensor *q = operands.of[0], *k = operands.of[1], *v = operands.of[2];
    const int n = q->ndim - 2, base = more + o->masked;
    pc__attention a = {.dims = n,
                       .batches = pc__count(n, q->shape),
                       .l = q->shape[n],
                       .s = k->shape[n],
                       .e = q->shape[n + 1],
                       .ev = v->shape[n + 1],
                       .q = matrices(q),
                       .k = matrices(k),
                       .v = matrices(v),
                       .type = (pc_dtype)q->dtype,
                       .causal = o->causal,
                       .scale = o->scale,
                       .p = o->drawn.low,
                       .seed = o->drawn.seed,
                       .stream = o->drawn.stream};
    memcpy(a.shape, q->shape, (size_t)n * sizeof *a.shape);
    if (o->masked) {
        a.mask = matrices(call->in[more]);
        a.mask_type = (pc_dtype)call->in[more]->dtype;
    }
    if (call->n_in > base)
        a.stream += 4 * *(const uint64_t *)pc__data(call->in[base]);
    return a;
}

PC__KERNEL(attention)
{
    (void)stream;
    pc__attention a = described(call, pc__attention_inputs(call->attributes));
    a.y = matrices(call->out[0]);
    a.norms = pc_tensor_count(call->out[1]) ? pc__data(call->out[1]) : NULL;
    return call->in[0]->dtype == PC_F64 ? PC__K(attention_f64)(&a) : PC__K(attention_f32)(&a);
}

PC__KERNEL(attention_backward)
{
    (void)stream;
    const int n = pc__attention_inputs(call->attributes);
    pc__attention a = described(call, n + 3);
    pc__attention_operands gradients;
    pc__attention_take(&gradients, call->attributes, call->out);
    a.g = matrices(call->in[n]);
    a.y = matrices(call->in[n + 1]);
    a.norms = pc__data(call->in[n + 2]);
    a.dq = matrices(gradients.of[0]);
    a.dk = matrices(gradients.of[1]);
    a.dv = matrices(gradients.of[2]);
    return call->in[0]->dtype == PC_F64 ? PC__K(attention_backward_f64)(&a) : PC__K(attention_backward_f32)(&a);
}
