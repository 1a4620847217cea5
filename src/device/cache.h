/* cache.h: the caching allocators: freed blocks by size class, kept for reuse: one for each device, and one of pinned
 * host memory for each kind of device. */
#ifndef PC__CACHE_H
#define PC__CACHE_H

#include "device/storage.h"

#include <paracord/memory.h>

/* A block of at least `bytes` that work of `stream` may use next, from the cache or from the device. A block that other
 * streams still use is given out only where the device has nothing else, and the stream waits for it then. One
 * reference, the caller's. Records PC_ERR_MEMORY and returns NULL otherwise. `who` is what it is for. */
pc__storage *pc__cache_take(pc_stream *stream, size_t bytes, const char *who) PC_MUST_USE;

/* The same without waiting for anybody: a block that is in use stays there, and PC_ERR_MEMORY comes sooner. */
pc__storage *pc__cache_take_at_once(pc_stream *stream, size_t bytes, const char *who) PC_MUST_USE;

/* Pinned host memory that nothing uses. */
pc__storage *pc__cache_take_pinned(pc_device_type type, size_t bytes, const char *who) PC_MUST_USE;

/* The same for a device, as its memory. */
pc__storage *pc__cache_take_hosted(pc_device device, size_t bytes, const char *who) PC_MUST_USE;

/* `storage` takes the place of the block, which is gone then. */
void pc__cache_rename(pc__storage *block, pc__storage *storage);

/* Whether PARACORD_CACHE=off. */
bool pc__cache_is_off(void);

/* Back into the cache. */
void pc__cache_give(pc__storage *storage);

#endif
