/* copy.c: conversion and copies. */
#include "ops/copy.h"

#include "ops/table.h"
#include "tensor/read.h"

static void drop(void *tensor)
{
    pc_tensor_free(tensor);
}

pc_tensor *pc__share(pc_tensor *t)
{
    return t && pc_scope_own(pc_tensor_retain(t), drop) == PC_OK ? t : NULL;
}

static pc_tensor *cast(pc_tensor *t, pc_dtype dtype, pc__order order)
{
    pc__cast_attributes attributes = {dtype, order};
    return PC__CALL(cast, &attributes, t);
}

pc_status pc__infer_cast(pc_call *call, pc__meta *out)
{
    const pc__cast_attributes *a = call->attributes;
    const pc_tensor *t = call->in[0];
    if ((unsigned)a->dtype >= PC_DTYPE_COUNT)
        return pc__fail(PC_ERR_DTYPE, "cast: there is no dtype %d", (int)a->dtype);
    if (a->order == PC__ORDER_CHANNELS_LAST)
        pc__meta_channels_last(&out[0], a->dtype, t->shape);
    else if (a->order == PC__ORDER_C)
        pc__meta_contiguous(&out[0], a->dtype, t->ndim, t->shape);
    else
        pc__meta_like(&out[0], t, a->dtype);
    return PC_OK;
}

pc_status pc__grad_cast(pc__grad *grad)
{
    return pc__set_grad(grad, 0, pc__as_dtype(grad->out_grad[0], grad->in_meta[0].dtype));
}

pc_tensor *pc__as_dtype(pc_tensor *t, pc_dtype dtype)
{
    return !t || t->dtype == dtype ? t : cast(t, dtype, PC__ORDER_KEEP);
}

bool pc__is_nhwc(const pc_tensor *t)
{
    return pc__is_channels_last(t) ||
           (t->ndim == 4 && pc__is_contiguous(t) && (t->shape[1] == 1 || t->shape[2] * t->shape[3] == 1));
}

pc_tensor *pc__channels_last(pc_tensor *t)
{
    return !t || pc__is_nhwc(t) ? t : cast(t, t->dtype, PC__ORDER_CHANNELS_LAST);
}

pc_tensor *pc_cast(pc_tensor *t, pc_dtype dtype)
{
    return t && t->dtype == dtype ? pc__share(t) : cast(t, dtype, PC__ORDER_KEEP);
}

pc_tensor *pc_contiguous(pc_tensor *t)
{
    return t && pc__is_contiguous(t) ? pc__share(t) : cast(t, t ? t->dtype : PC_F32, PC__ORDER_C);
}

pc_tensor *pc_clone(pc_tensor *t)
{
    return cast(t, t ? t->dtype : PC_F32, PC__ORDER_KEEP);
}

pc_status pc_fill(pc_tensor *t, double value)
{
    pc__fill_attributes attributes = {value};
    return pc__call_in_place(PC__OP_fill, t, NULL, 0, &attributes, sizeof attributes);
}

pc_status pc_saxpy(pc_tensor *y, double a, pc_tensor *x)
{
    if (y && x && (!pc__same_shape(y, x) || y->dtype != x->dtype || y->dtype == PC_BOOL))
        return pc__fail(y->dtype != x->dtype || y->dtype == PC_BOOL ? PC_ERR_DTYPE : PC_ERR_SHAPE,
                        "saxpy: y is %s %s and x is %s %s; they must be alike, and numbers", pc_dtype_name(y->dtype),
                        PC__SHAPE_OF(y), pc_dtype_name(x->dtype), PC__SHAPE_OF(x));
    pc__fill_attributes attributes = {a};
    return pc__call_in_place(PC__OP_saxpy, y, &x, 1, &attributes, sizeof attributes);
}
