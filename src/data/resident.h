/* resident.h: the pictures of a loader as bytes on its device, where they fit, and batches made from them there: order,
 * random values, gathering and augmenting are all work of the device. The program's thread queues it, on its current
 * stream. */
#ifndef PC__RESIDENT_H
#define PC__RESIDENT_H

#include "data/picture_batch.h"

#include <paracord/stream.h>

/* The source's pictures on their way to its device; NULL where they do not go there. Either way `why` is the reason.
 * On failure neither. */
pc_status pc__resident_new(const pc__source *source, pc_residence wanted, char *why, size_t n,
                           pc__resident **resident) PC_MUST_USE;
void pc__resident_free(pc__resident *resident);

/* Order and table of the source's next epoch are there, and so are the pictures: waits for that where it is news, so
 * that a failure on the way cannot pass for pictures. After one, call again. */
pc_status pc__resident_prepare(pc__resident *resident, const pc__source *source);

/* Room for a batch of n, owned by the caller whatever scopes are open. On failure *x may be there. */
pc_status pc__resident_room(const pc__source *source, int64_t n, pc_tensor **x, pc_tensor **y);

/* Batch number `number` of the epoch that is prepared, the rank's part of it, into x and y. */
pc_status pc__resident_make(pc__resident *resident, const pc__source *source, int64_t number, pc_tensor *x,
                            pc_tensor *y);

/* The same in a recording: each launch makes the batch behind the one that was made last, if that is a whole one.
 * It waits for what was recorded on `stream` before it; nothing there waits for it but what uses the same x and y. */
pc_status pc__resident_record(pc__resident *resident, const pc__source *source, pc_stream *stream, pc_tensor *x,
                              pc_tensor *y);

#endif
