/* use.c: which nodes write and read each storage. */
#include "plan/plan.h"

static bool reads(const pc__plan_node *node, int i)
{
    return !pc__node_writes(node, i) || !pc__node_renews(node, i);
}

/* Counts first, into the place behind each storage's own. */
static void count(pc__plan_uses *uses)
{
    for (int n = 0; n < uses->plan->count; n++) {
        const pc__plan_node *node = &uses->plan->node[n];
        for (int i = 0; i < (node->gone ? 0 : pc__node_uses(node)); i++) {
            uses->first[node->number[i] + 1] += reads(node, i);
            if (pc__node_writes(node, i))
                uses->writer[node->number[i]] = n;
        }
    }
    for (int k = 0; k < uses->plan->storages; k++)
        uses->first[k + 1] += uses->first[k];
}

static void list(pc__plan_uses *uses, int *next)
{
    for (int n = 0; n < uses->plan->count; n++) {
        const pc__plan_node *node = &uses->plan->node[n];
        for (int i = 0; i < (node->gone ? 0 : pc__node_uses(node)); i++)
            if (reads(node, i))
                uses->reader[next[node->number[i]]++] = n;
    }
}

bool pc__plan_uses_make(pc__plan_uses *uses, const pc__plan *plan)
{
    const size_t storages = (size_t)plan->storages + 1;
    *uses = (pc__plan_uses){.plan = plan,
                            .writer = pc__alloc(storages * sizeof *uses->writer),
                            .first = pc__calloc(storages, sizeof *uses->first)};
    for (size_t k = 0; uses->writer && k < storages; k++)
        uses->writer[k] = -1;
    if (uses->writer && uses->first)
        count(uses);
    uses->reader = uses->first ? pc__alloc(((size_t)uses->first[plan->storages] + 1) * sizeof *uses->reader) : NULL;
    int *next = pc__alloc(storages * sizeof *next);
    const bool made = uses->writer && uses->first && uses->reader && next;
    if (made) {
        memcpy(next, uses->first, storages * sizeof *next);
        list(uses, next);
    } else
        pc__plan_uses_free(uses);
    pc__free(next);
    return made;
}

void pc__plan_uses_free(pc__plan_uses *uses)
{
    pc__free(uses->writer);
    pc__free(uses->first);
    pc__free(uses->reader);
    *uses = (pc__plan_uses){0};
}
