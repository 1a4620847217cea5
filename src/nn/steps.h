/* steps.h: a network's layers one by one, with what each takes and gives. */
#ifndef PC__STEPS_H
#define PC__STEPS_H

#include "nn/module.h"

/* Called with a child, what it takes (the first of several inputs) and what it gave. */
typedef pc_status (*pc__step_fn)(void *context, pc_module *child, pc_tensor *x, pc_tensor *y);

/* How many calls pc__each_step will make. */
int pc__step_count(const pc_module *net);

/* Send x through a graph, child by child, or through a chain (layers.h) with the chains in it, without fusions. Inside a
 * scope. The first error ends it. */
PC__SHARED pc_status pc__each_step(pc_module *net, pc_tensor *x, pc__step_fn step, void *context);

#endif
