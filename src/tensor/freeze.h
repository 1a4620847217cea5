/* freeze.h: a call that outlives its caller: for queues and plans. */
#ifndef PC__FREEZE_H
#define PC__FREEZE_H

#include "tensor/call.h"

/* A copy of the call with its tensors' shapes, in one block for pc__free. Memory is not copied and not kept: storages
 * appear with their data `shift` bytes further on (where an engine sees a device's own memory). NULL: PC_ERR_MEMORY. */
pc_call *pc__call_freeze(const pc_call *call, ptrdiff_t shift) PC_MUST_USE;

/* The same with the storages themselves, whose memory may be given out later. */
pc_call *pc__call_copy(const pc_call *call) PC_MUST_USE;

/* PC_OK when both have the same op on the same shapes, strides and dtypes; else PC_ERR_SHAPE, naming op number i. */
pc_status pc__call_same(const char *who, int i, const pc_call *a, const pc_call *b);

#endif
