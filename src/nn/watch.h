/* watch.h: what a recorded step's work depended on beside its tensors' values: modes and parts of the modules that it
 * asked, the thread's settings, the optimiser's. Whoever goes on with a recording asks whether all that still holds. */
#ifndef PC__WATCH_H
#define PC__WATCH_H

#include "nn/module.h"
#include "nn/optimizer.h"

/* The calling thread's, which calls are queued by. */
typedef struct pc__settings {
    pc_dtype autocast;
    pc_precision precision;
    pc_choice choice;
    pc_device device;
    bool grad, evaluating;
} pc__settings;

typedef struct pc__watched {
    pc_module *module; /* held */
    bool training;     /* when it was first asked */
    bool set;          /* the work itself had set its mode before */
    unsigned version;
    uint64_t state; /* of its own data, and of what its parameters are, when the work was queued */
} pc__watched;

typedef struct pc__watch {
    pc__watched *list;
    int count, room;
    bool failed; /* there was no memory to note something */
    pc__settings settings;
    pc__step_attributes optimizer;
    double clip_norm;
    uint64_t parameters; /* of the optimiser: which collect gradients */
} pc__watch;

/* From begin to end what the calling thread asks of modules is noted, in place of what was noted before. End:
 * PC_ERR_MEMORY where something is missing. */
void pc__watch_begin(pc__watch *w, const pc_optimizer *o);
pc_status pc__watch_end(pc__watch *w);
void pc__watch_clear(pc__watch *w);

/* Whether the optimiser's settings, and everything else, are as noted. */
bool pc__watch_same_optimizer(const pc__watch *w, const pc_optimizer *o);
bool pc__watch_holds(const pc__watch *w, const pc_optimizer *o);

#endif
