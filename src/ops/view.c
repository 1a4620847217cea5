/* view.c: reshape and its kin. The wrapper works out the new shape and strides; the op makes the view and its gradient.
 */
#include "ops/view.h"

#include "ops/table.h"

/* Fill in -1 and check the number of elements. */
static pc_status resolve(const pc_tensor *t, pc_shape *shape)
{
    int64_t known = 1, count = pc_tensor_count(t);
    int unknown = -1;
    bool bad = false;
    PC__TRY(pc__ndim_check("reshape", shape->ndim));
    for (int i = 0; i < shape->ndim; i++) {
        if (shape->dim[i] == -1 && unknown < 0)
            unknown = i;
        else if (shape->dim[i] < 0)
            bad = true;
        else if (__builtin_mul_overflow(known, shape->dim[i], &known))
            bad = true;
    }
    if (!bad && unknown >= 0 && known > 0 && count % known == 0)
        shape->dim[unknown] = count / known, known = count;
    else
        bad |= unknown >= 0;
    if (bad || known != count)
        return pc__fail(PC_ERR_SHAPE, "reshape: a tensor of shape %s (%lld elements) cannot become %s", PC__SHAPE_OF(t),
                        (long long)count, pc__shape_format(shape->ndim, shape->dim).s);
    return PC_OK;
}

/* Strides that show t in `shape` without a copy; false where there are none. Both lists of dimensions are cut into
 * the smallest groups of equal size; a group works when t's dimensions in it lie behind one another in memory. */
static bool view_strides(const pc_tensor *t, const pc_shape *shape, int64_t *strides)
{
    int from = 0, to = 0;
    while (to < shape->ndim || from < t->ndim) {
        int from_start = from, to_start = to;
        int64_t a = from < t->ndim ? t->shape[from++] : 1, b = to < shape->ndim ? shape->dim[to++] : 1;
        while (a != b) {
            if (a < b && from < t->ndim)
                a *= t->shape[from++];
            else if (to < shape->ndim)
                b *= shape->dim[to++];
            else
                return false;
        }
        int64_t stride = 1, last = -1;
        for (int i = from - 1; i >= from_start; i--) {
            if (t->shape[i] == 1)
                continue;
            if (last < 0)
                stride = t->strides[i];
            else if (t->strides[i] != last)
                return false;
            last = t->strides[i] * t->shape[i];
        }
        for (int i = to - 1; i >= to_start; i--) {
            strides[i] = stride;
            stride *= shape->dim[i];
        }
    }
    return true;
}

static pc_tensor *view(pc_tensor *t, const pc_shape *shape, const int64_t *strides)
{
    pc__shape_attributes attributes = {.ndim = shape->ndim};
    memcpy(attributes.dim, shape->dim, sizeof attributes.dim);
    memcpy(attributes.strides, strides, sizeof attributes.strides);
    return PC__CALL(view, &attributes, t);
}

pc_tensor *pc_reshape(pc_tensor *t, pc_shape shape)
{
    PC__NEED_OR(NULL, t);
    if (resolve(t, &shape) != PC_OK)
        return NULL;
    int64_t strides[PC_MAX_DIMS] = {0};
    if (pc_tensor_count(t) == 0) {
        pc__meta meta;
        pc__meta_contiguous(&meta, t->dtype, shape.ndim, shape.dim);
        return view(t, &shape, meta.strides);
    }
    if (view_strides(t, &shape, strides))
        return view(t, &shape, strides);
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *dense = pc_contiguous(t);
        if (dense && view_strides(dense, &shape, strides))
            result = pc_keep(view(dense, &shape, strides));
    }
    return result;
}

pc_status pc__infer_view(pc_call *call, pc__meta *out)
{
    const pc__shape_attributes *a = call->attributes;
    pc__meta_of(&out[0], call->in[0]);
    out[0].ndim = a->ndim;
    memcpy(out[0].shape, a->dim, sizeof out[0].shape);
    memcpy(out[0].strides, a->strides, sizeof out[0].strides);
    return PC_OK;
}

pc_status pc__grad_view(pc__grad *grad)
{
    return pc__set_grad(grad, 0,
                        pc_reshape(grad->out_grad[0], pc_shape_of(grad->in_meta[0].ndim, grad->in_meta[0].shape)));
}

pc_tensor *pc_permute(pc_tensor *t, pc_shape order)
{
    PC__NEED_OR(NULL, t);
    pc__shape_attributes attributes = {.ndim = order.ndim};
    unsigned seen = 0;
    if (pc__ndim_check("permute", order.ndim) != PC_OK)
        return NULL;
    for (int i = 0; i < order.ndim; i++) {
        int64_t d = order.dim[i] < 0 ? order.dim[i] + t->ndim : order.dim[i];
        attributes.dim[i] = d;
        seen |= d >= 0 && d < t->ndim ? 1u << d : 0;
    }
    if (order.ndim != t->ndim || seen != (1u << t->ndim) - 1)
        return pc__null(PC_ERR_SHAPE, "permute: %s is no order of the %d dimensions of a tensor of shape %s",
                        pc__shape_format(order.ndim, order.dim).s, t->ndim, PC__SHAPE_OF(t));
    return PC__CALL(permute, &attributes, t);
}

pc_status pc__infer_permute(pc_call *call, pc__meta *out)
{
    const pc__shape_attributes *a = call->attributes;
    const pc_tensor *t = call->in[0];
    pc__meta_of(&out[0], t);
    for (int i = 0; i < a->ndim; i++) {
        out[0].shape[i] = t->shape[a->dim[i]];
        out[0].strides[i] = t->strides[a->dim[i]];
    }
    return PC_OK;
}

pc_status pc__grad_permute(pc__grad *grad)
{
    const pc__shape_attributes *a = grad->attributes;
    pc_shape back = {.ndim = a->ndim};
    for (int i = 0; i < a->ndim; i++)
        back.dim[a->dim[i]] = i;
    return pc__set_grad(grad, 0, pc_permute(grad->out_grad[0], back));
}

pc_tensor *pc_transpose(pc_tensor *t, int dim0, int dim1)
{
    PC__NEED_OR(NULL, t);
    int a = pc__dim("transpose", dim0, t->ndim), b = pc__dim("transpose", dim1, t->ndim);
    if (a < 0 || b < 0)
        return NULL;
    pc_shape order = {.ndim = t->ndim};
    for (int i = 0; i < t->ndim; i++)
        order.dim[i] = i == a ? b : i == b ? a : i;
    return pc_permute(t, order);
}

pc_tensor *pc_squeeze(pc_tensor *t, int dim)
{
    PC__NEED_OR(NULL, t);
    int d = pc__dim("squeeze", dim, t->ndim);
    if (d < 0)
        return NULL;
    pc_shape shape = {0};
    for (int i = 0; i < t->ndim; i++)
        if (i != d || t->shape[i] != 1)
            shape.dim[shape.ndim++] = t->shape[i];
    return pc_reshape(t, shape);
}

pc_tensor *pc_unsqueeze(pc_tensor *t, int dim)
{
    PC__NEED_OR(NULL, t);
    int d = pc__dim("unsqueeze", dim, t->ndim + 1);
    if (d < 0)
        return NULL;
    if (t->ndim == PC_MAX_DIMS)
        return pc__null(PC_ERR_SHAPE, "unsqueeze: the tensor has %d dimensions already, the most there are",
                        PC_MAX_DIMS);
    pc_shape shape = {.ndim = t->ndim + 1};
    for (int i = 0; i < shape.ndim; i++)
        shape.dim[i] = i == d ? 1 : t->shape[i > d ? i - 1 : i];
    return pc_reshape(t, shape);
}

pc_tensor *pc_flatten_from(pc_tensor *t, int start_dim)
{
    PC__NEED_OR(NULL, t);
    int d = pc__dim("flatten", start_dim, t->ndim);
    if (d < 0)
        return NULL;
    pc_shape shape = {.ndim = d + 1};
    memcpy(shape.dim, t->shape, sizeof shape.dim);
    shape.dim[d] = pc__count(t->ndim - d, t->shape + d);
    return pc_reshape(t, shape);
}
