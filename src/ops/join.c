/* join.c: joining tensors along a dimension. */
#include "ops/join.h"

#include "ops/table.h"

/* Pictures that can be joined, whose channels are last in memory, or are one, or whose places are. */
static bool lie_by_channels(pc_tensor *const *tensors, int count, int dim)
{
    bool any = false;
    for (int i = 0; i < count; i++) {
        const pc_tensor *t = tensors[i];
        const bool last = pc__is_channels_last(t);
        for (int d = 0; d < t->ndim; d++)
            if (d != dim && (t->ndim != tensors[0]->ndim || t->shape[d] != tensors[0]->shape[d]))
                return false;
        if (!last && (t->ndim != 4 || !pc__is_contiguous(t) || (t->shape[1] != 1 && t->shape[2] * t->shape[3] != 1)))
            return false;
        any |= last;
    }
    return any;
}

/* In the order of [n, h, w, c], which the result keeps. NULL flows. */
static pc_tensor *joined_by_channels(pc_tensor **in, int count, int dim)
{
    static const int moved[4] = {0, 3, 1, 2};
    const pc__dim_attributes attributes = {moved[dim]};
    for (int i = 0; i < count; i++)
        in[i] = pc_permute(in[i], PC_SHAPE(0, 2, 3, 1));
    return pc_permute(pc__call(PC__OP_cat, in, count, &attributes, sizeof attributes), PC_SHAPE(0, 3, 1, 2));
}

pc_tensor *pc_cat(pc_tensor *const *tensors, int count, int dim)
{
    if (count < 1)
        return pc__null(PC_ERR_ARGUMENT, "cat: there must be at least one tensor");
    PC__NEED_OR(NULL, tensors);
    for (int i = 0; i < count; i++)
        if (!tensors[i])
            return pc__call(PC__OP_cat, (pc_tensor **)tensors, count, NULL, 0);
    pc__dim_attributes attributes = {pc__dim("cat", dim, tensors[0]->ndim)};
    if (attributes.dim < 0)
        return NULL;
    pc_dtype dtype = tensors[0]->dtype;
    for (int i = 1; i < count; i++)
        dtype = pc__join_dtypes(dtype, (pc_dtype)tensors[i]->dtype);
    pc_tensor **in = pc__alloc((size_t)count * sizeof *in), *result = NULL;
    if (!in)
        return NULL;
    PC_SCOPE {
        for (int i = 0; i < count; i++)
            in[i] = pc__as_dtype(tensors[i], dtype);
        result = pc_keep(lie_by_channels(tensors, count, attributes.dim)
                             ? joined_by_channels(in, count, attributes.dim)
                             : pc__call(PC__OP_cat, in, count, &attributes, sizeof attributes));
    }
    pc__free(in);
    return result;
}

pc_status pc__infer_cat(pc_call *call, pc__meta *out)
{
    const pc__dim_attributes *a = call->attributes;
    const pc_tensor *first = call->in[0];
    int64_t shape[PC_MAX_DIMS];
    memcpy(shape, first->shape, sizeof shape);
    if (first->ndim == 0)
        return pc__fail(PC_ERR_SHAPE, "cat: zero-dim tensors cannot be joined; pc_reshape them to [1] first");
    for (int i = 1; i < call->n_in; i++) {
        const pc_tensor *t = call->in[i];
        bool fits = t->ndim == first->ndim;
        for (int d = 0; fits && d < t->ndim; d++)
            fits = d == a->dim || t->shape[d] == first->shape[d];
        if (!fits)
            return pc__fail(PC_ERR_SHAPE, "cat: the shapes %s and %s differ outside dimension %d", PC__SHAPE_OF(first),
                            PC__SHAPE_OF(t), a->dim);
        if (__builtin_add_overflow(shape[a->dim], t->shape[a->dim], &shape[a->dim]))
            return pc__fail(PC_ERR_MEMORY, "cat: the result has more elements than any memory");
    }
    pc__meta_contiguous(&out[0], first->dtype, first->ndim, shape);
    return PC_OK;
}

pc_status pc__grad_cat(pc__grad *grad)
{
    const pc__dim_attributes *a = grad->attributes;
    int64_t at = 0;
    for (int i = 0; i < grad->n_in; i++) {
        int64_t n = grad->in_meta[i].shape[a->dim];
        if (grad->needs[i])
            PC__TRY(pc__set_grad(grad, i, pc_slice(grad->out_grad[0], a->dim, at, at + n, 1)));
        at += n;
    }
    return PC_OK;
}
