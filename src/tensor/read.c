/* read.c: elements to the host in C order, and from the host. */
#include "tensor/read.h"

#include "tensor/tensor.h"

/* Elements between the first and the last of a strided tensor, counted from its offset. */
static int64_t span(const pc_tensor *t)
{
    int64_t last = 0;
    for (int i = 0; i < t->ndim; i++)
        last += (t->shape[i] - 1) * t->strides[i];
    return last + 1;
}

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

/* Bytes from the tensor's device to the host, done when it returns. */
static pc_status fetch(const pc_tensor *t, void *host, size_t bytes)
{
    pc_device device = t->storage->device;
    pc_stream *stream = pc_stream_current(device);
    if (!stream)
        return PC_ERR_DEVICE;
    PC__TRY(pc__storage_reads(t->storage, stream));
    pc__stream_count(stream);
    PC__TRY(stream->backend->copy(stream, host, PC_DEVICE_CPU, pc__data(t), device, bytes));
    return stream->backend->stream_synchronize(stream);
}

pc_status pc_read(const pc_tensor *t, void *host, size_t bytes)
{
    if (!t)
        return pc__fail(PC_ERR_ARGUMENT, "pc_read: the tensor is NULL");
    size_t size = pc_dtype_size(t->dtype), wanted = (size_t)pc__count(t->ndim, t->shape) * size;
    if (bytes != wanted)
        return pc__fail(PC_ERR_ARGUMENT, "pc_read: the tensor has %zu bytes, the buffer %zu", wanted, bytes);
    PC__TRY(pc__storage_settle(t->storage, "pc_read"));
    if (!bytes)
        return PC_OK;
    bool contiguous = pc__is_contiguous(t);
    if (t->storage->device.type == PC_CPU) {
        if (contiguous)
            memcpy(host, pc__data(t), bytes);
        else
            gather(t, pc__data(t), host);
        return PC_OK;
    }
    if (contiguous)
        return fetch(t, host, bytes);
    size_t whole = (size_t)span(t) * size;
    char *copy = pc__alloc(whole);
    pc_status status = copy ? fetch(t, copy, whole) : PC_ERR_MEMORY;
    if (status == PC_OK)
        gather(t, copy, host);
    pc__free(copy);
    return status;
}

pc_status pc__tensor_write(pc_tensor *t, const void *host)
{
    pc_device device = t->storage->device;
    pc_stream *stream = pc_stream_current(device);
    if (!stream)
        return PC_ERR_DEVICE;
    size_t bytes = (size_t)pc__count(t->ndim, t->shape) * pc_dtype_size(t->dtype);
    if (!bytes)
        return PC_OK;
    if (stream->recording)
        return pc__fail(PC_ERR_STATE, "data from the host cannot be part of a recording; make the tensor before it");
    PC__TRY(pc__storage_writes(t->storage, stream));
    pc__stream_count(stream);
    PC__TRY(stream->backend->copy(stream, pc__data(t), device, host, PC_DEVICE_CPU, bytes));
    return stream->backend->immediate ? PC_OK : stream->backend->stream_synchronize(stream);
}

pc_tensor *pc_from_data(const void *data, pc_shape shape, pc_dtype dtype, pc_device device)
{
    if (pc__device_check(device, "pc_from_data") != PC_OK || pc__shape_check("pc_from_data", shape, dtype) != PC_OK)
        return NULL;
    pc__meta meta;
    pc__meta_contiguous(&meta, dtype, shape.ndim, shape.dim);
    if (!data && pc__count(shape.ndim, shape.dim))
        return pc__null(PC_ERR_ARGUMENT, "pc_from_data: the data is NULL");
    pc_tensor *t = pc__tensor_new(&meta, device);
    return t && pc__tensor_write(t, data) == PC_OK ? t : pc__tensor_discard(t);
}

pc_tensor *pc_from_memory(void *data, pc_shape shape, pc_dtype dtype, void (*release)(void *), void *context)
{
    if (pc__shape_check("pc_from_memory", shape, dtype) != PC_OK)
        return NULL;
    pc__meta meta;
    pc__meta_contiguous(&meta, dtype, shape.ndim, shape.dim);
    size_t bytes = (size_t)pc__count(shape.ndim, shape.dim) * pc_dtype_size(dtype);
    if (!data && bytes)
        return pc__null(PC_ERR_ARGUMENT, "pc_from_memory: the memory is NULL");
    pc__storage *storage = pc__storage_wrap(PC_DEVICE_CPU, data, bytes, release, context);
    if (!storage)
        return NULL;
    pc_tensor holder = {.storage = storage};
    meta.view_of = &holder;
    pc_tensor *t = pc__tensor_new(&meta, PC_DEVICE_CPU);
    if (!t)
        storage->foreign_release = NULL; /* on failure the memory stays the caller's */
    pc__storage_drop(storage);
    return t;
}
