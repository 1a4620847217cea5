/* alloc.c: the one allocator that every byte of the library comes from. */
#include "base.h"

#include <paracord/memory.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_llong live;

static void *system_alloc(void *context, size_t bytes, size_t alignment)
{
    (void)context;
    if (alignment <= 16)
        return malloc(bytes);
    void *block = NULL;
    return posix_memalign(&block, alignment, bytes) == 0 ? block : NULL;
}

static void *system_resize(void *context, void *block, size_t bytes)
{
    (void)context;
    return realloc(block, bytes);
}

static void system_free(void *context, void *block)
{
    (void)context;
    free(block);
}

static const pc_allocator system_allocator = {system_alloc, system_resize, system_free, NULL};
static pc_allocator current = {system_alloc, system_resize, system_free, NULL};

pc_status pc_allocator_set(const pc_allocator *allocator)
{
    long long alive = atomic_load(&live);
    if (alive)
        return pc__fail(PC_ERR_STATE,
                        "pc_allocator_set: %lld blocks are still alive; free everything and call "
                        "pc_memory_trim first",
                        alive);
    if (allocator && (!allocator->alloc || !allocator->resize || !allocator->free))
        return pc__fail(PC_ERR_ARGUMENT, "pc_allocator_set: alloc, resize or free of the allocator is NULL");
    current = allocator ? *allocator : system_allocator;
    return PC_OK;
}

void pc__alloc_plainly(void)
{
    current = system_allocator;
}

int64_t pc_allocator_live(void)
{
    return atomic_load(&live);
}

void *pc__try_alloc_aligned(size_t bytes, size_t alignment)
{
    void *block = current.alloc(current.context, bytes ? bytes : 1, alignment);
    if (block)
        atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    return block;
}

void *pc__alloc_aligned(size_t bytes, size_t alignment)
{
    void *block = pc__try_alloc_aligned(bytes, alignment);
    return block ? block : pc__null(PC_ERR_MEMORY, "out of memory: %zu bytes on the host", bytes);
}

void *pc__alloc(size_t bytes)
{
    return pc__alloc_aligned(bytes, 16);
}

void *pc__calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return pc__null(PC_ERR_MEMORY, "out of memory: %zu times %zu bytes on the host", count, size);
    void *block = pc__alloc(bytes);
    return block ? memset(block, 0, bytes) : NULL;
}

void *pc__realloc(void *block, size_t bytes)
{
    if (!block)
        return pc__alloc(bytes);
    void *moved = current.resize(current.context, block, bytes ? bytes : 1);
    return moved ? moved : pc__null(PC_ERR_MEMORY, "out of memory: %zu bytes on the host", bytes);
}

char *pc__strdup(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = pc__alloc(n);
    return copy ? memcpy(copy, text, n) : NULL;
}

void pc__free(void *block)
{
    if (!block)
        return;
    atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
    current.free(current.context, block);
}

pc_status pc__grow(void **items, int *capacity, int count, size_t size)
{
    if (count < *capacity)
        return PC_OK;
    int wanted = *capacity ? *capacity * 2 : 8;
    void *moved = pc__realloc(*items, (size_t)wanted * size);
    if (!moved)
        return PC_ERR_MEMORY;
    *items = moved;
    *capacity = wanted;
    return PC_OK;
}
