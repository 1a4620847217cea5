/* attention_call.c: the ops over attention.h's kernels. 16-bit numbers come as float32. */
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
    const pc_tensor *q = call->in[0], *k = call->in[1], *v = call->in[2];
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
                       .causal = o->causal,
                       .scale = o->scale,
                       .p = o->drawn.low,
                       .seed = o->drawn.seed,
                       .stream = o->drawn.stream};
    memcpy(a.shape, q->shape, (size_t)n * sizeof *a.shape);
    if (o->masked) {
        a.mask = matrices(call->in[more]);
        a.mask_is_bool = call->in[more]->dtype == PC_BOOL;
    }
    if (call->n_in > base)
        a.stream += 4 * *(const uint64_t *)pc__data(call->in[base]);
    return a;
}

PC__KERNEL(attention)
{
    (void)stream;
    pc__attention a = described(call, 3);
    a.y = matrices(call->out[0]);
    a.norms =
        call->out[1]->ndim == call->in[0]->ndim - 1 && pc_tensor_count(call->out[1]) ? pc__data(call->out[1]) : NULL;
    return call->in[0]->dtype == PC_F64 ? PC__K(attention_f64)(&a) : PC__K(attention_f32)(&a);
}

PC__KERNEL(attention_backward)
{
    (void)stream;
    pc__attention a = described(call, 6);
    a.g = matrices(call->in[3]);
    a.y = matrices(call->in[4]);
    a.norms = pc__data(call->in[5]);
    a.dq = matrices(call->out[0]);
    a.dk = matrices(call->out[1]);
    a.dv = matrices(call->out[2]);
    return call->in[0]->dtype == PC_F64 ? PC__K(attention_backward_f64)(&a) : PC__K(attention_backward_f32)(&a);
}
