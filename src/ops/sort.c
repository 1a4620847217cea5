/* sort.c: order along a dimension, and places in it. */
#include "ops/index.h"
#include "ops/table.h"
#include "tensor/read.h"

/* The first `count` along dim of a stable sort; values and places where somebody wants them. */
static pc_status sort(pc_tensor *a, const pc__sort_attributes *attributes, pc_tensor **values, pc_tensor **indices)
{
    pc_tensor *out[PC__OUT_MAX] = {NULL}, **wanted[] = {values, indices};
    pc_status status = PC_ERR_MEMORY;
    PC_SCOPE {
        pc_tensor *t = pc_contiguous(a->ndim ? a : pc_reshape(a, PC_SHAPE(1)));
        status = t ? pc__call_all(PC__OP_sort, &t, 1, attributes, sizeof *attributes, out) : pc_error_last()->status;
        for (int i = 0; i < 2 && status == PC_OK; i++) {
            if (!wanted[i])
                continue;
            *wanted[i] = pc_keep(a->ndim ? out[i] : pc_reshape(out[i], PC_SHAPE_SCALAR));
            status = *wanted[i] ? PC_OK : pc_error_last()->status;
        }
    }
    for (int i = 0; i < 2 && status != PC_OK; i++)
        if (wanted[i])
            *wanted[i] = pc__tensor_discard(*wanted[i]);
    return status;
}

static pc_status attributes_of(const char *who, const pc_tensor *a, int dim, bool descending, pc__sort_attributes *to)
{
    const int d = pc__dim(who, dim, a->ndim);
    if (d < 0)
        return pc_error_last()->status;
    *to = (pc__sort_attributes){d, a->ndim ? a->shape[d] : 1, descending};
    return PC_OK;
}

pc_tensor *pc_sort(pc_tensor *a, int dim, bool descending, pc_tensor **indices)
{
    PC__NEED_OR(NULL, a);
    pc__sort_attributes attributes;
    pc_tensor *values = NULL;
    if (indices)
        *indices = NULL;
    return attributes_of("sort", a, dim, descending, &attributes) == PC_OK &&
                   sort(a, &attributes, &values, indices) == PC_OK
               ? values
               : NULL;
}

pc_tensor *pc_argsort(pc_tensor *a, int dim, bool descending)
{
    PC__NEED_OR(NULL, a);
    pc__sort_attributes attributes;
    pc_tensor *indices = NULL;
    return attributes_of("argsort", a, dim, descending, &attributes) == PC_OK &&
                   sort(a, &attributes, NULL, &indices) == PC_OK
               ? indices
               : NULL;
}

/* Lists whose elements lie side by side in a tensor that is turned: what is kept of them is less to turn than they are. */
static bool lie_side_by_side(const pc_tensor *a, const pc__sort_attributes *attributes)
{
    enum { PART = 4 };
    const int64_t dim = attributes->dim;
    return dim < a->ndim - 1 && a->strides[dim] == 1 && a->strides[a->ndim - 1] > 1 &&
           attributes->count <= a->shape[dim] / PART;
}

static pc_tensor *topk_side_by_side(pc_tensor *a, const pc__sort_attributes *attributes, pc_tensor **indices)
{
    const int dim = (int)attributes->dim, last = a->ndim - 1;
    pc__sort_attributes turned = *attributes;
    pc_tensor *values = NULL, *places = NULL;
    turned.dim = last;
    PC_SCOPE {
        pc_tensor *found = NULL, *at = NULL, *t = pc_transpose(a, dim, last);
        if (t && sort(t, &turned, &found, indices ? &at : NULL) == PC_OK) {
            values = pc_keep(pc_contiguous(pc_transpose(found, dim, last)));
            places = indices && values ? pc_keep(pc_contiguous(pc_transpose(at, dim, last))) : NULL;
        }
    }
    if (indices && !places)
        values = pc__tensor_discard(values);
    if (indices)
        *indices = places;
    return values;
}

pc_tensor *pc_topk(pc_tensor *a, int64_t k, int dim, bool largest, pc_tensor **indices)
{
    PC__NEED_OR(NULL, a);
    pc__sort_attributes attributes;
    pc_tensor *values = NULL;
    if (indices)
        *indices = NULL;
    if (attributes_of("topk", a, dim, largest, &attributes) != PC_OK)
        return NULL;
    if (k < 0 || k > attributes.count || (a->ndim == 0 && k != 1))
        return pc__null(PC_ERR_RANGE, "topk: %lld elements of the %lld along dimension %lld of a tensor of shape %s",
                        (long long)k, (long long)attributes.count, (long long)attributes.dim, PC__SHAPE_OF(a));
    attributes.count = k;
    if (lie_side_by_side(a, &attributes))
        return topk_side_by_side(a, &attributes, indices);
    return sort(a, &attributes, &values, indices) == PC_OK ? values : NULL;
}

pc_status pc__infer_sort(pc_call *call, pc__meta *out)
{
    const pc__sort_attributes *a = call->attributes;
    const pc_tensor *t = call->in[0];
    int64_t shape[PC_MAX_DIMS];
    memcpy(shape, t->shape, sizeof shape);
    shape[a->dim] = a->count;
    pc__meta_contiguous(&out[0], t->dtype, t->ndim, shape);
    pc__meta_contiguous(&out[1], PC_I64, t->ndim, shape);
    return PC_OK;
}

/* Each value's gradient goes to where it came from. */
pc_status pc__grad_sort(pc__grad *grad)
{
    const int64_t dim = ((const pc__sort_attributes *)grad->attributes)->dim;
    const pc__index_attributes a = {.dim = dim, .size = grad->in_meta[0].shape[dim], .skip = -1, .apart = 1};
    return pc__set_grad(grad, 0, PC__CALL(gather_backward, &a, pc_contiguous(grad->out_grad[0]), grad->out[1]));
}

pc_tensor *pc_searchsorted(pc_tensor *sorted, pc_tensor *values, bool right)
{
    PC__NEED_OR(NULL, sorted);
    PC__NEED_OR(NULL, values);
    bool fits = sorted->ndim == 1 || (sorted->ndim > 0 && sorted->ndim == values->ndim);
    for (int i = 0; fits && sorted->ndim > 1 && i < sorted->ndim - 1; i++)
        fits = sorted->shape[i] == values->shape[i];
    if (!fits)
        return pc__null(PC_ERR_SHAPE,
                        "searchsorted: values of shape %s in a tensor of shape %s; it must have one dimension, or all "
                        "but the last one as the values have them",
                        PC__SHAPE_OF(values), PC__SHAPE_OF(sorted));
    const pc_dtype dtype = pc__promote(sorted, values);
    if (dtype == PC_BOOL)
        return pc__null(PC_ERR_DTYPE, "searchsorted: bools have no order; pc_cast them to PC_U8");
    const pc__search_attributes attributes = {right};
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *list = pc__as_dtype(sorted, dtype), *wanted = pc__as_dtype(values, dtype);
        result = pc_keep(PC__CALL(searchsorted, &attributes, pc_contiguous(list), pc_contiguous(wanted)));
    }
    return result;
}

pc_status pc__infer_searchsorted(pc_call *call, pc__meta *out)
{
    const pc_tensor *values = call->in[1];
    pc__meta_contiguous(&out[0], PC_I64, values->ndim, values->shape);
    return PC_OK;
}
