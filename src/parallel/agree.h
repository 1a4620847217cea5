/* agree.h: what all ranks must have the same of. */
#ifndef PC__AGREE_H
#define PC__AGREE_H

#include "dist/group.h"

#include <paracord/nn.h>

/* All ranks' modules have the same parameters and buffers: names, shapes, dtypes, memory orders. PC_ERR_STATE, in all ranks, names
 * the first that differs. */
pc_status pc__agree_on_module(pc_group *group, pc_module *module);

#endif
