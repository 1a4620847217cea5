/* pinned.c: host memory that devices copy by themselves, and the program's pointers into host memory. */
#include "device/failure.h"
#include "device/graph.h"
#include "device/order.h"
#include "tensor/read.h"

pc_tensor *pc__tensor_around(pc__storage *storage, const pc__meta *meta)
{
    if (!storage)
        return NULL;
    pc_tensor holder = {.storage = storage};
    pc__meta view = *meta;
    view.view_of = &holder;
    pc_tensor *t = pc__tensor_new(&view, storage->device);
    pc__storage_drop(storage);
    return t;
}

pc_tensor *pc_empty_pinned(pc_shape shape, pc_dtype dtype, pc_device device)
{
    if (pc__device_check(device, "pc_empty_pinned") != PC_OK ||
        pc__shape_check("pc_empty_pinned", shape, dtype) != PC_OK)
        return NULL;
    pc__meta meta;
    pc__meta_contiguous(&meta, dtype, shape.ndim, shape.dim);
    if (device.type == PC_CPU)
        return pc__tensor_new(&meta, PC_DEVICE_CPU);
    size_t bytes = (size_t)pc__count(shape.ndim, shape.dim) * pc_dtype_size(dtype);
    return pc__tensor_around(pc__storage_pinned(device.type, bytes, "pc_empty_pinned"), &meta);
}

pc_tensor *pc__tensor_hosted(const pc__meta *meta, pc_device device, const char *maker)
{
    const size_t bytes = (size_t)pc__count(meta->ndim, meta->shape) * pc_dtype_size(meta->dtype);
    pc__storage *storage = pc__storage_hosted(device, bytes, maker);
    if (!storage)
        return NULL;
    pc_tensor holder = {.storage = storage};
    pc__meta view = *meta;
    view.view_of = &holder;
    pc_tensor *t = pc__tensor_unscoped(&view, device);
    pc__storage_drop(storage);
    return t;
}

bool pc_is_pinned(const pc_tensor *t)
{
    return t && t->storage->pinned;
}

static pc_status check_host(const pc_tensor *t, const char *who)
{
    if (t->storage->device.type == PC_CPU)
        return PC_OK;
    char name[PC_DEVICE_NAME_MAX];
    return pc__fail(PC_ERR_DEVICE,
                    "%s: the tensor is on %s, whose memory the host cannot use; copy it with pc_read, or move it with "
                    "pc_to",
                    who, pc_device_name(t->storage->device, name));
}

/* Wait until the host may use the memory. */
static pc_status ready(pc_tensor *t, bool write, const char *who)
{
    PC__TRY(check_host(t, who));
    pc_stream *here = pc_stream_current(PC_DEVICE_CPU);
    PC__TRY(here ? pc__graph_allows(here, who, "data on the host") : PC_ERR_DEVICE);
    PC__TRY(pc__graph_allows_beside(here, who));
    PC__TRY(pc__settle(t->storage, write, who, false));
    PC__TRY(pc__storage_ensure(t->storage, here));
    return pc__storage_sound(t->storage, who);
}

void *pc_data(pc_tensor *t)
{
    PC__NEED_OR(NULL, t);
    if (ready(t, true, "pc_data") != PC_OK)
        return NULL;
    atomic_store_explicit(&t->storage->exposed, true, memory_order_relaxed);
    return pc__data(t);
}

void *pc_map(pc_tensor *t, pc_map_access access)
{
    PC__NEED_OR(NULL, t);
    if (ready(t, access != PC_MAP_READ, "pc_map") != PC_OK)
        return NULL;
    atomic_fetch_add(&t->storage->mapped, 1);
    if (access != PC_MAP_READ)
        atomic_fetch_add_explicit(&t->storage->version, 1, memory_order_relaxed);
    return pc__data(t);
}

pc_status pc_unmap(pc_tensor *t)
{
    PC__NEED(t);
    PC__TRY(check_host(t, "pc_unmap"));
    if (atomic_fetch_sub(&t->storage->mapped, 1) > 0)
        return PC_OK;
    atomic_fetch_add(&t->storage->mapped, 1);
    return pc__fail(PC_ERR_STATE, "pc_unmap: the tensor is not mapped");
}

void *pc_device_pointer(pc_tensor *t)
{
    PC__NEED_OR(NULL, t);
    pc_stream *stream = pc_stream_current(t->storage->device);
    if (!stream || pc__storage_ensure(t->storage, stream) != PC_OK)
        return NULL;
    atomic_store_explicit(&t->storage->exposed, true, memory_order_relaxed);
    return pc__data(t);
}
