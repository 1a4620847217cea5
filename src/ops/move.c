/* move.c: tensors from device to device. */
#include "device/graph.h"
#include "device/transfer.h"
#include "ops/table.h"
#include "tensor/read.h"

#include <paracord/no_grad.h>

/* The way back of a gradient. */
typedef struct to_attributes {
    pc_device from;
} to_attributes;

/* Two devices are in it: pc_to does not go through pc_dispatch, and this is never asked. */
pc_status pc__infer_to(pc_call *call, pc__meta *out)
{
    (void)out;
    return pc__fail(PC_ERR_UNSUPPORTED, "%s: it is no op of one device", call->op->name);
}

pc_status pc__grad_to(pc__grad *grad)
{
    const to_attributes *a = grad->attributes;
    return pc__set_grad(grad, 0, pc_to(grad->out_grad[0], a->from, grad->in_meta[0].dtype, true));
}

static pc_status record(pc_tensor *t, pc_tensor *moved)
{
    to_attributes attributes = {t->storage->device};
    pc_call call = {.op = &pc__ops[PC__OP_to],
                    .in = &t,
                    .n_in = 1,
                    .n_out = 1,
                    .out = {moved},
                    .attributes = &attributes,
                    .attribute_bytes = sizeof attributes};
    return pc__tape_wants(&call) ? pc__tape_record(&call) : PC_OK;
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
    pc_status status = pc__tensor_found(t);
    if (status == PC_OK)
        status = pc__transfer(stream, to, from, (size_t)pc_tensor_count(t) * size, "pc_to", !non_blocking);
    if (status == PC_OK)
        status = record(t, moved);
    return status == PC_OK ? moved : pc__tensor_discard(moved);
}

pc_tensor *pc_to(pc_tensor *t, pc_device device, pc_dtype dtype, bool non_blocking)
{
    PC__NEED_OR(NULL, t);
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
    PC__NEED_OR(NULL, t);
    if (t->storage->device.type == PC_CPU && (t->storage->pinned || device.type == PC_CPU))
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
    PC__TRY(pc__tensor_found(from));
    PC__TRY(pc__tensor_found(to));
    pc__bytes a = {to->storage, (size_t)to->offset * size}, b = {from->storage, (size_t)from->offset * size};
    PC__TRY(pc__graph_raises(device, to->storage));
    return stream ? pc__transfer(stream, a, b, (size_t)pc_tensor_count(to) * size, "pc_copy", false) : PC_ERR_DEVICE;
}

pc_status pc_copy(pc_tensor *to, pc_tensor *from)
{
    PC__NEED(to);
    PC__NEED(from);
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
