/* elementwise.c: what several ops share: inputs brought to one dtype; shape rules: as the input, broadcast, checked by
 * the wrapper. */
#include "ops/table.h"

void pc__meta_like(pc__meta *meta, const pc_tensor *t, pc_dtype dtype)
{
    pc__meta_contiguous(meta, dtype, t->ndim, t->shape);
    if (!pc__is_contiguous(t) && pc__is_dense(t))
        memcpy(meta->strides, t->strides, sizeof meta->strides);
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

static bool has_shape(const pc_tensor *t, int ndim, const int64_t *shape)
{
    return t->ndim == ndim && memcmp(t->shape, shape, (size_t)ndim * sizeof *shape) == 0;
}

/* The result has the memory order of the first dense input of its shape. */
pc_status pc__infer_binary(pc_call *call, pc__meta *out)
{
    if (call->n_in == 1)
        return pc__infer_unary(call, out);
    const pc_tensor *a = call->in[0], *b = call->in[1];
    if (pc__same_shape(a, b)) {
        pc__meta_like(&out[0], pc__is_dense(a) ? a : b, a->dtype);
        return PC_OK;
    }
    int ndim;
    int64_t shape[PC_MAX_DIMS];
    PC__TRY(pc__broadcast(call->op->name, a, b, &ndim, shape));
    const pc_tensor *whole = has_shape(a, ndim, shape) ? a : has_shape(b, ndim, shape) ? b : NULL;
    if (whole)
        pc__meta_like(&out[0], whole, a->dtype);
    else
        pc__meta_contiguous(&out[0], a->dtype, ndim, shape);
    return PC_OK;
}

pc_status pc__infer_in_place(pc_call *call, pc__meta *out)
{
    (void)call, (void)out;
    return PC_OK;
}
