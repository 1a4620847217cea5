/* cache.c: size classes, one list of free blocks each, one lock per pool.
 *
 * Classes are multiples of 64 bytes up to 512, then eight steps to each doubling: at most 12.5 % is lost to rounding,
 * and a block fits every later request of its class.
 *
 * With PARACORD_CACHE=off blocks have the bytes that were asked for and go back to the device when nothing uses them:
 * then checkers of memory see accesses behind a tensor, or after its end. */
#include "device/cache.h"

#include "device/order.h"
#include "device/pool.h"
#include "device/trace.h"
#include "device/wait.h"

/* How many free blocks of a class are looked at for one that nobody waits for. */
#define LOOKED_AT 16

static pc__pool pools[PC_DEVICE_TYPES][PC__DEVICES_MAX] = {
    [0 ... PC_DEVICE_TYPES - 1] = {[0 ... PC__DEVICES_MAX - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}}};
static pc__pool pinned_pools[PC_DEVICE_TYPES] = {[0 ... PC_DEVICE_TYPES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

pc__pool *pc__pool_of(pc_device device)
{
    return &pools[device.type][device.index];
}

void pc__pools_visit(void (*visit)(pc__pool *pool))
{
    for (int type = 0; type < PC_DEVICE_TYPES; type++) {
        visit(&pinned_pools[type]);
        for (int i = 0; i < PC__DEVICES_MAX; i++)
            visit(&pools[type][i]);
    }
}

static pc__pool *pool_of(const pc__storage *storage)
{
    return storage->pinned ? &pinned_pools[storage->pinned_for] : pc__pool_of(storage->device);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool off; /* as PARACORD_CACHE says */

static void ask(void)
{
    static const char *const words[] = {"off", "on"};
    off = pc__env_word("PARACORD_CACHE", words, PC__COUNT(words)) == 0;
}

bool pc__cache_is_off(void)
{
    pthread_once(&once, ask);
    return off;
}

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

static pc_status allocate(const pc__storage *like, size_t bytes, void **block)
{
    if (!like->pinned)
        return pc__backend_of(like->device.type)->allocate(like->device.index, bytes, block);
    const pc__backend *backend = pc__backend_of(like->pinned_for);
    if (backend->allocate_host)
        return backend->allocate_host(bytes, block);
    *block = pc__try_alloc_aligned(bytes, 4096);
    return *block ? PC_OK : PC_ERR_MEMORY;
}

static void release(pc__storage *storage)
{
    const pc__backend *backend = pc__backend_of(storage->pinned ? storage->pinned_for : storage->device.type);
    if (!storage->pinned)
        backend->release(storage->device.index, storage->data, storage->capacity);
    else if (backend->release_host)
        backend->release_host(storage->data, storage->capacity);
    else
        pc__free(storage->data);
    pc__free(storage->order.other);
    pc__free(storage);
}

static pc__storage *from_device(const pc__storage *like, size_t bytes)
{
    pc__storage *storage = pc__try_alloc_aligned(sizeof *storage, 64);
    if (!storage)
        return NULL;
    memset(storage, 0, sizeof *storage);
    storage->device = like->device;
    storage->pinned = like->pinned;
    storage->pinned_for = like->pinned_for;
    storage->capacity = bytes;
    if (allocate(like, bytes, &storage->data) == PC_OK)
        return storage;
    pc__free(storage);
    return NULL;
}

static void link_in(pc__storage **list, pc__storage *storage)
{
    storage->next = *list;
    storage->link = list;
    if (*list)
        (*list)->link = &storage->next;
    *list = storage;
}

static void link_out(pc__storage *storage)
{
    *storage->link = storage->next;
    if (storage->next)
        storage->next->link = storage->link;
}

/* Count a block as handed out, with the taker's reference: a recording may add its own before the taker has it. The
 * lock is held. */
static pc__storage *hand_out(pc__pool *pool, pc__storage *storage)
{
    atomic_store_explicit(&storage->references, 1, memory_order_relaxed);
    pool->stats.in_use += (int64_t)storage->capacity;
    pool->stats.peak = PC__MAX(pool->stats.peak, pool->stats.in_use);
    link_in(&pool->in_use, storage);
    return storage;
}

/* A free block of the class that work of `stream` (NULL: the host) can use without waiting for others; with `any`, one
 * that must be waited for. The lock is held. */
static pc__storage *find(pc__pool *pool, int class, const pc_stream *stream, bool any)
{
    pc__storage *storage = pc__cache_is_off() ? NULL : pool->free[class];
    for (int i = 0; storage && i < LOOKED_AT && !any; i++, storage = storage->next) {
        if (stream && !stream->backend->immediate && pc__is_own(storage, stream))
            break;
        if (pc__is_idle(storage)) {
            pc__order_reset(storage);
            break;
        }
        if (i == LOOKED_AT - 1)
            return NULL;
    }
    if (!storage)
        return NULL;
    link_out(storage);
    pool->stats.cached -= (int64_t)storage->capacity;
    return hand_out(pool, storage);
}

/* Give cached blocks that nothing uses back. The lock is held. */
static void trim(pc__pool *pool)
{
    for (int k = 0; k < PC__POOL_CLASSES; k++)
        for (pc__storage *storage = pool->free[k], *next; storage; storage = next) {
            next = storage->next;
            if (!pc__is_idle(storage))
                continue;
            link_out(storage);
            pool->stats.cached -= (int64_t)storage->capacity;
            release(storage);
        }
}

/* What is there when the device gives nothing, after giving back what is cached. The lock is held. */
static pc__storage *retry(pc__pool *pool, size_t rounded, const pc__storage *like)
{
    trim(pool);
    pc__storage *storage = from_device(like, rounded);
    return storage ? hand_out(pool, storage) : NULL;
}

/* What is there then for who can wait: a cached block that others still use; or after waiting for all that is queued.
 * The lock is held, but not while waiting. */
static pc__storage *scrape(pc__pool *pool, int class, size_t rounded, pc_stream *stream, const pc__storage *like,
                           bool *busy)
{
    pc__storage *storage = find(pool, class, stream, true);
    *busy = storage != NULL;
    if (storage || pool->stats.cached == 0)
        return storage;
    pthread_mutex_unlock(&pool->lock);
    pc_error before = pc__error_take(); /* what queued work failed with is not ours to lose or to report */
    pc_status waited = pc_device_synchronize(stream ? stream->device : like->device);
    if (waited == PC_OK || before.status != PC_OK)
        pc_error_clear();
    (void)pc__error_put(&before);
    pthread_mutex_lock(&pool->lock);
    return retry(pool, rounded, like);
}

/* Let the stream wait for those who still use a block, or the host where it works at once. */
static pc_status wait_for_users(pc__storage *storage, pc_stream *stream, const char *who)
{
    if (!stream || stream->backend->immediate) {
        PC__TRY(pc__settle(storage, true, who, true));
        pc__order_reset(storage);
        return PC_OK;
    }
    pc__work work = {.name = who};
    PC__TRY(pc__queue_open(stream, &work));
    pc_status status = pc__uses_always(storage, stream, &work);
    if (status == PC_OK)
        status = stream->backend->host_call(stream, NULL, NULL, &work);
    pc__queue_close(stream, &work, status);
    return status;
}

static pc__storage *take(pc__pool *pool, pc_stream *stream, size_t bytes, const char *who, const pc__storage *like,
                         bool waits)
{
    size_t rounded;
    bool busy = false;
    int class = bytes <= (size_t)1 << 46 ? class_of(bytes, &rounded) : -1;
    pthread_mutex_lock(&pool->lock);
    pool->stats.requests++;
    pc__storage *storage = class < 0 ? NULL : find(pool, class, stream, false);
    if (pc__cache_is_off()) {
        rounded = PC__MAX(bytes, 1);
        trim(pool);
    }
    if (!storage && class >= 0) {
        pool->stats.misses++;
        storage = from_device(like, rounded);
        storage = storage ? hand_out(pool, storage) : retry(pool, rounded, like);
        if (!storage && waits)
            storage = scrape(pool, class, rounded, stream, like, &busy);
    }
    if (storage) {
        storage->device = like->device; /* pinned memory is for all devices of a kind */
        storage->maker = who;           /* the report of another thread reads it under this lock */
    } else {
        pc__pool_report(pool, like, bytes, who);
    }
    pthread_mutex_unlock(&pool->lock);
    if (busy && wait_for_users(storage, stream, who) != PC_OK) {
        pc__storage_drop(storage);
        return NULL;
    }
    return storage;
}

pc__storage *pc__cache_take(pc_stream *stream, size_t bytes, const char *who)
{
    pc__storage like = {.device = stream->device};
    return take(pc__pool_of(stream->device), stream, bytes, who, &like, true);
}

pc__storage *pc__cache_take_at_once(pc_stream *stream, size_t bytes, const char *who)
{
    pc__storage like = {.device = stream->device};
    return take(pc__pool_of(stream->device), stream, bytes, who, &like, false);
}

pc__storage *pc__cache_take_pinned(pc_device_type type, size_t bytes, const char *who)
{
    pc__storage like = {.device = PC_DEVICE_CPU, .pinned = true, .pinned_for = (int16_t)type};
    return take(&pinned_pools[type], NULL, bytes, who, &like, true);
}

pc__storage *pc__cache_take_hosted(pc_device device, size_t bytes, const char *who)
{
    pc__storage like = {.device = device, .pinned = true, .pinned_for = device.type};
    return take(&pinned_pools[device.type], NULL, bytes, who, &like, true);
}

void pc__cache_rename(pc__storage *block, pc__storage *storage)
{
    pc__pool *pool = pool_of(block);
    pthread_mutex_lock(&pool->lock);
    storage->data = block->data;
    storage->capacity = block->capacity;
    link_out(block);
    link_in(&pool->in_use, storage);
    pthread_mutex_unlock(&pool->lock);
    pc__free(block->order.other);
    pc__free(block);
}

void pc__cache_give(pc__storage *storage)
{
    pc__pool *pool = pool_of(storage);
    size_t rounded;
    int class = class_of(storage->capacity, &rounded);
    pthread_mutex_lock(&pool->lock);
    link_out(storage);
    pool->stats.in_use -= (int64_t)storage->capacity;
    if (pc__cache_is_off() && pc__is_idle(storage)) {
        release(storage);
    } else {
        link_in(&pool->free[class], storage);
        pool->stats.cached += (int64_t)storage->capacity;
    }
    pthread_mutex_unlock(&pool->lock);
}

pc_status pc_memory_query(pc_device device, pc_memory_stats *stats)
{
    PC__NEED(stats);
    *stats = (pc_memory_stats){0};
    PC__TRY(pc__device_check(device, "pc_memory_query"));
    pc__pool *pool = pc__pool_of(device);
    pthread_mutex_lock(&pool->lock);
    *stats = pool->stats;
    pthread_mutex_unlock(&pool->lock);
    pc__pool *pinned = &pinned_pools[device.type];
    pthread_mutex_lock(&pinned->lock);
    stats->pinned = pinned->stats.in_use;
    stats->pinned_cached = pinned->stats.cached;
    pthread_mutex_unlock(&pinned->lock);
    const pc__backend *backend = pc__backend_of(device.type);
    pc__memory_info info = {0};
    if (backend->memory && backend->memory(device.index, &info) == PC_OK) {
        stats->total = info.total;
        stats->free = info.free;
        stats->largest_free = info.largest;
    }
    return PC_OK;
}

static void trim_pool(pc__pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    trim(pool);
    pthread_mutex_unlock(&pool->lock);
}

pc_status pc_memory_trim(pc_device device)
{
    PC__TRY(pc__device_check(device, "pc_memory_trim"));
    trim_pool(pc__pool_of(device));
    for (int type = 0; type < PC_DEVICE_TYPES; type++)
        if (device.type == PC_CPU || device.type == type)
            trim_pool(&pinned_pools[type]);
    return PC_OK;
}
