/* device_batch.h: batches for devices other than the CPU. Bytes, a table of values and labels go across on a stream of
 * their own; the device augments. */
#ifndef PC__DEVICE_BATCH_H
#define PC__DEVICE_BATCH_H

#include "data/batch.h"

/* Gather the batch that made->first, n and samples name in host memory and enqueue its copies to source->device on
 * source->copies: pictures, table and y are tensors there then. In the loader's thread, or whoever makes batches. On
 * failure tensors may be left in *made: pc__made_drop. */
pc_status pc__device_batch_make(const pc__source *source, pc__made *made);

/* made->x from pictures and table, on the calling thread's current stream of the device; nothing where it is there. */
pc_status pc__device_batch_augment(const pc__source *source, pc__made *made);

#endif
