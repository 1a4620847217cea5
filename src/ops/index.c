/* index.c: whole rows by an index along a dimension: picked, added, replaced. */
#include "ops/index.h"

#include "ops/table.h"
#include "ops/view.h"

pc_tensor *pc__places(const char *who, pc_tensor *index)
{
    if (!index)
        return NULL;
    if (index->dtype != PC_I64 && index->dtype != PC_I32)
        return pc__null(PC_ERR_ARGUMENT, "%s: the index is %s; it must be int64 or int32", who,
                        pc_dtype_name(index->dtype));
    return pc_contiguous(pc__as_dtype(index, PC_I64));
}

pc_status pc__infer_as_first(pc_call *call, pc__meta *out)
{
    const pc_tensor *t = call->in[0];
    pc__meta_contiguous(&out[0], t->dtype, t->ndim, t->shape);
    return PC_OK;
}

/* --- picking --- */

/* A copy pays where little of it is left out, and is worth a launch. */
pc_tensor *pc__pickable(pc_tensor *t, int64_t picked)
{
    enum { FEW = 65536, PART = 4 };
    if (!t || t->storage->device.type != PC_CUDA)
        return pc_contiguous(t);
    const int64_t count = pc_tensor_count(t);
    return count <= FEW || picked <= count / PART ? t : pc_contiguous(t);
}

/* Elements that a list of entries names. */
static int64_t picked_of(const pc_tensor *t, int64_t dim, const pc_tensor *index)
{
    return t->shape[dim] ? pc_tensor_count(t) / t->shape[dim] * pc_tensor_count(index) : 0;
}

static bool is_list(const char *who, const pc_tensor *index)
{
    if (index->ndim <= 1 && (index->dtype == PC_I64 || index->dtype == PC_I32))
        return true;
    (void)pc__fail(PC_ERR_ARGUMENT, "%s: the index is %s %s; it must be int64 or int32 with one dimension, or zero-dim",
                   who, pc_dtype_name(index->dtype), PC__SHAPE_OF(index));
    return false;
}

/* On the CPU dense memory in another order is picked from as it lies, and what is picked put in C order, where that is less. */
static bool is_picked_as_it_lies(const pc_tensor *t, int dim, const pc_tensor *index)
{
    return t->storage->device.type != PC_CUDA && !pc__is_contiguous(t) && pc__is_dense(t) &&
           picked_of(t, dim, index) <= pc_tensor_count(t);
}

static pc_tensor *picked_as_it_lies(pc_tensor *t, int dim, pc_tensor *places)
{
    const pc_shape order = pc__dims_by_stride(t), back = pc__order_back(&order);
    const pc__index_attributes attributes = {.dim = (int)back.dim[dim], .skip = -1};
    pc_tensor *picked = PC__CALL(index_select, &attributes, pc_permute(t, order), places);
    return pc_contiguous(pc_permute(picked, back));
}

pc_tensor *pc_index_select(pc_tensor *a, int dim, pc_tensor *index)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, index);
    if (!is_list("index_select", index))
        return NULL;
    const pc__index_attributes attributes = {.dim = pc__dim("index_select", dim, a->ndim), .skip = -1};
    if (attributes.dim < 0)
        return NULL;
    if (a->ndim == 0 && pc_tensor_count(index) != 1)
        return pc__null(PC_ERR_SHAPE, "index_select: an index of shape %s for a zero-dim tensor; it must name one",
                        PC__SHAPE_OF(index));
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *places = pc__places("index_select", pc_reshape(index, PC_SHAPE(-1)));
        pc_tensor *list = a->ndim ? a : pc_reshape(a, PC_SHAPE(1));
        pc_tensor *picked = !list || !places ? NULL
                            : is_picked_as_it_lies(list, attributes.dim, index)
                                ? picked_as_it_lies(list, attributes.dim, places)
                                : PC__CALL(index_select, &attributes,
                                           pc__pickable(list, picked_of(list, attributes.dim, index)), places);
        result = pc_keep(a->ndim ? picked : pc_reshape(picked, PC_SHAPE_SCALAR));
    }
    return result;
}

pc_status pc__infer_index_select(pc_call *call, pc__meta *out)
{
    const pc__index_attributes *a = call->attributes;
    const pc_tensor *t = call->in[0];
    int64_t shape[PC_MAX_DIMS];
    memcpy(shape, t->shape, sizeof shape);
    shape[a->dim] = call->in[1]->shape[0];
    pc__meta_contiguous(&out[0], t->dtype, t->ndim, shape);
    return PC_OK;
}

/* Embedding's too. The size is that of what was picked from. */
pc_status pc__grad_index_select(pc__grad *grad)
{
    pc__index_attributes a = *(const pc__index_attributes *)grad->attributes;
    a.size = grad->in_meta[0].shape[a.dim];
    return pc__set_grad(grad, 0, PC__CALL(index_select_backward, &a, pc_contiguous(grad->out_grad[0]), grad->in[1]));
}

/* gather_backward's too. */
pc_status pc__infer_index_select_backward(pc_call *call, pc__meta *out)
{
    const pc__index_attributes *a = call->attributes;
    const pc_tensor *t = call->in[0];
    int64_t shape[PC_MAX_DIMS];
    memcpy(shape, t->shape, sizeof shape);
    shape[a->dim] = a->size;
    pc__meta_contiguous(&out[0], t->dtype, t->ndim, shape);
    return PC_OK;
}

static pc_tensor *pick_rows(pc_tensor *weight, pc_tensor *indices, const pc__index_attributes *attributes)
{
    pc_shape shape = {.ndim = indices->ndim + 1};
    memcpy(shape.dim, indices->shape, sizeof indices->shape);
    shape.dim[indices->ndim] = weight->shape[1];
    const pc_shape line = PC_SHAPE(pc_tensor_count(indices));
    pc_tensor *places = pc__places("embedding", pc_reshape(indices, line));
    pc_tensor *from = pc__pickable(weight, picked_of(weight, 0, indices));
    return pc_reshape(PC__CALL(embedding, attributes, from, places), shape);
}

pc_tensor *pc_fn_embedding(pc_tensor *weight, pc_tensor *indices, pc_fn_embedding_options options)
{
    PC__NEED_OR(NULL, weight);
    PC__NEED_OR(NULL, indices);
    if (weight->ndim != 2)
        return pc__null(PC_ERR_SHAPE, "embedding: the weight has the shape %s; it must be [rows, columns]",
                        PC__SHAPE_OF(weight));
    if (indices->ndim == PC_MAX_DIMS)
        return pc__null(PC_ERR_SHAPE, "embedding: indices of %d dimensions; the result has one more than the most",
                        PC_MAX_DIMS);
    pc__index_attributes attributes = {.skip = -1};
    if (options.padded) {
        const int64_t rows = weight->shape[0], row = options.padding_idx;
        if (row < -rows || row >= rows)
            return pc__null(PC_ERR_RANGE, "embedding: padding_idx is %lld; it must be %lld to %lld", (long long)row,
                            (long long)-rows, (long long)rows - 1);
        attributes.skip = row < 0 ? row + rows : row;
    }
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(pick_rows(weight, indices, &attributes));
    }
    return result;
}

/* --- adding and replacing --- */

/* a with the rows of `source` put in at index[i] along dim, by index_add or index_copy. */
static pc_tensor *put_rows(int op, pc_tensor *a, int dim, pc_tensor *index, pc_tensor *source)
{
    const char *who = pc__ops[op].name;
    if (!is_list(who, index))
        return NULL;
    const pc__index_attributes attributes = {.dim = pc__dim(who, dim, a->ndim), .skip = -1};
    if (attributes.dim < 0)
        return NULL;
    if (source->dtype != a->dtype)
        return pc__null(PC_ERR_DTYPE, "%s: %s rows into a %s tensor; pc_cast one of them", who,
                        pc_dtype_name(source->dtype), pc_dtype_name(a->dtype));
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *list = a->ndim ? a : pc_reshape(a, PC_SHAPE(1));
        const bool as_list = source->ndim == 0 && (a->ndim == 0 || op == PC__OP_index_copy);
        pc_tensor *rows = as_list ? pc_reshape(source, PC_SHAPE(1)) : source;
        bool fits = list && rows && rows->ndim == list->ndim && (a->ndim > 0 || as_list || op == PC__OP_index_copy);
        for (int i = 0; fits && i < list->ndim; i++)
            fits = rows->shape[i] == (i == attributes.dim ? pc_tensor_count(index) : list->shape[i]);
        if (list && rows && !fits)
            (void)pc__fail(PC_ERR_SHAPE,
                           "%s: rows of shape %s, by %lld indices along dimension %lld, into a tensor of shape %s", who,
                           PC__SHAPE_OF(source), (long long)pc_tensor_count(index), (long long)attributes.dim,
                           PC__SHAPE_OF(a));
        if (!fits)
            break;
        pc_tensor *in[3] = {pc_contiguous(list), pc__places(who, pc_reshape(index, PC_SHAPE(pc_tensor_count(index)))),
                            pc_contiguous(rows)};
        pc_tensor *put = pc__call(op, in, 3, &attributes, sizeof attributes);
        result = pc_keep(a->ndim ? put : pc_reshape(put, PC_SHAPE_SCALAR));
    }
    return result;
}

pc_tensor *pc_index_add(pc_tensor *a, int dim, pc_tensor *index, pc_tensor *source)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, index);
    PC__NEED_OR(NULL, source);
    return put_rows(PC__OP_index_add, a, dim, index, source);
}

pc_tensor *pc_index_copy(pc_tensor *a, int dim, pc_tensor *index, pc_tensor *source)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, index);
    PC__NEED_OR(NULL, source);
    return put_rows(PC__OP_index_copy, a, dim, index, source);
}

/* An index from the end is one from the start; what is out of range stays what it is. */
static pc_tensor *from_start(pc_tensor *index, int64_t n)
{
    if (!index)
        return NULL;
    const pc_device device = index->storage->device;
    pc_tensor *is_from_end =
        pc_logical_and(pc_lt(index, pc_scalar(0, PC_I64, device)), pc_ge(index, pc_scalar((double)-n, PC_I64, device)));
    return pc_where(is_from_end, pc_add_scalar(index, (double)n), index);
}

pc_tensor *pc_index_put(pc_tensor *a, pc_tensor *index, pc_tensor *values, bool accumulate)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, index);
    PC__NEED_OR(NULL, values);
    if (a->ndim == 0 || a->ndim - 1 + index->ndim > PC_MAX_DIMS)
        return pc__null(PC_ERR_SHAPE, "index_put: a tensor of shape %s by an index of shape %s has no rows",
                        PC__SHAPE_OF(a), PC__SHAPE_OF(index));
    pc_shape shape = {.ndim = index->ndim + a->ndim - 1}, rows = {.ndim = a->ndim};
    memcpy(shape.dim, index->shape, (size_t)index->ndim * sizeof *shape.dim);
    memcpy(shape.dim + index->ndim, a->shape + 1, (size_t)(a->ndim - 1) * sizeof *shape.dim);
    memcpy(rows.dim, a->shape, sizeof a->shape);
    rows.dim[0] = pc_tensor_count(index);
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *places = pc__places("index_put", pc_reshape(index, PC_SHAPE(pc_tensor_count(index))));
        pc_tensor *all = places ? pc_reshape(pc_expand(values, shape), rows) : NULL;
        if (all)
            result = pc_keep(put_rows(accumulate ? PC__OP_index_add : PC__OP_index_copy, a, 0,
                                      from_start(places, a->shape[0]), all));
    }
    return result;
}

static pc_status grad_rows(pc__grad *grad)
{
    const pc__index_attributes *a = grad->attributes;
    if (!grad->needs[2])
        return PC_OK;
    return pc__set_grad(grad, 2, PC__CALL(index_select, a, pc_contiguous(grad->out_grad[0]), grad->in[1]));
}

pc_status pc__grad_index_add(pc__grad *grad)
{
    if (grad->needs[0])
        PC__TRY(pc__set_grad(grad, 0, grad->out_grad[0]));
    return grad_rows(grad);
}

/* What was replaced has no gradient. Of several rows at one place each gets that place's, as in PyTorch. */
pc_status pc__grad_index_copy(pc__grad *grad)
{
    const pc__index_attributes *a = grad->attributes;
    const pc__meta *rows = &grad->in_meta[2];
    if (grad->needs[0]) {
        pc_tensor *zeros = pc_zeros(pc_shape_of(rows->ndim, rows->shape), rows->dtype, grad->device);
        pc_tensor *g = pc_contiguous(grad->out_grad[0]);
        PC__TRY(pc__set_grad(grad, 0, PC__CALL(index_copy, a, g, grad->in[1], zeros)));
    }
    return grad_rows(grad);
}
