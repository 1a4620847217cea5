/* copy.c: conversion and copies. */
#include "ops/copy.h"

#include "ops/table.h"
#include "tensor/overlap.h"
#include "tensor/read.h"

#include <math.h>

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

pc_tensor *pc__lying_as(pc_tensor *t, const pc_tensor *like)
{
    if (!t || pc__same_places(t, like))
        return t;
    if (pc__is_contiguous(like))
        return pc_contiguous(t);
    pc__meta meta;
    pc__meta_like(&meta, like, (pc_dtype)t->dtype);
    pc_tensor *turned = pc__tensor_new(&meta, t->storage->device);
    return turned && pc_copy(turned, t) == PC_OK ? turned : NULL;
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
    PC__NEED_OR(NULL, t);
    return t->dtype == dtype ? pc__share(t) : cast(t, dtype, PC__ORDER_KEEP);
}

pc_tensor *pc_contiguous(pc_tensor *t)
{
    PC__NEED_OR(NULL, t);
    return pc__is_contiguous(t) ? pc__share(t) : cast(t, t->dtype, PC__ORDER_C);
}

pc_tensor *pc_clone(pc_tensor *t)
{
    PC__NEED_OR(NULL, t);
    return cast(t, t->dtype, PC__ORDER_KEEP);
}

/* One of each element that is there several times. */
static pc_tensor *once(pc_tensor *t)
{
    pc__meta meta;
    pc__meta_of(&meta, t);
    for (int i = 0; i < t->ndim; i++)
        meta.shape[i] = t->strides[i] == 0 ? PC__MIN(t->shape[i], 1) : t->shape[i];
    pc_tensor *view = pc__tensor_new(&meta, t->storage->device);
    if (view)
        view->requires_grad = t->requires_grad; /* as much as t's */
    return view;
}

pc_status pc_fill(pc_tensor *t, double value)
{
    PC__NEED(t);
    pc__fill_attributes attributes = {value};
    if (t)
        PC__TRY(pc__number_check("fill", value, (pc_dtype)t->dtype));
    if (!t || !pc__repeats(t))
        return pc__call_in_place(PC__OP_fill, t, NULL, 0, &attributes, sizeof attributes);
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *single = once(t);
        status = single ? pc__call_in_place(PC__OP_fill, single, NULL, 0, &attributes, sizeof attributes)
                        : pc_error_last()->status;
    }
    return status;
}

pc_status pc_saxpy(pc_tensor *y, double a, pc_tensor *x)
{
    PC__NEED(y);
    PC__NEED(x);
    if (!pc__same_shape(y, x) || y->dtype != x->dtype || y->dtype == PC_BOOL)
        return pc__fail(y->dtype != x->dtype || y->dtype == PC_BOOL ? PC_ERR_DTYPE : PC_ERR_SHAPE,
                        "saxpy: y is %s %s and x is %s %s; they must be alike, and numbers", pc_dtype_name(y->dtype),
                        PC__SHAPE_OF(y), pc_dtype_name(x->dtype), PC__SHAPE_OF(x));
    if (y && !pc__is_float((pc_dtype)y->dtype) && (a != floor(a) || fabs(a) >= 0x1p63))
        return pc__fail(PC_ERR_ARGUMENT, "saxpy: the factor of %s is %g; that of integers is a whole number",
                        pc_dtype_name((pc_dtype)y->dtype), a);
    pc__fill_attributes attributes = {a};
    return pc__call_in_place(PC__OP_saxpy, y, &x, 1, &attributes, sizeof attributes);
}
