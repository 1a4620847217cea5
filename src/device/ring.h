/* ring.h: pinned pieces through which pageable memory travels. */
#ifndef PC__RING_H
#define PC__RING_H

#include "device/storage.h"

#define PC__RING_PIECE ((size_t)4 << 20)
#define PC__RING_PIECE_ROUNDED(n) (((n) + 63) & ~(size_t)63)

/* Whether the sync policy lets a copy of `n` bytes through: a large one may have to wait for pieces. */
pc_status pc__ring_allows(pc_stream *stream, size_t n, const char *who);

/* A pinned piece of `n` bytes that nothing uses, one reference; of large ones a device has a few under way at most: the
 * host waits for the oldest then. After the piece's last work is queued, say its ticket. */
pc__storage *pc__ring_take(pc_stream *stream, size_t n, const char *who) PC_MUST_USE;
void pc__ring_note(const pc_stream *stream, size_t n, uint64_t ticket);

#endif
