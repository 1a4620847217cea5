/* floats.h: a call with 16-bit numbers as one of float32, for kernels that know no 16-bit ones. Plain data: the backend
 * gives the memory, converts what is read, runs its kernel, and converts what was written. */
#ifndef PC__FLOATS_H
#define PC__FLOATS_H

#include "tensor/call.h"

/* A tensor of the call as float32. */
typedef struct pc__single {
    pc_tensor tensor;
    pc__storage storage; /* bytes is what it needs, data is the backend's to set */
    pc_tensor *of;
    bool is_read, is_written; /* by the kernel */
} pc__single;

typedef struct pc__floats {
    pc_call call;     /* the same call with float32 in place of 16-bit numbers */
    pc__single *list; /* of each tensor that was one */
    int count;
} pc__floats;

/* True where any tensor of the call has 16-bit numbers. */
PC__FOR_LEVELS bool pc__has_halves(const pc_call *call);

/* The call may have tensors of other dtypes too. PC_ERR_MEMORY; else given back by pc__floats_free, which leaves the
 * backend's memory alone. */
PC__FOR_LEVELS pc_status pc__floats_make(pc__floats *floats, const pc_call *call);
PC__FOR_LEVELS void pc__floats_free(pc__floats *floats);

#endif
