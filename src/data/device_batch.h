/* device_batch.h: batches for devices other than the CPU. Bytes, a table of values and labels cross on a stream of
 * their own, from pinned memory; the device augments. */
#ifndef PC__DEVICE_BATCH_H
#define PC__DEVICE_BATCH_H

#include "data/batch.h"

/* The way to source->device, for batches of up to source->batch pictures. NULL on failure. Free waits for the copies
 * that are under way. */
pc__crossing *pc__crossing_new(const pc__source *source) PC_MUST_USE;
void pc__crossing_free(pc__crossing *crossing);

/* Gather the batch that made->first, n and samples name, on up to `threads` threads, and enqueue its copies: pictures,
 * table and labels are tensors on the device then. For whoever makes batches, one thread at a time. On failure tensors
 * may be left in *made. */
pc_status pc__device_batch_make(const pc__source *source, int threads, pc__made *made);

/* made->x from pictures and table, and y from labels, on the calling thread's current stream of the device. Nothing
 * where that is the CPU. For the program's thread; on failure make this batch and those ahead of it again. */
pc_status pc__device_batch_augment(const pc__source *source, pc__made *made);

#endif
