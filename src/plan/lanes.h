/* lanes.h: which work of a plan is done when other work begins, as far as its streams' waits say. */
#ifndef PC__LANES_H
#define PC__LANES_H

#include "plan/plan.h"

/* What a lane does with a storage. */
typedef struct pc__lane_use {
    int first, last; /* uses, counted in nodes of the lane; -1: none */
    int node;        /* of the plan: the first one */
} pc__lane_use;

typedef struct pc__lanes {
    int count, span;   /* lanes; nodes of one that the backend may do as one */
    pc__lane_use *use; /* by storage and lane */
    int *known;        /* by node and lane: how many nodes of that lane are done in front of it */
} pc__lanes;

/* Of the plan as it is. PC_ERR_MEMORY. */
pc_status pc__lanes_make(pc__lanes *lanes, const pc_graph *graph);
void pc__lanes_free(pc__lanes *lanes);

/* All that uses storage a is done before anything uses storage b. */
bool pc__lanes_before(const pc__lanes *lanes, int a, int b);

#endif
