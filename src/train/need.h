/* need.h: whether a training's memory is there, said before it begins: where the system overcommits, running out is a
 * process that is killed and not an allocation that fails. */
#ifndef PC__NEED_H
#define PC__NEED_H

#include "train/run.h"

/* Bytes that a training takes at least where it computes: for the network (weights, gradients, the optimiser's state;
 * on the CPU also a checkpoint, which is put together in memory, and the weights of the best epoch), and for each
 * picture of a rank's batch (input; what layers keep for the way back, of the share of them that is learnt from at once). */
typedef struct pc__need {
    double network, picture, parameters;
    double input, kept; /* of a picture: its input; what layers keep, of each that is learnt from at once */
} pc__need;
pc_status pc__need_of(const pc__run *run, int outputs, pc__need *need);

/* PC_ERR_MEMORY when it takes more than the device has left: with what it takes, for what, and which settings help.
 * PC_OK where the device does not say. */
pc_status pc__need_check(const pc__run *run, int outputs);

/* What decoded pictures may take beside it, when that is left to the library: as pc_loader_options.cache. */
int64_t pc__need_cache(const pc__run *run);

/* Say what a training that ran out of memory takes; the error that is recorded becomes its cause. */
pc_status pc__need_explain(const pc__run *run);

#endif
