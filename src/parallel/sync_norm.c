/* sync_norm.c: batch normalisations by the samples of all ranks. */
#include "dist/group.h"
#include "nn/norm.h"

#include <paracord/data_parallel.h>

static pc_status gather(void *group, pc_tensor *to, pc_tensor *from)
{
    return pc_group_all_gather(group, to, from);
}

static pc_status sum(void *group, pc_tensor *t)
{
    return pc_group_all_reduce(group, t, PC_GROUP_SUM);
}

static void share(pc_module *layer, pc_group *group)
{
    const pc__norm_peers peers = {.context = group, .count = group ? group->size : 0, .gather = gather, .sum = sum};
    pc__batch_norm_share(layer, &peers);
}

pc_status pc_batch_norm_set_group(pc_module *layer, pc_group *group)
{
    PC__NEED(layer);
    if (!pc__is_batch_norm(layer))
        return pc__fail(PC_ERR_ARGUMENT,
                        "pc_batch_norm_set_group: the module is a %s; pc_batch_norm1d and pc_batch_norm2d make batch "
                        "normalisations, and pc_sync_batch_norm finds those of a network",
                        layer->type->name);
    share(layer, group);
    return PC_OK;
}

static int share_all(pc_module *module, pc_group *group)
{
    int found = pc__is_batch_norm(module);
    if (found)
        share(module, group);
    for (int i = 0; i < module->child_count; i++)
        found += share_all(module->children[i].object, group);
    return found;
}

int pc_sync_batch_norm(pc_module *network, pc_group *group)
{
    PC__NEED_OR(-1, network);
    return share_all(network, group);
}
