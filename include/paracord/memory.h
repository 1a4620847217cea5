/* memory.h: the one allocator under everything, and the caching allocator's figures.
 *
 * Every byte that the library itself allocates on the host, tensor data on the CPU included, comes from one allocator
 * that the program may replace before its first other call. (Libraries below, such as HDF5, keep their own.)
 */
#ifndef PARACORD_MEMORY_H
#define PARACORD_MEMORY_H

#include <paracord/device.h>
#include <paracord/error.h>

PC_BEGIN

/* All three may be called from any thread at once. */
typedef struct pc_allocator {
    /* `bytes` > 0, aligned to `alignment` (a power of two, at least 16); NULL where there is no memory */
    void *(*alloc)(void *context, size_t bytes, size_t alignment);
    /* as realloc, for blocks of alignment 16 */
    void *(*resize)(void *context, void *block, size_t bytes);
    /* any block, never NULL */
    void (*free)(void *context, void *block);
    void *context;
} pc_allocator;

/* Replace the allocator; NULL restores the C library's. Call it while nothing allocated by Paracord is alive:
 * PC_ERR_STATE otherwise. Not for use from several threads at once. */
PC_API PC_MUST_USE pc_status pc_allocator_set(const pc_allocator *allocator);

/* Blocks of the one allocator that are alive now; for leak checks. Any thread. */
PC_API int64_t pc_allocator_live(void);

/* What the caching allocator of one device holds, in bytes. With PARACORD_CACHE=off in the environment it caches
 * nothing: blocks have the size that was asked for, and go back to the device when nothing uses them any more. That is
 * slow, and shows address sanitizers and NVIDIA's compute-sanitizer who reads behind a tensor, or one that is gone. */
typedef struct pc_memory_stats {
    int64_t in_use;       /* handed out to storages */
    int64_t cached;       /* freed by storages, kept for reuse */
    int64_t peak;         /* the largest in_use so far */
    int64_t requests;     /* blocks asked for so far (a count) */
    int64_t misses;       /* of those, how many had to go to the device's own allocator (a count) */
    int64_t total;        /* of the device, 0 where it has no limit of its own (cpu) */
    int64_t free;         /* of that, not allocated */
    int64_t largest_free; /* the largest free piece */
    /* Of pinned host memory (pc_empty_pinned, pc_zero with .offload), which devices of a kind have in common: handed out,
     * and kept for reuse. */
    int64_t pinned, pinned_cached;
} pc_memory_stats;

PC_API PC_MUST_USE pc_status pc_memory_query(pc_device device, pc_memory_stats *stats);

/* Give cached blocks of the device back to it, and those of pinned host memory (for `cpu`: of every kind). Waits for
 * nothing: blocks still in use by queued work stay. */
PC_API PC_MUST_USE pc_status pc_memory_trim(pc_device device);

/* Bytes of host memory that this process can still get, as the kernel estimates: what the machine has left (swap
 * aside), and what the limits of the process and its control groups leave. INT64_MAX where nothing says. Any thread. */
PC_API int64_t pc_memory_left(void);

PC_END
#endif
