/* world.c: groups of processes. */
#include "dist/group.h"

pc_group *pc_group_world(void)
{
    pc_group *g = pc__group_new("world", 0, 1, NULL, -1);
    if (!g)
        return NULL;
    g->place = pc__place_new(1);
    if (g->place)
        return g;
    pc_group_free(g);
    return NULL;
}

pc_status pc__world_exchange(pc_group *group, const void *mine, size_t bytes, void *all)
{
    (void)group;
    memcpy(all, mine, bytes);
    return PC_OK;
}

const pc__engine *pc__world_engine(pc_device_type type)
{
    (void)type;
    return pc__null(PC_ERR_UNSUPPORTED, "groups of processes are not there");
}
