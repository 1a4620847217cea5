/* cache.h: the caching allocator of each device: freed blocks by size class, kept for reuse. */
#ifndef PC__CACHE_H
#define PC__CACHE_H

#include "device/storage.h"

#include <paracord/memory.h>

/* A block of at least `bytes`, from the cache or from the device; records PC_ERR_MEMORY and returns NULL otherwise. */
pc__storage *pc__cache_take(pc_stream *stream, size_t bytes) PC_MUST_USE;

/* Back into the cache. */
void pc__cache_give(pc__storage *storage);

#endif
