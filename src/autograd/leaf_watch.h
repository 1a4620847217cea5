/* leaf_watch.h: who wants to know when a walk over the tape has brought a leaf all of its gradients. */
#ifndef PC__LEAF_WATCH_H
#define PC__LEAF_WATCH_H

#include "tensor/tensor.h"

typedef struct pc__leaf_watch pc__leaf_watch;

/* Leaves that are watched together. All three are called in the thread of the walk, nothing is recorded on the tape
 * meanwhile, and a failure ends the walk. */
typedef struct pc__leaf_set {
    pc_status (*begin)(struct pc__leaf_set *set);
    pc_status (*ready)(struct pc__leaf_set *set,
                       pc__leaf_watch *watch); /* nothing more of this walk comes to the leaf */
    pc_status (*end)(
        struct pc__leaf_set *set); /* of a walk without failures; leaves that it did not reach were not ready */
    uint64_t visit;                /* the last walk that met one of its leaves */
} pc__leaf_set;

/* The watch of a leaf (pc_tensor.watch). */
struct pc__leaf_watch {
    pc__leaf_set *set;
    pc_tensor *place; /* where the leaf's first gradient is put, of its shape, dtype and memory order; NULL: anywhere */
    int awaited;      /* gradients of the walk under way that have not come yet */
    int number;       /* for the set */
};

/* Sets that a walk has met. */
typedef struct pc__leaf_sets {
    pc__leaf_set **set;
    int count, room;
} pc__leaf_sets;

/* watch.c. The walk `visit` will bring the leaf a gradient; has brought it, or will not; is done. */
pc_status pc__leaf_awaits(pc__leaf_sets *sets, pc_tensor *leaf, uint64_t visit);
pc_status pc__leaf_came(pc_tensor *leaf);
pc_status pc__leaf_sets_end(pc__leaf_sets *sets, pc_status status);

/* backward.c: add g to what a leaf has collected. The first one is taken as it is where the caller says that it is `fresh`
 * (nobody uses it after this) and nobody else can see it, unless it has its place. */
pc_status pc__leaf_adds(pc_tensor *leaf, pc_tensor *g, bool fresh);

/* leaf.c: a leaf without a gradient has this one. */
pc_status pc__leaf_gets(pc_tensor *leaf, pc_tensor *gradient);

#endif
