/* step.h: steps that take turns, each with tensors of its own, so that one can make ready what the next one reads. */
#ifndef PC__STEP_H
#define PC__STEP_H

#include <paracord/step.h>

enum { PC__STEP_TURNS = 2 };

/* pc_step_run of a step whose function queues the same work in each turn, on other tensors: turns are recorded each by
 * itself, and may come in any order. */
pc_status pc__step_run(pc_step *step, int turn);

#endif
