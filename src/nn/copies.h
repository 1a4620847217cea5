/* copies.h: an optimiser's parameters in 16 bits, which its recorded steps write beside them, so that forward passes
 * under autocast need not cast them. A copy holds as long as nobody else has written the parameter, or could have: a
 * pointer to it is out. */
#ifndef PC__COPIES_H
#define PC__COPIES_H

#include "tensor/tensor.h"

#include <paracord/nn.h>

typedef struct pc__copies {
    pc_dtype dtype;   /* of all that are there */
    int made;         /* so many */
    pc_tensor **of;   /* a parameter's, or NULL: it has none; NULL: nobody has asked for any */
    int64_t *version; /* of the parameter that a copy has the numbers of when all that is queued is done; -1: of none.
                         While a recording is made: of what its launches will have done so far */
    bool used;        /* by the recording under way */
} pc__copies;

/* What a recording does with its optimiser's copies. */
typedef struct pc__copies_use {
    bool reads;
    int keeps; /* so many, all that there were, have their parameters' numbers behind it; 0: not all have */
} pc__copies_use;

/* Forward passes of this thread are a recording's of this optimiser, until it is called with NULL; or, where recorded
 * is false, those by which such a recording will go: what they ask for is made. */
void pc__copies_watch(pc_optimizer *o, bool recorded);

bool pc__copies_watched(void);

/* Into *copy, or NULL: a copy of t in dtype that is known to hold. It stays the optimiser's. */
pc_status pc__copy_of(pc_tensor *t, pc_dtype dtype, pc_tensor **copy);

/* A recording begins with copies that hold, and has ended. */
void pc__copies_begin(pc_optimizer *o);
pc__copies_use pc__copies_end(pc_optimizer *o);

/* The recorded step has been told to write them. */
void pc__copies_written(pc_optimizer *o);

/* Before a launch of such a recording: cast what does not hold. Behind it. And where nobody knows what it did. */
pc_status pc__copies_refresh(pc_optimizer *o);
void pc__copies_launched(pc_optimizer *o, const pc__copies_use *use);
void pc__copies_lost(pc_optimizer *o);

void pc__copies_free(pc_optimizer *o);

#endif
