/* read.h: host memory into tensors, and tensors around memory. */
#ifndef PC__READ_H
#define PC__READ_H

#include "tensor/tensor.h"

/* Copy host memory (C order) into a contiguous tensor; the host memory is free again when it returns. */
pc_status pc__tensor_write(pc_tensor *t, const void *host, const char *who);

/* pc_read for the call `who`. */
pc_status pc__read(const pc_tensor *t, void *host, size_t bytes, const char *who);

/* A tensor of that storage, whose reference it takes over; NULL for NULL. */
pc_tensor *pc__tensor_around(pc__storage *storage, const pc__meta *meta);

/* Release a tensor made a moment ago that no one has seen: it leaves its scope first. Returns NULL. */
pc_tensor *pc__tensor_discard(pc_tensor *t);

#endif
