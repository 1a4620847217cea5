/* finite.h: finding the op that made the first infinity or NaN. Slow: every result is read back. */
#ifndef PC__OP_FINITE_H
#define PC__OP_FINITE_H

#include "tensor/call.h"

/* While it is on, calls of this thread fail with PC_ERR_RANGE when a floating result has a NaN that no input had, or an
 * infinity where all inputs are finite; numbers that the program gave (masked_fill, fill) may be infinite. */
void pc__finite_watch(bool on);
extern _Thread_local bool pc__finite_watched;

/* For dispatch.c: a call that was done. */
pc_status pc__finite_check(const pc_call *call);

/* The first number of a floating tensor that is infinite or NaN: its place in C order, -1 for none, and the number. */
pc_status pc__finite_find(const pc_tensor *t, int64_t *at, double *number);

#endif
