/* scatter.c: single elements by indices along a dimension. */
#include "ops/index.h"
#include "ops/table.h"

/* Along dim, a shape for what a zero-dim tensor is taken as, too. */
static pc_tensor *lined(pc_tensor *t)
{
    return t->ndim ? t : pc_reshape(t, PC_SHAPE(1));
}

/* PC_ERR_SHAPE unless the index has as many dimensions as t, and is nowhere longer but along dim where `free` says so. */
static bool covers(const char *who, const pc_tensor *t, const pc_tensor *index, int dim, bool free)
{
    bool fits = t->ndim == index->ndim;
    for (int i = 0; fits && i < t->ndim; i++)
        fits = index->shape[i] <= t->shape[i] || (free && i == dim);
    if (!fits)
        (void)pc__fail(PC_ERR_SHAPE, "%s: an index of shape %s along dimension %d for a tensor of shape %s", who,
                       PC__SHAPE_OF(index), dim, PC__SHAPE_OF(t));
    return fits;
}

/* The part of t that has the index's shape, but for dimension `dim` (-1: in all). NULL flows. */
static pc_tensor *cut_to(pc_tensor *t, const pc_tensor *index, int dim)
{
    for (int i = 0; t && i < index->ndim; i++)
        if (i != dim && t->shape[i] != index->shape[i])
            t = pc_slice(t, i, 0, index->shape[i], 1);
    return t;
}

/* Dimensions [from, end) as one: elements from one of it to the next; false where it is none in memory. */
static bool merged(const pc_tensor *t, int from, int end, int64_t *step)
{
    int64_t next = 0;
    bool any = false;
    *step = 0;
    for (int d = end - 1; d >= from; d--) {
        if (t->shape[d] == 1)
            continue;
        if (any && t->strides[d] != next)
            return false;
        *step = any ? *step : t->strides[d];
        next = t->strides[d] * t->shape[d];
        any = true;
    }
    return true;
}

bool pc__gather_strides(const pc_tensor *t, int dim, int64_t *outer, int64_t *along, int64_t *inner)
{
    *along = t->strides[dim];
    const bool outer_one = merged(t, 0, dim, outer);
    return merged(t, dim + 1, t->ndim, inner) && outer_one;
}

/* What is picked from where it lies, on CUDA if its rows are without gaps or little of it is read, elsewhere if that is known by
 * three strides; else without gaps. NULL flows. */
static pc_tensor *readable(pc_tensor *t, int dim, const pc_tensor *index)
{
    int64_t strides[3];
    if (!t)
        return NULL;
    if (t->storage->device.type == PC_CUDA)
        return t->strides[t->ndim - 1] == 1 ? t : pc__pickable(t, pc_tensor_count(index));
    return pc__gather_strides(t, dim, &strides[0], &strides[1], &strides[2]) ? t : pc_contiguous(t);
}

pc_tensor *pc_gather(pc_tensor *a, int dim, pc_tensor *index)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, index);
    const pc__index_attributes attributes = {.dim = pc__dim("gather", dim, a->ndim), .skip = -1};
    const pc_shape shape = pc_tensor_shape(index);
    if (attributes.dim < 0)
        return NULL;
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *from = lined(a), *at = lined(index);
        if (!from || !at || !covers("gather", from, at, (int)attributes.dim, true))
            break;
        pc_tensor *picked =
            PC__CALL(gather, &attributes, readable(cut_to(from, at, (int)attributes.dim), (int)attributes.dim, at),
                     pc__places("gather", at));
        result = pc_keep(pc_reshape(picked, shape));
    }
    return result;
}

pc_status pc__infer_gather(pc_call *call, pc__meta *out)
{
    const pc_tensor *index = call->in[1];
    pc__meta_contiguous(&out[0], call->in[0]->dtype, index->ndim, index->shape);
    return PC_OK;
}

pc_status pc__grad_gather(pc__grad *grad)
{
    pc__index_attributes a = *(const pc__index_attributes *)grad->attributes;
    a.size = grad->in_meta[0].shape[a.dim];
    return pc__set_grad(grad, 0, PC__CALL(gather_backward, &a, pc_contiguous(grad->out_grad[0]), grad->in[1]));
}

/* Where the index is shorter than a in a dimension but dim, what is behind it stays as it is. */
static pc_tensor *add_within(pc_tensor *a, const pc__index_attributes *attributes, pc_tensor *index, pc_tensor *source)
{
    for (int i = 0; a && i < index->ndim; i++) {
        const int64_t n = index->shape[i];
        if (i == attributes->dim || n == a->shape[i])
            continue;
        pc_tensor *parts[2] = {add_within(pc_slice(a, i, 0, n, 1), attributes, index, source),
                               pc_slice(a, i, n, PC_END_OF_DIM, 1)};
        return pc_cat(parts, 2, i);
    }
    return PC__CALL(scatter_add, attributes, pc_contiguous(a), index, source);
}

pc_tensor *pc_scatter_add(pc_tensor *a, int dim, pc_tensor *index, pc_tensor *source)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, index);
    PC__NEED_OR(NULL, source);
    const pc__index_attributes attributes = {.dim = pc__dim("scatter_add", dim, a->ndim), .skip = -1};
    if (attributes.dim < 0)
        return NULL;
    if (source->dtype != a->dtype)
        return pc__null(PC_ERR_DTYPE, "scatter_add: a %s source into a %s tensor; pc_cast one of them",
                        pc_dtype_name(source->dtype), pc_dtype_name(a->dtype));
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *to = lined(a), *at = lined(index), *from = lined(source);
        if (!to || !at || !from || !covers("scatter_add", to, at, (int)attributes.dim, true) ||
            !covers("scatter_add", from, at, (int)attributes.dim, false))
            break;
        pc_tensor *places = pc__places("scatter_add", at);
        pc_tensor *sum = places ? add_within(to, &attributes, places, pc_contiguous(cut_to(from, at, -1))) : NULL;
        result = pc_keep(a->ndim ? sum : pc_reshape(sum, PC_SHAPE_SCALAR));
    }
    return result;
}

pc_status pc__grad_scatter_add(pc__grad *grad)
{
    const pc__index_attributes *a = grad->attributes;
    if (grad->needs[0])
        PC__TRY(pc__set_grad(grad, 0, grad->out_grad[0]));
    if (!grad->needs[2])
        return PC_OK;
    return pc__set_grad(grad, 2, PC__CALL(gather, a, pc_contiguous(grad->out_grad[0]), grad->in[1]));
}

pc_tensor *pc_one_hot(pc_tensor *indices, int64_t classes)
{
    PC__NEED_OR(NULL, indices);
    if (classes < 1)
        return pc__null(PC_ERR_ARGUMENT, "one_hot: there is at least one class, not %lld", (long long)classes);
    if (indices->ndim == PC_MAX_DIMS)
        return pc__null(PC_ERR_SHAPE, "one_hot: indices of %d dimensions; the result has one more than the most",
                        PC_MAX_DIMS);
    const pc__index_attributes attributes = {.size = classes, .skip = -1};
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(PC__CALL(one_hot, &attributes, pc__places("one_hot", indices)));
    }
    return result;
}

pc_status pc__infer_one_hot(pc_call *call, pc__meta *out)
{
    const pc__index_attributes *a = call->attributes;
    const pc_tensor *t = call->in[0];
    int64_t shape[PC_MAX_DIMS];
    memcpy(shape, t->shape, sizeof shape);
    shape[t->ndim] = a->size;
    pc__meta_contiguous(&out[0], PC_I64, t->ndim + 1, shape);
    return PC_OK;
}
