/* storage.c: references to blocks. */
#include "device/storage.h"

#include "device/cache.h"
#include "device/check.h"
#include "device/graph.h"
#include "device/order.h"

static pc__storage *start(pc__storage *storage, size_t bytes)
{
    if (!storage)
        return NULL;
    atomic_store_explicit(&storage->version, 0, memory_order_relaxed);
    atomic_store_explicit(&storage->exposed, false, memory_order_relaxed);
    atomic_store_explicit(&storage->mapped, 0, memory_order_relaxed);
    atomic_store_explicit(&storage->failure, 0, memory_order_relaxed);
    storage->bytes = bytes;
    storage->order.born = PC__MAX(atomic_load_explicit(&storage->order.wrote, memory_order_relaxed),
                                  atomic_load_explicit(&storage->order.read, memory_order_relaxed));
    if (pc__checking())
        pc__check_forget(storage);
    return storage;
}

static pc__storage *plan(pc_stream *stream, size_t bytes, const char *maker)
{
    pc__storage *s = pc__alloc_aligned(sizeof *s, 64);
    if (!s)
        return NULL;
    *s = (pc__storage){.references = 1, .device = stream->device, .bytes = bytes, .planned = true, .maker = maker};
    if (pc__checking()) /* another one may have been here */
        pc__check_forget(s);
    if (pc__graph_makes(stream, s) == PC_OK)
        return s;
    pc__free(s);
    return NULL;
}

pc__storage *pc__storage_block(pc_stream *stream, size_t bytes, const char *maker)
{
    return start(pc__cache_take(stream, bytes, maker), bytes);
}

pc__storage *pc__storage_at_once(pc_stream *stream, size_t bytes, const char *maker)
{
    return start(pc__cache_take_at_once(stream, bytes, maker), bytes);
}

pc__storage *pc__storage_new(pc_stream *stream, size_t bytes, const char *maker)
{
    return pc__recording_for(stream) ? plan(stream, bytes, maker) : pc__storage_block(stream, bytes, maker);
}

pc__storage *pc__storage_elsewhere(pc_device device, size_t bytes, const char *maker)
{
    pc__storage *s = pc__alloc_aligned(sizeof *s, 64);
    if (s)
        *s = (pc__storage){
            .references = 1, .device = device, .bytes = bytes, .planned = true, .elsewhere = true, .maker = maker};
    return s;
}

static pc_status give_block(pc__storage *storage, pc_stream *stream)
{
    if (storage->elsewhere)
        return pc__fail(PC_ERR_STATE, "the tensor has no contents in this process: %s", storage->maker);
    pc__storage *block = pc__cache_take(stream, storage->bytes, storage->maker);
    if (!block)
        return pc_error_last()->status;
    pc__order_inherit(storage, block);
    pc__cache_rename(block, storage);
    atomic_store_explicit(&storage->planned, false, memory_order_release);
    return PC_OK;
}

pc_status pc__storage_materialize(pc__storage *storage, pc_stream *stream)
{
    static pthread_mutex_t giving = PTHREAD_MUTEX_INITIALIZER; /* two threads may ask for one tensor */
    pthread_mutex_lock(&giving);
    const pc_status status = atomic_load(&storage->planned) ? give_block(storage, stream) : PC_OK;
    pthread_mutex_unlock(&giving);
    return status;
}

pc__storage *pc__storage_pinned(pc_device_type type, size_t bytes, const char *maker)
{
    return start(pc__cache_take_pinned(type, bytes, maker), bytes);
}

pc__storage *pc__storage_hosted(pc_device device, size_t bytes, const char *maker)
{
    if (device.type != PC_CPU)
        return start(pc__cache_take_hosted(device, bytes, maker), bytes);
    pc_stream *stream = pc_stream_current(device);
    return stream ? pc__storage_block(stream, bytes, maker) : NULL;
}

pc__storage *pc__storage_wrap(pc_device device, void *data, size_t bytes, void (*release)(void *), void *context)
{
    pc__storage *storage = pc__calloc(1, sizeof *storage);
    if (!start(storage, bytes))
        return NULL;
    atomic_store(&storage->references, 1);
    storage->maker = "pc_from_memory";
    storage->device = device;
    storage->data = data;
    storage->capacity = bytes;
    storage->foreign = true;
    storage->foreign_release = release;
    storage->foreign_context = context;
    atomic_store(&storage->exposed, true);
    return storage;
}

void pc__storage_retain(pc__storage *storage)
{
    atomic_fetch_add_explicit(&storage->references, 1, memory_order_relaxed);
}

/* It has no block of its own. */
static void drop_planned(pc__storage *storage)
{
    pc__free(storage->order.other);
    pc__free(storage);
}

/* The program may do with its memory what it likes after this: nothing queued may still use it. */
static void give_back_foreign(pc__storage *storage)
{
    pc_error before = pc__error_take();
    (void)pc__settle(storage, true, "releasing memory of the program", true);
    if (before.status != PC_OK) {
        pc_error_clear();
        (void)pc__error_put(&before);
    }
    if (storage->foreign_release)
        storage->foreign_release(storage->foreign_context);
    pc__free(storage->order.other);
    pc__free(storage);
}

void pc__storage_drop(pc__storage *storage)
{
    if (!storage || atomic_fetch_sub_explicit(&storage->references, 1, memory_order_acq_rel) != 1)
        return;
    if (storage->foreign)
        give_back_foreign(storage);
    else if (!storage->capacity)
        drop_planned(storage);
    else
        pc__cache_give(storage);
}
