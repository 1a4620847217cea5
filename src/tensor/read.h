/* read.h: host memory into tensors. */
#ifndef PC__READ_H
#define PC__READ_H

#include "tensor/tensor.h"

/* Copy host memory (C order) into a contiguous tensor; done when it returns. */
pc_status pc__tensor_write(pc_tensor *t, const void *host);

/* Release a tensor made a moment ago that no one has seen: it leaves its scope first. Returns NULL. */
pc_tensor *pc__tensor_discard(pc_tensor *t);

#endif
