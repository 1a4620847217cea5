/* agree.h: what all ranks must have the same of. */
#ifndef PC__AGREE_H
#define PC__AGREE_H

#include "dist/group.h"

#include <paracord/nn.h>

/* How gradients are reduced, and what is shared out: settings that the order and the sizes of all collectives follow from. */
typedef struct pc__manner {
    double bucket_mb;
    int64_t stage; /* of ZeRO; 0: pc_ddp */
    int64_t ahead;
    int64_t dtype; /* in which those of float32 are reduced */
} pc__manner;

/* PC_ERR_STATE, in all ranks, names two whose settings differ, and these. */
pc_status pc__agree_on_manner(pc_group *group, pc__manner mine);

/* All ranks have come here, `mine` is how this one has done its part. Where it has failed in one of them it fails in all: with its own
 * error in those, in others with the first one's and whose it is. */
pc_status pc__agree_on_success(pc_group *group, pc_status mine);

/* All ranks' modules have the same parameters and buffers: names, shapes, dtypes, memory orders, and which are trained. PC_ERR_STATE, in all ranks, names
 * the first that differs. */
pc_status pc__agree_on_module(pc_group *group, pc_module *module);

#endif
