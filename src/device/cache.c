/* cache.c: size classes, one list of free blocks each, one lock per device.
 *
 * Classes are multiples of 64 bytes up to 512, then eight steps to each doubling: at most 12.5 % is lost to rounding,
 * and a block fits every later request of its class. */
#include "device/cache.h"

#include <pthread.h>

#define CLASSES 384

typedef struct cache {
    pthread_mutex_t lock;
    pc__storage *free[CLASSES];
    pc_memory_stats stats;
} cache;

static cache caches[PC_DEVICE_TYPES][PC__DEVICES_MAX] = {
    [0 ... PC_DEVICE_TYPES - 1] = {[0 ... PC__DEVICES_MAX - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}}};

/* The class of a size, and *rounded, the bytes that blocks of the class have. */
static int class_of(size_t bytes, size_t *rounded)
{
    if (bytes <= 512) {
        size_t steps = bytes ? (bytes + 63) / 64 : 1;
        *rounded = steps * 64;
        return (int)steps - 1;
    }
    int top = 63 - __builtin_clzll(bytes - 1); /* 2^top <= bytes-1 < 2^(top+1) */
    size_t step = (size_t)1 << (top - 3);
    *rounded = (bytes + step - 1) / step * step;
    return 8 + (top - 9) * 8 + (int)((*rounded - ((size_t)1 << top)) / step) - 1;
}

static pc__storage *from_device(pc_stream *stream, size_t bytes)
{
    pc__storage *storage = pc__try_alloc_aligned(sizeof *storage, 16);
    if (!storage)
        return NULL;
    memset(storage, 0, sizeof *storage);
    if (stream->backend->allocate(stream->device.index, bytes, &storage->data) != PC_OK) {
        pc__free(storage);
        return NULL;
    }
    storage->device = stream->device;
    storage->capacity = bytes;
    return storage;
}

static pc__storage *fail(pc_device device, size_t bytes, int64_t in_use)
{
    char name[PC_DEVICE_NAME_MAX];
    return pc__null(PC_ERR_MEMORY,
                    "out of memory on %s: %zu bytes asked for, %lld in use by tensors; a smaller batch needs less",
                    pc_device_name(device, name), bytes, (long long)in_use);
}

pc__storage *pc__cache_take(pc_stream *stream, size_t bytes)
{
    cache *c = &caches[stream->device.type][stream->device.index];
    if (bytes > (size_t)1 << 46)
        return fail(stream->device, bytes, 0);
    size_t rounded;
    int k = class_of(bytes, &rounded);
    pthread_mutex_lock(&c->lock);
    c->stats.requests++;
    pc__storage *storage = c->free[k];
    if (storage) {
        c->free[k] = storage->next;
        c->stats.cached -= (int64_t)rounded;
    } else {
        c->stats.misses++;
    }
    c->stats.in_use += (int64_t)rounded;
    c->stats.peak = PC__MAX(c->stats.peak, c->stats.in_use);
    pthread_mutex_unlock(&c->lock);
    if (storage)
        return storage;

    storage = from_device(stream, rounded);
    if (!storage && pc_memory_trim(stream->device) == PC_OK)
        storage = from_device(stream, rounded);
    if (storage)
        return storage;
    pthread_mutex_lock(&c->lock);
    c->stats.in_use -= (int64_t)rounded;
    int64_t in_use = c->stats.in_use;
    pthread_mutex_unlock(&c->lock);
    return fail(stream->device, bytes, in_use);
}

void pc__cache_give(pc__storage *storage)
{
    cache *c = &caches[storage->device.type][storage->device.index];
    size_t rounded;
    int k = class_of(storage->capacity, &rounded);
    pthread_mutex_lock(&c->lock);
    storage->next = c->free[k];
    c->free[k] = storage;
    c->stats.in_use -= (int64_t)rounded;
    c->stats.cached += (int64_t)rounded;
    pthread_mutex_unlock(&c->lock);
}

pc_status pc_memory_get_stats(pc_device device, pc_memory_stats *stats)
{
    *stats = (pc_memory_stats){0};
    PC__TRY(pc__device_check(device, "pc_memory_get_stats"));
    cache *c = &caches[device.type][device.index];
    pthread_mutex_lock(&c->lock);
    *stats = c->stats;
    pthread_mutex_unlock(&c->lock);
    return PC_OK;
}

/* True when nothing queued still uses the block. */
static bool is_idle(const pc__storage *storage)
{
    for (int i = -1; i < storage->reader_count; i++) {
        pc__use use = i < 0 ? storage->writer : storage->readers[i];
        pc_stream *stream = use.stream ? pc__stream_by_id(use.stream) : NULL;
        bool done = true;
        if (stream && (stream->backend->stream_query(stream, &done) != PC_OK || !done))
            return false;
    }
    return true;
}

pc_status pc_memory_trim(pc_device device)
{
    PC__TRY(pc__device_check(device, "pc_memory_trim"));
    cache *c = &caches[device.type][device.index];
    const pc__backend *backend = pc__backend_of(device.type);
    pthread_mutex_lock(&c->lock);
    for (int k = 0; k < CLASSES; k++)
        for (pc__storage **link = &c->free[k]; *link;) {
            pc__storage *storage = *link;
            if (!is_idle(storage)) {
                link = &storage->next;
                continue;
            }
            *link = storage->next;
            c->stats.cached -= (int64_t)storage->capacity;
            backend->release(device.index, storage->data, storage->capacity);
            pc__free(storage);
        }
    pthread_mutex_unlock(&c->lock);
    return PC_OK;
}
