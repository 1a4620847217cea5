/* aside.c: the pass that takes work off the way that a recording goes: products, sums and copies whose results only its end
 * needs, as gradients of weights are needed by the optimiser's step alone. They run beside what follows, in an order of their
 * own. The order of nodes stays. What is aside keeps its operands' memory until it is met (memory.c). */
#include "plan/plan.h"

#include "ops/table.h"

#include <limits.h>

enum {
    BYTES_MOST = 1 << 30, /* of a node's operands, which larger ones would keep too long */
    LEAST = 4,            /* products, fewer of which are not worth two branches */
    MUCH = 128 << 20,     /* bytes of temporaries that all read: with more, runs are met as they come */
    BEHIND = 2            /* so many may then still be under way */
};

typedef struct asides {
    pc__plan *plan;
    const pc_stream *main;
    int *used, *written; /* by storage: the first node on the way behind the one at hand that does so; INT_MAX: none */
    int *votes;          /* by node: for how many products it is the first to need their result */
} asides;

static bool is_main(const asides *s, const pc__plan_node *node)
{
    return node->stream == s->main;
}

/* What may look at anything, or hands on the order of the main stream to another one. */
static bool is_stop(const asides *s, const pc__plan_node *node)
{
    return node->kind == PC__NODE_FUNCTION || (node->kind == PC__NODE_WAIT && node->other == s->main) ||
           (node->kind == PC__NODE_CALL && node->call->op->flags & PC__SIDE_EFFECTS);
}

static bool is_light(const asides *s, const pc__plan_node *node)
{
    size_t bytes = 0;
    for (int i = 0; i < pc__node_uses(node); i++)
        bytes += s->plan->storage[node->number[i]].bytes;
    return bytes <= BYTES_MOST;
}

/* Work of which training steps have many that nothing waits for. */
static bool is_of_kind(const asides *s, const pc__plan_node *node)
{
    if (node->kind != PC__NODE_CALL || !is_main(s, node) || !is_light(s, node))
        return false;
    switch (node->call->op->index) {
    case PC__OP_matmul:
    case PC__OP_conv2d_backward:
    case PC__OP_sum:
    case PC__OP_copy:
    case PC__OP_saxpy:
    case PC__OP_running_step:
        return true;
    default:
        return false;
    }
}

static bool is_product(const pc__plan_node *node)
{
    return node->call->op->index == PC__OP_matmul || node->call->op->index == PC__OP_conv2d_backward;
}

/* The first node behind this one that must come behind what it does. */
static int needed(const asides *s, const pc__plan_node *node)
{
    int first = INT_MAX;
    for (int i = 0; i < pc__node_uses(node); i++) {
        const int number = node->number[i];
        first = PC__MIN(first, pc__node_writes(node, i) ? s->used[number] : s->written[number]);
    }
    return first;
}

static void pass_by(asides *s, int i)
{
    const pc__plan_node *node = &s->plan->node[i];
    for (int k = 0; k < (is_stop(s, node) ? s->plan->storages : 0); k++)
        s->used[k] = s->written[k] = i;
    for (int k = 0; k < pc__node_uses(node); k++) {
        s->used[node->number[k]] = i;
        if (pc__node_writes(node, k))
            s->written[node->number[k]] = i;
    }
}

static void forget(asides *s)
{
    for (int k = 0; k < s->plan->storages; k++)
        s->used[k] = s->written[k] = INT_MAX;
}

/* Where most of the products' results are needed first; INT_MAX: there are too few of them. */
static int end_of_way(asides *s)
{
    int best = INT_MAX;
    forget(s);
    for (int i = s->plan->count - 1; i >= 0; i--) {
        const pc__plan_node *node = &s->plan->node[i];
        if (node->gone)
            continue;
        const int at = is_of_kind(s, node) && is_product(node) ? needed(s, node) : INT_MAX;
        if (at < INT_MAX && ++s->votes[at] >= LEAST && (best == INT_MAX || s->votes[at] > s->votes[best]))
            best = at;
        pass_by(s, i);
    }
    return best;
}

static void mark(asides *s, int end)
{
    forget(s);
    for (int i = s->plan->count - 1; i >= 0; i--) {
        pc__plan_node *node = &s->plan->node[i];
        if (node->gone)
            continue;
        node->aside = i < end && is_of_kind(s, node) && needed(s, node) >= end;
        if (!node->aside)
            pass_by(s, i);
    }
}

/* Consecutive ones are a run; how many bytes of temporaries all of them read. */
static size_t number_runs(asides *s)
{
    size_t bytes = 0;
    int run = 0;
    bool inside = false;
    for (int i = 0; i < s->plan->count; i++) {
        pc__plan_node *node = &s->plan->node[i];
        if (node->gone)
            continue;
        run += node->aside && !inside;
        inside = node->aside;
        node->aside = inside ? run : 0;
        for (int k = 0; k < (inside ? pc__node_uses(node) : 0); k++) {
            const pc__plan_storage *storage = &s->plan->storage[node->number[k]];
            if (!pc__node_writes(node, k) && storage->place == PC__PLACE_TEMPORARY)
                bytes += storage->bytes;
        }
    }
    return bytes;
}

/* The last run that the node must come behind; used and written are, by storage, the last run that reads and writes it. */
static int run_needed(asides *s, const pc__plan_node *node, int newest)
{
    int run = is_stop(s, node) ? newest : 0;
    for (int k = 0; k < pc__node_uses(node); k++) {
        const int number = node->number[k];
        run = PC__MAX(run, s->written[number]);
        if (pc__node_writes(node, k))
            run = PC__MAX(run, s->used[number]);
    }
    return run;
}

/* Where runs are waited for: in front of whoever needs them, or may; and where they use much memory, a few runs later, from
 * where on others can have that. */
static void meet(asides *s, bool much)
{
    int newest = 0, met = 0;
    memset(s->used, 0, (size_t)s->plan->storages * sizeof *s->used);
    memset(s->written, 0, (size_t)s->plan->storages * sizeof *s->written);
    for (int i = 0; i < s->plan->count; i++) {
        pc__plan_node *node = &s->plan->node[i];
        if (node->gone)
            continue;
        for (int k = 0; k < (node->aside ? pc__node_uses(node) : 0); k++)
            (pc__node_writes(node, k) ? s->written : s->used)[node->number[k]] = newest = node->aside;
        if (node->aside)
            continue;
        const int needed = run_needed(s, node, newest);
        const int wanted = PC__MAX(needed, much && is_main(s, node) ? newest - BEHIND : 0);
        node->meets = wanted > met ? wanted : 0;
        met = PC__MAX(met, wanted);
    }
}

void pc__pass_aside(const pc_graph *graph)
{
    asides s = {.plan = graph->plan, .main = graph->stream};
    const size_t storages = (size_t)s.plan->storages + 1;
    if (!graph->backend->graph_aside || s.plan->count == 0)
        return;
    pc__plan_halve(s.plan);
    s.used = pc__alloc(storages * sizeof *s.used);
    s.written = pc__alloc(storages * sizeof *s.written);
    s.votes = pc__calloc((size_t)s.plan->count, sizeof *s.votes);
    if (s.used && s.written && s.votes) {
        const int end = end_of_way(&s);
        if (end < INT_MAX) {
            mark(&s, end);
            meet(&s, number_runs(&s) > MUCH);
        }
    } else
        pc_error_clear(); /* the plan is right as it is */
    pc__free(s.used);
    pc__free(s.written);
    pc__free(s.votes);
}
