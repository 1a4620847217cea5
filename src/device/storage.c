/* storage.c: references to blocks, and the order between the streams that use them. */
#include "device/storage.h"

#include "device/cache.h"

pc__storage *pc__storage_new(pc_stream *stream, size_t bytes)
{
    pc__storage *storage = pc__cache_take(stream, bytes);
    if (!storage)
        return NULL;
    atomic_store_explicit(&storage->references, 1, memory_order_relaxed);
    atomic_store_explicit(&storage->version, 0, memory_order_relaxed);
    storage->bytes = bytes;
    return storage;
}

pc__storage *pc__storage_wrap(pc_device device, void *data, size_t bytes, void (*release)(void *), void *context)
{
    pc__storage *storage = pc__calloc(1, sizeof *storage);
    if (!storage)
        return NULL;
    atomic_store(&storage->references, 1);
    storage->device = device;
    storage->data = data;
    storage->bytes = storage->capacity = bytes;
    storage->foreign = true;
    storage->foreign_release = release;
    storage->foreign_context = context;
    return storage;
}

void pc__storage_retain(pc__storage *storage)
{
    atomic_fetch_add_explicit(&storage->references, 1, memory_order_relaxed);
}

/* On a device that works at once, the host itself waits for what other devices still do with its memory: copies. */
static pc_status wait_here(pc__use use)
{
    pc_stream *other = use.stream ? pc__stream_by_id(use.stream) : NULL;
    return other ? other->backend->ticket_synchronize(other, use.ticket) : PC_OK;
}

static pc_status settle_uses(pc__storage *storage, bool readers_too)
{
    PC__TRY(wait_here(storage->writer));
    storage->writer = (pc__use){0};
    for (; readers_too && storage->reader_count; storage->reader_count--)
        PC__TRY(wait_here(storage->readers[storage->reader_count - 1]));
    return PC_OK;
}

void pc__storage_drop(pc__storage *storage)
{
    if (!storage || atomic_fetch_sub_explicit(&storage->references, 1, memory_order_acq_rel) != 1)
        return;
    if (!storage->foreign) {
        pc__cache_give(storage);
        return;
    }
    (void)settle_uses(storage, true);
    if (storage->foreign_release)
        storage->foreign_release(storage->foreign_context);
    pc__free(storage);
}

/* Where `use` is another stream's, let `stream` wait for exactly that work. */
static pc_status wait_for(pc_stream *stream, pc__use use)
{
    if (use.stream == stream->id || !use.stream)
        return PC_OK;
    pc_stream *other = pc__stream_by_id(use.stream);
    return other ? stream->backend->stream_wait(stream, other, use.ticket) : PC_OK;
}

static uint64_t coming_ticket(pc_stream *stream)
{
    return atomic_load_explicit(&stream->ticket, memory_order_relaxed) + 1;
}

pc_status pc__storage_reads(pc__storage *storage, pc_stream *stream)
{
    if (stream->backend->immediate)
        return storage->writer.stream ? settle_uses(storage, false) : PC_OK;
    PC__TRY(wait_for(stream, storage->writer));
    pc__use use = {stream->id, coming_ticket(stream)};
    for (int i = 0; i < storage->reader_count; i++)
        if (storage->readers[i].stream == stream->id) {
            storage->readers[i] = use;
            return PC_OK;
        }
    if (storage->reader_count == PC__READERS) {
        /* No room: after this wait the stream's own use stands for the oldest one too. */
        PC__TRY(wait_for(stream, storage->readers[0]));
        storage->readers[0] = use;
        return PC_OK;
    }
    storage->readers[storage->reader_count++] = use;
    return PC_OK;
}

pc_status pc__storage_writes(pc__storage *storage, pc_stream *stream)
{
    if (stream->backend->immediate)
        return storage->writer.stream || storage->reader_count ? settle_uses(storage, true) : PC_OK;
    PC__TRY(wait_for(stream, storage->writer));
    for (int i = 0; i < storage->reader_count; i++)
        PC__TRY(wait_for(stream, storage->readers[i]));
    storage->writer = (pc__use){stream->id, coming_ticket(stream)};
    storage->reader_count = 0;
    return PC_OK;
}

pc_status pc__storage_settle(pc__storage *storage, const char *who)
{
    pc_stream *now = pc_stream_current(storage->device);
    if (now && now->recording)
        return pc__fail(PC_ERR_STATE, "%s: data cannot be read while its stream is being recorded", who);
    return wait_here(storage->writer);
}
