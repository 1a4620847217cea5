/* copy.c: conversion, copies, and moving between devices. */
#include "ops/copy.h"

#include "device/transfer.h"
#include "ops/table.h"
#include "tensor/read.h"

#include <paracord/no_grad.h>

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

/* The bytes of a contiguous tensor on another device. The copy runs on a stream of the accelerator, whichever side
 * that is, ordered after what was queued for the source there. */
static pc_tensor *across(pc_tensor *t, pc_device device, bool non_blocking)
{
    pc__meta meta;
    pc__meta_contiguous(&meta, t->dtype, t->ndim, t->shape);
    pc_tensor *moved = pc__tensor_for(&meta, device, "pc_to");
    pc_stream *stream = pc_stream_current(device.type == PC_CPU ? t->storage->device : device);
    if (!moved || !stream)
        return pc__tensor_discard(moved);
    size_t size = pc_dtype_size(t->dtype);
    pc__bytes to = {moved->storage, 0}, from = {t->storage, (size_t)t->offset * size};
    pc_status status = pc__transfer(stream, to, from, (size_t)pc_tensor_count(t) * size, "pc_to", !non_blocking);
    return status == PC_OK ? moved : pc__tensor_discard(moved);
}

pc_tensor *pc_to(pc_tensor *t, pc_device device, pc_dtype dtype, bool non_blocking)
{
    if (!t)
        return pc__null_input("to");
    if (pc__device_check(device, "pc_to") != PC_OK)
        return NULL;
    if (pc_device_equal(t->storage->device, device))
        return pc_cast(t, dtype);
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *ready = pc_contiguous(pc__as_dtype(t, dtype));
        result = ready ? pc_keep(across(ready, device, non_blocking)) : NULL;
    }
    return result;
}

pc_tensor *pc_pin(pc_tensor *t, pc_device device)
{
    if (!t)
        return pc__null_input("pc_pin");
    if (t->storage->pinned || (t->storage->device.type == PC_CPU && device.type == PC_CPU))
        return pc__share(t);
    pc_tensor *pinned = pc_empty_pinned(pc_tensor_shape(t), t->dtype, device);
    return pinned && pc_copy(pinned, t) == PC_OK ? pinned : pc__tensor_discard(pinned);
}

/* The same bytes on another device: straight into `to`. */
static bool is_plain(const pc_tensor *to, const pc_tensor *from)
{
    return !pc_device_equal(to->storage->device, from->storage->device) && to->dtype == from->dtype &&
           pc__same_shape(to, from) && pc__is_contiguous(to) && pc__is_contiguous(from);
}

static pc_status copy_plain(pc_tensor *to, pc_tensor *from)
{
    if (to->requires_grad && pc_grad_enabled())
        return pc__fail(PC_ERR_STATE, "copy: in place on a tensor that requires a gradient; use PC_NO_GRAD or a new "
                                      "tensor");
    pc_device device = to->storage->device.type == PC_CPU ? from->storage->device : to->storage->device;
    pc_stream *stream = pc_stream_current(device);
    size_t size = pc_dtype_size(to->dtype);
    pc__bytes a = {to->storage, (size_t)to->offset * size}, b = {from->storage, (size_t)from->offset * size};
    atomic_fetch_add_explicit(&to->storage->version, 1, memory_order_relaxed);
    return stream ? pc__transfer(stream, a, b, (size_t)pc_tensor_count(to) * size, "pc_copy", false) : PC_ERR_DEVICE;
}

pc_status pc_copy(pc_tensor *to, pc_tensor *from)
{
    if (!to || !from)
        return pc__call_in_place(PC__OP_copy, to, &from, 1, NULL, 0);
    if (is_plain(to, from))
        return copy_plain(to, from);
    pc_status status = PC_ERR_MEMORY;
    PC_SCOPE {
        pc_tensor *same = pc_to(from, to->storage->device, from->dtype, true);
        pc_tensor *wide = same ? pc_expand(same, pc_tensor_shape(to)) : NULL;
        status = wide ? pc__call_in_place(PC__OP_copy, to, &wide, 1, NULL, 0) : pc_error_last()->status;
    }
    return status;
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
