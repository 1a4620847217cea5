/* reducer.h: the gradients of a network in buckets, each of which is reduced over the ranks as soon as a backward pass has its
 * last gradient. */
#ifndef PC__REDUCER_H
#define PC__REDUCER_H

#include "parallel/buckets.h"

#include <paracord/group.h>
#include <paracord/nn.h>

typedef struct pc__reducer pc__reducer;

/* What differs between kinds of data parallel training. */
typedef struct pc__reduction {
    const char *who;  /* for errors */
    int parts;        /* of a bucket */
    int stage, ahead; /* of ZeRO; 0: none */
    pc_dtype dtype;   /* in which those of float32 are reduced (narrow.h) */
    bool briefly;     /* a bucket has memory from its first gradient on until it is reduced, and gradients go with it */
    pc_status (*reduce)(pc__reducer *reducer, int bucket); /* it is full */
    pc_status (*passed)(pc__reducer *reducer);             /* all are reduced; NULL: nothing */
    bool (*adds)(
        const pc__reducer *reducer); /* what comes is added to what earlier passes have left elsewhere; NULL: never */
} pc__reduction;

struct pc__reducer {
    pc__leaf_set set; /* first: what a walk sees */
    pc__reduction how;
    pc_module *module;
    pc_group *group;
    pc_tensor **parameter; /* those that collect gradients, a reference each */
    pc_parameter *name;    /* names alone */
    int count, room, name_room;
    pc__buckets buckets;
    pc_tensor *numbers;    /* lacking.h: [count]; NULL: they lie in the buckets */
    pc_tensor **number_of; /* by parameter, [1]; NULL: not needed yet */
    int next;              /* the bucket that is reduced next: all ranks have the same order */
    bool sync;             /* passes are reduced */
    bool walking;          /* a pass is under way */
    bool held;             /* but for those of a pipeline that comes back before its step is done */
};

/* The parameters in buckets, which all ranks have alike; nothing is watched yet. The errors are pc_ddp_new's. */
pc_status pc__reducer_open(pc__reducer *reducer, pc_module *module, pc_group *group, pc__reduction how,
                           double bucket_mb);

/* All that the ranks have of the network is rank 0's: its buffers, and its parameters, trained or not. */
pc_status pc__reducer_share(pc__reducer *reducer, bool parameters);

/* From now on backward passes are reduced. Steps that were recorded before are recorded anew. */
void pc__reducer_start(pc__reducer *reducer);

void pc__reducer_close(pc__reducer *reducer);

#endif
