/* slice.c: every step-th element along a dimension, and repetition along dimensions of size 1. */
#include "ops/table.h"
#include "ops/view.h"

static int64_t clamp_index(int64_t i, int64_t n)
{
    if (i < 0)
        i += n;
    return PC__MIN(PC__MAX(i, 0), n);
}

pc_tensor *pc_slice(pc_tensor *t, int dim, int64_t start, int64_t stop, int64_t step)
{
    PC__NEED_OR(NULL, t);
    int d = pc__dim("slice", dim, t->ndim);
    if (d < 0)
        return NULL;
    if (t->ndim == 0 || step < 1)
        return pc__null(PC_ERR_ARGUMENT, "slice: %s",
                        step < 1 ? "the step must be at least 1" : "a zero-dim tensor has nothing to slice");
    int64_t n = t->shape[d], from = clamp_index(start, n), to = clamp_index(stop, n);
    int64_t count = to > from ? (to - from - 1) / step + 1 : 0;
    pc__slice_attributes attributes = {d, from, count > 1 ? step : 1, count}; /* no stride beyond the tensor */
    return PC__CALL(slice, &attributes, t);
}

pc_status pc__infer_slice(pc_call *call, pc__meta *out)
{
    const pc__slice_attributes *a = call->attributes;
    pc__meta_of(&out[0], call->in[0]);
    out[0].offset += a->count ? a->start * out[0].strides[a->dim] : 0;
    out[0].shape[a->dim] = a->count;
    out[0].strides[a->dim] *= a->step;
    return PC_OK;
}

pc_status pc__grad_slice(pc__grad *grad)
{
    const pc__slice_attributes *a = grad->attributes;
    const pc__meta *in = &grad->in_meta[0];
    pc_tensor *whole = pc_zeros(pc_shape_of(in->ndim, in->shape), in->dtype, grad->device);
    pc_tensor *part = PC__CALL(slice, a, whole);
    if (!part)
        return pc_error_last()->status;
    PC__TRY(pc_copy(part, grad->out_grad[0]));
    return pc__set_grad(grad, 0, whole);
}

pc_tensor *pc_expand(pc_tensor *t, pc_shape shape)
{
    PC__NEED_OR(NULL, t);
    if (pc__ndim_check("expand", shape.ndim) != PC_OK)
        return NULL;
    int lead = shape.ndim - t->ndim;
    bool fits = lead >= 0;
    pc__shape_attributes attributes = {.ndim = shape.ndim};
    for (int i = 0; fits && i < shape.ndim; i++) {
        int64_t own = i < lead ? 1 : t->shape[i - lead];
        attributes.dim[i] = shape.dim[i] == -1 && i >= lead ? own : shape.dim[i];
        fits = attributes.dim[i] >= 0 && (own == attributes.dim[i] || own == 1);
    }
    if (!fits)
        return pc__null(PC_ERR_SHAPE, "expand: a tensor of shape %s cannot be repeated to %s; only sizes of 1 repeat",
                        PC__SHAPE_OF(t), pc__shape_format(shape.ndim, shape.dim).s);
    if (pc__shape_check("expand", pc_shape_of(attributes.ndim, attributes.dim), t->dtype) != PC_OK)
        return NULL;
    return PC__CALL(expand, &attributes, t);
}

pc_status pc__infer_expand(pc_call *call, pc__meta *out)
{
    const pc__shape_attributes *a = call->attributes;
    const pc_tensor *t = call->in[0];
    pc__meta_of(&out[0], t);
    int lead = a->ndim - t->ndim;
    out[0].ndim = a->ndim;
    for (int i = 0; i < a->ndim; i++) {
        bool repeats = i < lead || (t->shape[i - lead] == 1 && a->dim[i] != 1);
        out[0].shape[i] = a->dim[i];
        out[0].strides[i] = repeats ? 0 : t->strides[i - lead];
    }
    return PC_OK;
}

pc_status pc__grad_expand(pc__grad *grad)
{
    return pc__set_grad(grad, 0, pc__sum_to(grad->out_grad[0], grad->in_meta[0].ndim, grad->in_meta[0].shape));
}
