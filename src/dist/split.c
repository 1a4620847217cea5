/* split.c: groups of some ranks of a group. */
#include "dist/group.h"

typedef struct choice {
    int color, key;
    pc__place *place; /* of a group of threads: what the lowest rank of its color has made */
} choice;

static bool goes_before(const choice *all, int a, int b)
{
    return all[a].key != all[b].key ? all[a].key < all[b].key : a < b;
}

/* Ranks of the color, in the order of the new group. */
static int members_of(const choice *all, int size, int color, int *members)
{
    int n = 0;
    for (int r = 0; r < size; r++) {
        if (all[r].color != color)
            continue;
        int at = n++;
        for (; at > 0 && goes_before(all, r, members[at - 1]); at--)
            members[at] = members[at - 1];
        members[at] = r;
    }
    return n;
}

static pc__place *place_for(int size)
{
    pc__place *place = pc__place_new(size);
    for (int i = 1; place && i < size; i++)
        pc__place_hold(place);
    return place;
}

/* The first of the new group makes the place where it meets, with a reference for each, and all learn of it. */
static pc_status find_place(pc_group *g, const int *members, int size, pc_group *made, choice *all)
{
    choice mine = {.place = NULL};
    const bool first = made && members[0] == g->rank;
    if (first)
        mine.place = place_for(size);
    const pc_status status = pc__group_exchange(g, &mine, sizeof mine, all);
    for (int i = 0; mine.place && status != PC_OK && i < size; i++) /* nobody has learnt of it */
        pc__place_let_go(mine.place);
    PC__TRY(status);
    if (made)
        made->place = all[members[0]].place;
    if (!made || made->place)
        return PC_OK;
    return first ? PC_ERR_MEMORY
                 : pc__fail(PC_ERR_MEMORY, "pc_group_split: rank %d has no memory for the group", members[0]);
}

/* Its number among the parent's splits, and the color, behind the parent's name. Processes meet in the store by that name, so
 * it is never cut: where all of it has no room, its hash (FNV-1a) stands behind what the world is called. */
static void name_part(const pc_group *g, int color, char *name, size_t n)
{
    char whole[sizeof g->name + 40];
    uint64_t hash = 0xcbf29ce484222325u;
    const int length = snprintf(whole, sizeof whole, "%s/%lld.%d", g->name, (long long)g->splits, color);
    for (const char *c = whole; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    if ((size_t)length < n)
        memcpy(name, whole, (size_t)length + 1);
    else
        snprintf(name, n, "%.*s/~%016llx", (int)PC__MIN(strcspn(whole, "/"), 24), whole, (unsigned long long)hash);
}

static pc_group *make(pc_group *g, const int *members, int size, int color)
{
    char name[sizeof g->name];
    int rank = 0, *outer = pc__alloc((size_t)size * sizeof *outer);
    if (!outer)
        return NULL;
    for (int i = 0; i < size; i++) {
        outer[i] = g->members[members[i]];
        if (members[i] == g->rank)
            rank = i;
    }
    name_part(g, color, name, sizeof name);
    pc_group *made = pc__group_new(name, rank, size, outer, g->seconds);
    pc__free(outer);
    return made;
}

static pc_status split(pc_group *g, int color, choice *all, int *members, pc_group **result)
{
    const int size = color < 0 ? 0 : members_of(all, g->size, color, members);
    pc_group *made = size ? make(g, members, size, color) : NULL;
    pc_status status = size && !made ? PC_ERR_MEMORY : PC_OK;
    if (g->place && status == PC_OK)
        status = find_place(g, members, made ? size : 0, made, all);
    g->splits++;
    if (status == PC_OK)
        *result = made;
    else
        pc_group_free(made);
    return status;
}

pc_status pc_group_split(pc_group *group, int color, int key, pc_group **made)
{
    PC__NEED(group);
    PC__NEED(made);
    *made = NULL;
    if (color < -1)
        return pc__fail(PC_ERR_ARGUMENT, "pc_group_split: color %d; it is 0 or more, or -1 for no group", color);
    const choice mine = {.color = color, .key = key};
    choice *all = pc__calloc((size_t)group->size, sizeof *all);
    int *members = pc__alloc((size_t)group->size * sizeof *members);
    pc_status status = all && members ? pc__group_exchange(group, &mine, sizeof mine, all) : PC_ERR_MEMORY;
    if (status == PC_OK)
        status = split(group, color, all, members, made);
    pc__free(all);
    pc__free(members);
    return status;
}
