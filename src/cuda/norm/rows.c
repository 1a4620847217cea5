/* rows.c: layer_norm and rms_norm. */
#include "cuda/norm/rows.h"

#include "cuda/pointwise/each.h"
#include "ops/norm.h"

static pc__cuda_vector vector_of(const pc_tensor *t, int dtype)
{
    return (pc__cuda_vector){pc__cuda_view(t).data, (int)t->dtype != dtype};
}

static bool lies_well(const void *at)
{
    return (uintptr_t)at % 16 == 0;
}

static pc__cuda_norm_rows rows_of(pc_stream *stream, const pc_call *call, const pc_tensor *x, const pc_tensor *y)
{
    const pc__layer_norm_attributes *a = call->attributes;
    const int64_t n = a->n;
    return (pc__cuda_norm_rows){.dtype = x->dtype,
                                .dtype_y = y->dtype,
                                .early = pc__cuda_early(stream),
                                .centered = a->centered,
                                .whole = n * (int64_t)pc_dtype_size((pc_dtype)x->dtype) % 16 == 0,
                                .pairs = n % 2 == 0 && pc__is_half((pc_dtype)x->dtype),
                                .rows = n ? pc__cuda_view(x).count / n : 0,
                                .n = n,
                                .eps = a->eps,
                                .x = pc__cuda_view(x).data,
                                .queue = pc__cuda_queue(stream)};
}

static void keep_accesses(pc__cuda_norm_rows *r, bool all_lie_well)
{
    r->whole &= all_lie_well;
    r->pairs &= all_lie_well;
}

static void set_statistics(pc__cuda_norm_rows *r, const pc_tensor *t)
{
    const pc__view kept = pc__cuda_view(t);
    if (kept.count == 0)
        return;
    const int64_t before = r->centered ? r->rows * (int64_t)pc_dtype_size((pc_dtype)kept.dtype) : 0;
    r->mean = r->centered ? kept.data : NULL;
    r->rstd = (char *)kept.data + before;
}

pc__cuda_vector_gradient pc__cuda_gradient_of(const pc_call *call, int i, const bool *needs)
{
    if (!needs[i])
        return (pc__cuda_vector_gradient){NULL, 0};
    const pc_tensor *to = call->out[i];
    return (pc__cuda_vector_gradient){pc__cuda_view(to).data, !pc__is_half((pc_dtype)to->dtype)};
}

/* Plans ask where rows lie before they have a normalisation add. */
static pc_status unplanned(const pc_call *call)
{
    return pc__fail(PC_ERR_BACKEND,
                    "%s: rows that something is added to do not lie on 16 bytes; PARACORD_PLAN=-norms does without",
                    call->op->name);
}

static pc_status forward(pc_stream *stream, const pc_call *call)
{
    const pc__layer_norm_attributes *a = call->attributes;
    pc__cuda_norm_rows r = rows_of(stream, call, call->in[0], call->out[0]);
    if (r.rows == 0 || r.n == 0)
        return PC_OK;
    if (a->has_weight)
        r.weight = vector_of(call->in[1], r.dtype);
    if (a->has_bias)
        r.bias = vector_of(call->in[1 + a->has_weight], r.dtype);
    if (a->adds) {
        r.added = pc__cuda_view(call->in[call->n_in - 1]).data;
        r.sum = pc__cuda_view(call->out[2]).data;
    }
    r.y = pc__cuda_view(call->out[0]).data;
    keep_accesses(&r, lies_well(r.x) && lies_well(r.y) && lies_well(r.weight.at) && lies_well(r.bias.at) &&
                          lies_well(r.added) && lies_well(r.sum));
    if (a->adds && !r.whole)
        return unplanned(call);
    set_statistics(&r, call->out[1]);
    pc__cuda_norm_forward(&r);
    return pc__cuda_launched(call);
}

PC__CUDA_KERNEL(layer_norm)
{
    return forward(stream, call);
}

PC__CUDA_KERNEL(rms_norm)
{
    return forward(stream, call);
}

PC__CUDA_KERNEL(layer_norm_backward)
{
    const pc__layer_norm_attributes *a = call->attributes;
    pc__cuda_norm_rows r = rows_of(stream, call, call->in[1], call->in[0]);
    if (r.n == 0)
        return PC_OK;
    if (a->has_weight)
        r.weight = vector_of(call->in[3], r.dtype);
    set_statistics(&r, call->in[2]);
    r.dx = a->needs[0] ? pc__cuda_view(call->out[0]).data : NULL;
    r.dweight = pc__cuda_gradient_of(call, 1, a->needs);
    r.dbias = pc__cuda_gradient_of(call, 2, a->needs);
    r.dy = pc__cuda_view(call->in[0]).data;
    r.added = a->adds ? pc__cuda_view(call->in[call->n_in - 1]).data : NULL;
    r.rounded = call->n_out > 3 ? pc__cuda_view(call->out[3]).data : NULL;
    keep_accesses(&r, lies_well(r.x) && lies_well(r.dy) && lies_well(r.weight.at) && lies_well(r.dx) &&
                          lies_well(r.added) && lies_well(r.rounded));
    if ((r.added || r.rounded) && !r.whole)
        return unplanned(call);
    r.blocks = r.dweight.at || r.dbias.at ? pc__cuda_norm_blocks(&r) : 0;
    const size_t number = r.dtype == PC_F64 ? sizeof(double) : sizeof(float);
    if (r.blocks && !(r.sums = pc__cuda_scratch(stream, (size_t)(r.blocks * 2 * r.n) * number)))
        return PC_ERR_MEMORY;
    pc__cuda_norm_backward(&r);
    return pc__cuda_launched(call);
}
