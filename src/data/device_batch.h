/* device_batch.h: batches for devices other than the CPU. Their parts cross on a stream of their own, from pinned memory;
 * the device makes the batch's tensors of them. */
#ifndef PC__DEVICE_BATCH_H
#define PC__DEVICE_BATCH_H

#include "data/batch.h"

/* The way to source->device, for batches of up to source->batch samples. NULL on failure. Free waits for the copies
 * that are under way. */
pc__crossing *pc__crossing_new(const pc__source *source) PC_MUST_USE;
void pc__crossing_free(pc__crossing *crossing);

/* Fill the parts of the batch that made->first, n and samples name, on up to `threads` threads, and enqueue their copies:
 * made->part are tensors on the device then. For whoever makes batches, one thread at a time. On failure tensors
 * may be left in *made. */
pc_status pc__device_batch_make(const pc__source *source, int threads, pc__made *made);

/* made->tensor from made->part, on the calling thread's current stream of the device. Nothing where nothing crosses. For the program's thread; on failure make this batch and those ahead of it again. */
pc_status pc__device_batch_finish(const pc__source *source, pc__made *made);

#endif
