/* leaf_watch.h: what a walk over the tape tells those who watch leaves (tensor/leaf_watch.h). */
#ifndef PC__WALK_WATCH_H
#define PC__WALK_WATCH_H

#include "tensor/leaf_watch.h"

/* Sets that a walk has met. */
typedef struct pc__leaf_sets {
    pc__leaf_set **set;
    int count, room;
} pc__leaf_sets;

/* watch.c. The walk `visit` will bring the leaf a gradient; has brought it, or will not; is done. */
pc_status pc__leaf_awaits(pc__leaf_sets *sets, pc_tensor *leaf, uint64_t visit);
pc_status pc__leaf_came(pc_tensor *leaf);
pc_status pc__leaf_sets_end(pc__leaf_sets *sets, pc_status status);

/* backward.c: pc_backward_with in a rule of another walk, which alone tells those who watch leaves: the rule's record leads
 * to the leaves that this one reaches. */
pc_status pc__backward_inside(pc_tensor *t, pc_tensor *gradient);

/* backward.c: add g to what a leaf has collected. The first one is taken as it is where the caller says that it is `fresh`
 * (nobody uses it after this) and nobody else can see it, unless it has its place. */
pc_status pc__leaf_adds(pc_tensor *leaf, pc_tensor *g, bool fresh);

/* leaf.c: a leaf without a gradient has this one. */
pc_status pc__leaf_gets(pc_tensor *leaf, pc_tensor *gradient);

#endif
