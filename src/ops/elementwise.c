/* elementwise.c: what several ops share: inputs brought to one dtype; shape rules: as the input, broadcast, checked by
 * the wrapper. */
#include "ops/table.h"

/* True when t's elements fill a block of memory without gaps or overlap, in whatever order. */
static bool is_dense(const pc_tensor *t)
{
    return pc__is_contiguous(t) || pc__is_channels_last(t);
}

void pc__meta_like(pc__meta *meta, const pc_tensor *t, pc_dtype dtype)
{
    if (pc__is_channels_last(t))
        pc__meta_channels_last(meta, dtype, t->shape);
    else
        pc__meta_contiguous(meta, dtype, t->ndim, t->shape);
}

pc_tensor *pc__call_as(int op, pc_tensor *a, pc_tensor *b, pc_dtype dtype)
{
    if (a->dtype == dtype && b->dtype == dtype)
        return pc__call(op, (pc_tensor *[]){a, b}, 2, NULL, 0);
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *in[2] = {pc__as_dtype(a, dtype), pc__as_dtype(b, dtype)};
        result = pc_keep(pc__call(op, in, 2, NULL, 0));
    }
    return result;
}

pc_status pc__infer_unary(pc_call *call, pc__meta *out)
{
    pc__meta_like(&out[0], call->in[0], call->in[0]->dtype);
    return PC_OK;
}

pc_status pc__infer_binary(pc_call *call, pc__meta *out)
{
    const pc_tensor *a = call->in[0], *b = call->in[1];
    if (pc__same_shape(a, b)) {
        pc__meta_like(&out[0], is_dense(a) ? a : b, a->dtype);
        return PC_OK;
    }
    int ndim;
    int64_t shape[PC_MAX_DIMS];
    PC__TRY(pc__broadcast(call->op->name, a, b, &ndim, shape));
    pc__meta_contiguous(&out[0], a->dtype, ndim, shape);
    return PC_OK;
}

pc_status pc__infer_in_place(pc_call *call, pc__meta *out)
{
    (void)call, (void)out;
    return PC_OK;
}
