/* in_place.h: what has to hold before an op writes into tensors that are there. */
#ifndef PC__OP_IN_PLACE_H
#define PC__OP_IN_PLACE_H

#include "tensor/call.h"

/* The tensors that the call is to write can be written: PC_ERR_STATE where the tape forbids it, PC_ERR_DEVICE, and
 * PC_ERR_ARGUMENT where an element would be written twice. */
pc_status pc__targets_check(const pc_call *call, pc_device device);

/* True where the kernel would read from input i what it has written already. */
bool pc__reads_written(const pc_call *call, int i);

#endif
