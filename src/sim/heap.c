/* heap.c: a device's memory. Its address range is reserved twice, one behind the other: storages hold addresses of the
 * first half, which nobody may touch; the second half, at the same distance for all, has the contents, and only engines
 * go there. So a host pointer that strays into device memory faults, in every build. The second half can be touched as far
 * as it was ever allocated; under the address sanitizer what of this is not allocated is poisoned. (To poison all of it
 * took longer than most tests: the sanitizer writes an eighth of it.) */
#include "sim/sim.h"

#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

#define GRAIN ((size_t)256)

/* Freed pieces of this size on give their pages back to the system. */
#define LARGE ((size_t)1 << 20)

#define PAGE ((size_t)4096)
#define REACH ((size_t)4 << 20) /* is opened at once, or as much as is open already */

static char *inside(const pc__sim_device *device, size_t offset)
{
    return device->memory + device->bytes + offset;
}

pc_status pc__sim_heap_open(pc__sim_device *device)
{
    size_t bytes = ((size_t)pc__sim.options.memory + PAGE - 1) / PAGE * PAGE;
    pc__sim_block *whole = pc__calloc(1, sizeof *whole);
    if (!whole)
        return PC_ERR_MEMORY;
    char *range = mmap(NULL, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) {
        pc__free(whole);
        return pc__fail(PC_ERR_MEMORY, "sim:%d: the system has no %zu bytes of addresses for it; give it less memory",
                        device->index, bytes);
    }
    device->memory = range;
    device->bytes = bytes;
    device->reached = 0;
    whole->bytes = (size_t)pc__sim.options.memory / GRAIN * GRAIN;
    device->blocks = whole;
    return PC_OK;
}

void pc__sim_heap_close(pc__sim_device *device)
{
    if (!device->memory)
        return;
    ASAN_UNPOISON_MEMORY_REGION(inside(device, 0), device->reached);
    (void)munmap(device->memory, 2 * device->bytes);
    for (pc__sim_block *b = device->blocks, *next; b; b = next) {
        next = b->next;
        pc__free(b);
    }
    device->memory = NULL;
    device->blocks = NULL;
}

/* The smallest free piece that is large enough. */
static pc__sim_block *best(pc__sim_device *device, size_t bytes)
{
    pc__sim_block *found = NULL;
    for (pc__sim_block *b = device->blocks; b; b = b->next)
        if (!b->used && b->bytes >= bytes && (!found || b->bytes < found->bytes))
            found = b;
    return found;
}

/* All up to `end` can be touched; what of it is not allocated, by nobody. */
static bool reach(pc__sim_device *device, size_t end)
{
    const size_t from = device->reached, more = PC__MAX(PC__MAX(from, REACH), end - PC__MIN(from, end));
    const size_t to = PC__MIN((from + more + PAGE - 1) / PAGE * PAGE, device->bytes);
    if (end <= from)
        return true;
    if (mprotect(inside(device, from), to - from, PROT_READ | PROT_WRITE) != 0)
        return false;
    ASAN_POISON_MEMORY_REGION(inside(device, from), to - from);
    device->reached = to;
    return true;
}

void *pc__sim_heap_take(pc__sim_device *device, size_t bytes)
{
    size_t rounded = PC__MAX((bytes + GRAIN - 1) / GRAIN * GRAIN, GRAIN);
    pc__sim_block *b = best(device, rounded);
    if (!b || !reach(device, b->offset + rounded))
        return NULL;
    if (b->bytes > rounded) {
        pc__sim_block *rest = pc__try_alloc_aligned(sizeof *rest, 16);
        if (!rest)
            return NULL;
        *rest = (pc__sim_block){b->next, b->offset + rounded, b->bytes - rounded, false};
        b->next = rest;
        b->bytes = rounded;
    }
    b->used = true;
    ASAN_UNPOISON_MEMORY_REGION(inside(device, b->offset), bytes);
    return device->memory + b->offset;
}

static void swallow_next(pc__sim_block *b)
{
    pc__sim_block *next = b->next;
    if (!next || next->used || b->used)
        return;
    b->bytes += next->bytes;
    b->next = next->next;
    pc__free(next);
}

void pc__sim_heap_give(pc__sim_device *device, void *block)
{
    size_t offset = (size_t)((char *)block - device->memory);
    pc__sim_block *before = NULL, *b = device->blocks;
    for (; b && b->offset != offset; b = b->next)
        before = b;
    if (!b)
        return;
    b->used = false;
    if (b->bytes >= LARGE)
        (void)madvise(inside(device, (b->offset + 4095) / 4096 * 4096), (b->bytes - 4095) / 4096 * 4096, MADV_DONTNEED);
    ASAN_POISON_MEMORY_REGION(inside(device, b->offset), b->bytes);
    swallow_next(b);
    if (before)
        swallow_next(before);
}

void pc__sim_heap_info(const pc__sim_device *device, pc__memory_info *info)
{
    *info = (pc__memory_info){0};
    for (const pc__sim_block *b = device->blocks; b; b = b->next) {
        info->total += (int64_t)b->bytes;
        if (b->used)
            continue;
        info->free += (int64_t)b->bytes;
        info->largest = PC__MAX(info->largest, (int64_t)b->bytes);
    }
}
