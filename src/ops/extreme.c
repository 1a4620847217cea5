/* extreme.c: the largest and the smallest of all elements, or along a dimension, and where it is. */
#include "ops/reduce_call.h"
#include "tensor/read.h"

#include <paracord/no_grad.h>

/* Values in *value and positions among the reduced elements in *index, for one dimension or all; NULL: nobody wants them. */
static pc_status extreme(int op, pc_tensor *t, unsigned mask, bool keepdim, bool whole, pc_tensor **value,
                         pc_tensor **index)
{
    pc__reduce_attributes a;
    pc__reduce_describe(t, mask, keepdim, &a);
    if (a.reduced == 0)
        return pc__fail(PC_ERR_SHAPE, "%s: a tensor of shape %s has no elements to compare", pc__ops[op].name,
                        PC__SHAPE_OF(t));
    if (!value && a.reduced == 1)
        return (*index = pc_zeros(pc_shape_of(a.ndim, a.shape), PC_I64, pc_tensor_device(t))) ? PC_OK : PC_ERR_MEMORY;
    a.whole = whole;
    a.places = !value;
    return pc__reduce_once(op, t, mask, keepdim, PC__GAPS_EXTREMES, a, (pc_tensor * *[]){value, index});
}

pc_status pc__infer_max(pc_call *call, pc__meta *out)
{
    const pc__reduce_attributes *a = call->attributes;
    static const int64_t none[1] = {0};
    pc__meta_contiguous(&out[0], call->in[0]->dtype, a->places ? 1 : a->ndim, a->places ? none : a->shape);
    pc__meta_contiguous(&out[1], PC_I64, a->ndim, a->shape);
    return PC_OK;
}

static pc_tensor *over_all(int op, pc_tensor *a)
{
    pc_tensor *value = NULL;
    return extreme(op, a, pc__reduce_all_of(a), false, true, &value, NULL) == PC_OK ? value : NULL;
}

static pc_tensor *along(int op, pc_tensor *a, int dim, bool keepdim, pc_tensor **indices)
{
    pc_tensor *value = NULL;
    if (indices)
        *indices = NULL;
    const bool placed = indices || (a->requires_grad && pc_grad_enabled()); /* the gradient goes by places */
    unsigned mask;
    return pc__reduce_mask_of_one(pc__ops[op].name, a, dim, &mask) &&
                   extreme(op, a, mask, keepdim, !placed, &value, indices) == PC_OK
               ? value
               : NULL;
}

static pc_tensor *place(int op, const char *who, pc_tensor *a, int dim, bool keepdim)
{
    pc_tensor *index = NULL;
    unsigned mask;
    return pc__reduce_mask_of_one(who, a, dim, &mask) && extreme(op, a, mask, keepdim, false, NULL, &index) == PC_OK
               ? index
               : NULL;
}

pc_tensor *pc_max(pc_tensor *a)
{
    PC__NEED_OR(NULL, a);
    return over_all(PC__OP_max, a);
}

pc_tensor *pc_min(pc_tensor *a)
{
    PC__NEED_OR(NULL, a);
    return over_all(PC__OP_min, a);
}

pc_tensor *pc_max_dim(pc_tensor *a, int dim, bool keepdim, pc_tensor **indices)
{
    PC__NEED_OR(NULL, a);
    return along(PC__OP_max, a, dim, keepdim, indices);
}

pc_tensor *pc_min_dim(pc_tensor *a, int dim, bool keepdim, pc_tensor **indices)
{
    PC__NEED_OR(NULL, a);
    return along(PC__OP_min, a, dim, keepdim, indices);
}

pc_tensor *pc_argmax(pc_tensor *a, int dim, bool keepdim)
{
    PC__NEED_OR(NULL, a);
    return place(PC__OP_max, "argmax", a, dim, keepdim);
}

pc_tensor *pc_argmin(pc_tensor *a, int dim, bool keepdim)
{
    PC__NEED_OR(NULL, a);
    return place(PC__OP_min, "argmin", a, dim, keepdim);
}

pc_status pc__infer_max_backward(pc_call *call, pc__meta *out)
{
    const pc__reduce_attributes *a = call->attributes;
    pc__meta_contiguous(&out[0], call->in[0]->dtype, a->ndim, a->shape);
    return PC_OK;
}

/* Over everything, elements equal to the extreme share the gradient; along a dimension the chosen one gets it all. */
pc_status pc__grad_max(pc__grad *grad)
{
    const pc__meta *in = &grad->in_meta[0];
    pc__reduce_attributes a = *(const pc__reduce_attributes *)grad->attributes;
    pc_tensor *g = pc_contiguous(pc__as_dtype(grad->out_grad[0], in->dtype));
    a.ndim = in->ndim;
    memcpy(a.shape, in->shape, sizeof a.shape);
    return pc__set_grad(grad, 0,
                        a.whole ? PC__CALL(max_backward, &a, g, pc_contiguous(grad->in[0]), grad->out[0])
                                : PC__CALL(max_backward, &a, g, grad->out[1]));
}
