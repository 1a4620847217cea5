/* step_leaves.h: the gradients that a recorded step leaves to others than its optimiser. The host puts them where a call of
 * the function would: launches write them alone. */
#ifndef PC__STEP_LEAVES_H
#define PC__STEP_LEAVES_H

#include "device/graph.h"
#include "nn/optimizer.h"

typedef struct pc__step_leaf {
    pc_tensor *leaf, *grad; /* a reference each; NULL: it has none behind the step */
    bool given;             /* of a leaf with a watch: its `given` behind the step */
} pc__step_leaf;

/* Leaves whose gradients the step changes, without those of the optimiser that have none behind it. */
typedef struct pc__step_leaves {
    pc__step_leaf *list;
    int count, room;
    bool waited; /* one had a gradient in front of the recording, which can be no launch's */
} pc__step_leaves;

/* The recording is complete: note them. */
pc_status pc__step_leaves_note(pc__step_leaves *l, const pc_graph *graph, const pc_optimizer *o);

/* A gradient waits to be added to or to be let go. */
bool pc__step_leaves_wait(const pc__step_leaves *l);

/* Behind a launch: they have their gradients, and who watches them knows whether these are zeros in the place of none. */
void pc__step_leaves_give(const pc__step_leaves *l);

/* No launch will write them. */
void pc__step_leaves_drop_grads(pc__step_leaves *l);

void pc__step_leaves_clear(pc__step_leaves *l);

#endif
