/* optimizer.h: an optimiser's inside, for checkpoints and files. */
#ifndef PC__OPTIMIZER_H
#define PC__OPTIMIZER_H

#include "nn/module.h"
#include "ops/step.h"

struct pc_optimizer {
    const char *name; /* "sgd", "adam" */
    pc_status (*step)(pc_tensor **tensors, int n, const pc__step_attributes *attributes);
    pc__step_attributes settings; /* step counts the updates made */
    int count;                    /* parameters */
    int slots;              /* values kept per parameter: sgd 0 or 1 (velocity), adam 2 (first and second moment) */
    pc_tensor **parameters; /* count, one reference each */
    pc_tensor **state;      /* slots * count: slot 0 of every parameter, then slot 1 */
    pc_tensor **work;       /* (2 + slots) * count + 1, for the call */

    /* For recordings, made by the first: settings.step where the device counts it, int64 [1], and what it is raised by.
     */
    pc_tensor *counter, *one;
    int64_t counted; /* what the counter has when all that is queued is done; -1: nobody knows */
    bool recording;  /* steps go into a recording of nn/step.c */
    int raises;      /* so many by now */
};

/* The counter is there and, when all that is queued is done, has settings.step. */
pc_status pc__optimizer_counter(pc_optimizer *o);

#endif
