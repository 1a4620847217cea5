/* read.c: elements to the host in C order, and from the host. */
#include "tensor/read.h"

#include "device/failure.h"
#include "device/graph.h"
#include "device/order.h"
#include "device/transfer.h"
#include "tensor/tensor.h"

static void gather(const pc_tensor *t, const char *from, char *to)
{
    size_t size = pc_dtype_size(t->dtype);
    int64_t index[PC_MAX_DIMS] = {0}, at = 0;
    for (int64_t n = pc__count(t->ndim, t->shape); n > 0; n--, to += size) {
        memcpy(to, from + (size_t)at * size, size);
        for (int d = t->ndim - 1; d >= 0; d--) {
            at += t->strides[d];
            if (++index[d] < t->shape[d])
                break;
            at -= t->strides[d] * t->shape[d];
            index[d] = 0;
        }
    }
}

/* `n` elements from the tensor's first on, from its device to the host, done when it returns. */
static pc_status fetch(const pc_tensor *t, void *host, int64_t n, const char *who)
{
    pc_stream *stream = pc_stream_current(t->storage->device);
    if (!stream)
        return PC_ERR_DEVICE;
    size_t size = pc_dtype_size(t->dtype);
    pc__bytes from = {t->storage, (size_t)t->offset * size};
    return pc__transfer_out(stream, host, from, (size_t)n * size, who);
}

static pc_status read_here(const pc_tensor *t, void *host, size_t bytes, const char *who)
{
    pc_stream *stream = pc_stream_current(PC_DEVICE_CPU);
    PC__TRY(stream ? pc__graph_allows(stream, who, "data on the host") : PC_ERR_DEVICE);
    PC__TRY(pc__graph_allows_beside(stream, who));
    PC__TRY(pc__settle(t->storage, false, who, false));
    PC__TRY(pc__storage_ensure(t->storage, stream));
    PC__TRY(pc__storage_sound(t->storage, who));
    if (pc__is_contiguous(t))
        memcpy(host, pc__data(t), bytes);
    else
        gather(t, pc__data(t), host);
    return PC_OK;
}

pc_status pc__read(const pc_tensor *t, void *host, size_t bytes, const char *who)
{
    if (!t)
        return pc__fail(PC_ERR_ARGUMENT, "%s: the tensor is NULL", who);
    int64_t n = pc__count(t->ndim, t->shape);
    size_t size = pc_dtype_size(t->dtype), wanted = (size_t)n * size;
    if (bytes != wanted)
        return pc__fail(PC_ERR_ARGUMENT, "%s: the tensor has %zu bytes, the buffer %zu", who, wanted, bytes);
    if (!bytes)
        return PC_OK;
    if (t->storage->device.type == PC_CPU)
        return read_here(t, host, bytes, who);
    if (pc__is_contiguous(t))
        return fetch(t, host, n, who);
    char *copy = pc__alloc((size_t)pc__span(t) * size);
    pc_status status = copy ? fetch(t, copy, pc__span(t), who) : PC_ERR_MEMORY;
    if (status == PC_OK)
        gather(t, copy, host);
    pc__free(copy);
    return status;
}

pc_status pc_read(const pc_tensor *t, void *host, size_t bytes)
{
    PC__NEED(t);
    if (bytes)
        PC__NEED(host);
    return pc__read(t, host, bytes, "pc_read");
}

pc_status pc__tensor_write(pc_tensor *t, const void *host, const char *who)
{
    pc_device device = t->storage->device;
    pc_stream *stream = pc_stream_current(device);
    size_t bytes = (size_t)pc__count(t->ndim, t->shape) * pc_dtype_size(t->dtype);
    if (!stream)
        return PC_ERR_DEVICE;
    if (!bytes)
        return PC_OK;
    if (device.type != PC_CPU)
        return pc__transfer_in(stream, (pc__bytes){t->storage, (size_t)t->offset * pc_dtype_size(t->dtype)}, host,
                               bytes, who);
    PC__TRY(pc__graph_allows(stream, who, "data from the host"));
    PC__TRY(pc__graph_allows_beside(stream, who));
    PC__TRY(pc__settle(t->storage, true, who, true));
    PC__TRY(pc__storage_ensure(t->storage, stream));
    memcpy(pc__data(t), host, bytes);
    if (bytes == t->storage->bytes)
        pc__storage_heals(t->storage);
    return PC_OK;
}

pc_tensor *pc_from_data(const void *data, pc_shape shape, pc_dtype dtype, pc_device device)
{
    if (pc__device_check(device, "pc_from_data") != PC_OK || pc__shape_check("pc_from_data", shape, dtype) != PC_OK)
        return NULL;
    pc__meta meta;
    pc__meta_contiguous(&meta, dtype, shape.ndim, shape.dim);
    if (pc__count(shape.ndim, shape.dim))
        PC__NEED_OR(NULL, data);
    pc_tensor *t = pc__tensor_new(&meta, device);
    return t && pc__tensor_write(t, data, "pc_from_data") == PC_OK ? t : pc__tensor_discard(t);
}

pc_tensor *pc_from_memory(void *data, pc_shape shape, pc_dtype dtype, void (*release)(void *), void *context)
{
    if (pc__shape_check("pc_from_memory", shape, dtype) != PC_OK)
        return NULL;
    pc__meta meta;
    pc__meta_contiguous(&meta, dtype, shape.ndim, shape.dim);
    size_t bytes = (size_t)pc__count(shape.ndim, shape.dim) * pc_dtype_size(dtype);
    if (bytes)
        PC__NEED_OR(NULL, data);
    if ((uintptr_t)data % pc_dtype_size(dtype))
        return pc__null(PC_ERR_ARGUMENT,
                        "pc_from_memory: data at %p is not aligned to the %zu bytes of a %s; pc_from_data copies from "
                        "anywhere",
                        data, pc_dtype_size(dtype), pc_dtype_name(dtype));
    pc__storage *storage = pc__storage_wrap(PC_DEVICE_CPU, data, bytes, release, context);
    if (!storage)
        return NULL;
    pc__storage_retain(storage);
    pc_tensor *t = pc__tensor_around(storage, &meta);
    if (!t)
        storage->foreign_release = NULL; /* on failure the memory stays the caller's */
    pc__storage_drop(storage);
    return t;
}
