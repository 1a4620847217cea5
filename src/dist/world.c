/* world.c: groups of processes, which meet in the store. */
#include "dist/group.h"

#include "dist/dump.h"
#include "dist/mpi.h"

#include <paracord/dist.h>

static atomic_int worlds;

/* All ranks make their groups in the same order, so numbers agree. */
pc_group *pc_group_world(void)
{
    char name[16] = "world";
    const int number = atomic_fetch_add(&worlds, 1), size = pc_dist_size();
    if (number)
        snprintf(name, sizeof name, "world.%d", number);
    pc_group *g = pc__group_new(name, size > 1 ? pc_dist_rank() : 0, size, NULL, -1);
    if (!g || size > 1)
        return g;
    g->place = pc__place_new(1);
    if (g->place)
        return g;
    pc_group_free(g);
    return NULL;
}

/* The point is the end: no key is the beginning of another. */
static void key_of(const pc_group *g, int64_t talk, int rank, char key[PC__STORE_KEY_MAX + 1])
{
    snprintf(key, PC__STORE_KEY_MAX + 1, "group/%s/%lld/%d.", g->name, (long long)talk, rank);
}

static pc_status hear(const pc_group *g, int64_t talk, int rank, void *theirs, size_t bytes)
{
    char key[PC__STORE_KEY_MAX + 1];
    size_t got = 0;
    key_of(g, talk, rank, key);
    pc_status status = pc__store_get(key, theirs, bytes, &got, g->seconds > 0 ? g->seconds : 1e9);
    if (status == PC_ERR_TIMEOUT) {
        pc_error_clear();
        status = pc__fail(PC_ERR_TIMEOUT,
                          "rank %d of %s has waited %g s for rank %d; every rank must make the same calls "
                          "(pc_group_set_timeout)",
                          g->rank, g->name, g->seconds, rank);
        pc__dump_all(pc_error_last()->message);
    }
    char why[PC__WHY_MAX];
    if (status == PC_ERR_LOST && pc__dist_lost(NULL, why)) {
        pc_error_clear();
        return pc__fail(PC_ERR_LOST, "%s", why);
    }
    if (status == PC_ERR_RANGE || (status == PC_OK && got != bytes)) {
        pc_error_clear();
        return pc__fail(PC_ERR_STATE,
                        "%s: rank %d brings %zu bytes and rank %d %zu; every rank must make the same calls", g->name,
                        g->rank, bytes, rank, got);
    }
    return status;
}

pc_status pc__world_exchange(pc_group *group, const void *mine, size_t bytes, void *all)
{
    char key[PC__STORE_KEY_MAX + 1];
    const int64_t talk = group->talks++;
    key_of(group, talk, group->rank, key);
    PC__TRY(pc__store_set(key, mine, bytes));
    for (int r = 0; r < group->size; r++)
        PC__TRY(hear(group, talk, r, (char *)all + (size_t)r * bytes, bytes));
    if (!talk)
        return PC_OK;
    key_of(group, talk - 1, group->rank, key); /* all have read it, or they would not be here */
    return pc__store_delete(key, NULL);
}

const pc__engine *pc__world_engine(pc_device_type type)
{
    (void)type;
    return &pc__engine_mpi;
}
