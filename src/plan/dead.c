/* dead.c: the pass that leaves out what nobody can see: calls and copies that write temporaries alone, of which nothing
 * that is left reads. */
#include "plan/plan.h"

/* Walking backwards: whether somebody behind the node needs what it writes. */
static bool is_needed(const pc__plan *plan, const pc__plan_node *node, const bool *read)
{
    if (node->kind != PC__NODE_CALL && node->kind != PC__NODE_COPY)
        return true;
    if (node->kind == PC__NODE_CALL && node->call->op->flags & PC__SIDE_EFFECTS)
        return true;
    for (int i = 0; i < pc__node_uses(node); i++)
        if (pc__node_writes(node, i) &&
            (plan->storage[node->number[i]].place != PC__PLACE_TEMPORARY || read[node->number[i]]))
            return true;
    return false;
}

/* What it writes as a whole nobody needs from before; what it reads, and what it writes in part, they do. */
static void note(const pc__plan_node *node, bool *read)
{
    for (int i = 0; i < pc__node_uses(node); i++)
        if (pc__node_writes(node, i) && pc__node_renews(node, i))
            read[node->number[i]] = false;
    for (int i = 0; i < pc__node_uses(node); i++)
        if (!pc__node_writes(node, i) || !pc__node_renews(node, i))
            read[node->number[i]] = true;
}

void pc__pass_dead(pc__plan *plan)
{
    bool *read = pc__calloc((size_t)plan->storages + 1, sizeof *read);
    if (!read) {
        pc_error_clear(); /* the plan is right without the pass */
        return;
    }
    for (int i = plan->count - 1; i >= 0; i--) {
        pc__plan_node *node = &plan->node[i];
        if (node->gone)
            continue;
        if (is_needed(plan, node, read))
            note(node, read);
        else
            node->gone = PC__PASS_DEAD;
    }
    pc__free(read);
}
