/* branches.c: the pass that begins branches early: the work of a stream for which nobody in the recording waits before its
 * end, and which shares nothing that is written with the work that it is moved in front of. It goes in front of the
 * smallest product there, which leaves most of a device to it, as do the losses that mostly follow; without a product it
 * stays. It is never moved back, nor over a function of the program, which may look at anything. */
#include "plan/plan.h"

#include "ops/table.h"

#include <math.h>

enum { READ = 1, WRITTEN = 2 };

typedef struct branch {
    pc__plan *plan;
    const pc_stream *stream, *main;
    int first, last;     /* its nodes that are left are among these */
    unsigned char *seen; /* by storage: what the branch does with it */
} branch;

static bool is_left(const branch *b, int i)
{
    return !b->plan->node[i].gone;
}

static bool is_own(const branch *b, int i)
{
    return b->plan->node[i].stream == b->stream;
}

/* What the plan cannot see into. */
static bool is_opaque(const pc__plan_node *node)
{
    return node->kind == PC__NODE_FUNCTION || (node->kind == PC__NODE_CALL && node->call->op->flags & PC__SIDE_EFFECTS);
}

/* Its waits are for the main stream, in front of its work; who waits for it has no work any more. */
static bool find(branch *b)
{
    bool works = false, waited_for = false;
    b->first = -1;
    for (int i = 0; i < b->plan->count; i++) {
        const pc__plan_node *node = &b->plan->node[i];
        const bool waits = node->kind == PC__NODE_WAIT;
        if (node->gone)
            continue;
        if (waited_for && !waits)
            return false;
        waited_for |= waits && node->other == b->stream;
        if (!is_own(b, i))
            continue;
        if (is_opaque(node) || (waits && (works || node->other != b->main)))
            return false;
        works |= !waits;
        b->first = b->first < 0 ? i : b->first;
        b->last = i;
    }
    return works;
}

/* The branch from node i on has these storages, too. */
static void add(branch *b, int i)
{
    const pc__plan_node *node = &b->plan->node[i];
    for (int k = 0; k < pc__node_uses(node); k++)
        b->seen[node->number[k]] |= pc__node_writes(node, k) ? READ | WRITTEN : READ;
}

/* Whether all of the branch that is behind node i may go in front of it. */
static bool passes(const branch *b, int i)
{
    const pc__plan_node *node = &b->plan->node[i];
    bool apart = !is_opaque(node);
    for (int k = 0; k < pc__node_uses(node) && apart; k++)
        apart = !(b->seen[node->number[k]] & (pc__node_writes(node, k) ? READ : WRITTEN));
    return apart;
}

/* Multiplications of a product; INFINITY for other work. */
static double work_of(const pc__plan_node *node)
{
    if (node->kind != PC__NODE_CALL)
        return (double)INFINITY;
    const int op = node->call->op->index;
    const bool layer = op == PC__OP_conv2d || op == PC__OP_linear;
    if (!layer && op != PC__OP_matmul)
        return (double)INFINITY;
    const pc_tensor *y = node->call->out[0], *by = node->call->in[layer];
    const int64_t depth = layer          ? pc__count(by->ndim, by->shape) / PC__MAX(by->shape[0], 1)
                          : by->ndim > 0 ? by->shape[by->ndim - 1]
                                         : 1;
    return (double)pc__count(y->ndim, y->shape) * (double)depth;
}

/* The node that it goes in front of; its own first one where it stays. */
static int place(branch *b)
{
    int at = b->first;
    double least = (double)INFINITY;
    for (int i = b->last; i >= 0; i--) {
        if (!is_left(b, i))
            continue;
        if (is_own(b, i)) {
            add(b, i);
            continue;
        }
        if (!passes(b, i))
            return i < b->first ? at : b->first;
        const double work = b->plan->node[i].stream == b->main ? work_of(&b->plan->node[i]) : (double)INFINITY;
        if (i < b->first && work <= least && work < (double)INFINITY)
            least = work, at = i;
    }
    return at;
}

/* Its nodes one behind the other, from node `at` on. */
static void move(const branch *b, int at)
{
    const int span = b->last + 1 - at;
    pc__plan_node *nodes = pc__alloc((size_t)span * sizeof *nodes);
    if (!nodes) {
        pc_error_clear(); /* the plan is right as it is */
        return;
    }
    int n = 0;
    for (int own = 1; own >= 0; own--)
        for (int i = at; i <= b->last; i++)
            if (is_own(b, i) == own) {
                nodes[n] = b->plan->node[i];
                nodes[n++].early |= own;
            }
    memcpy(&b->plan->node[at], nodes, (size_t)span * sizeof *nodes);
    pc__free(nodes);
}

static void visit(branch *b)
{
    if (!find(b))
        return;
    b->seen = pc__calloc((size_t)b->plan->storages + 1, 1);
    if (!b->seen) {
        pc_error_clear();
        return;
    }
    const int at = place(b);
    pc__free(b->seen);
    if (at < b->first)
        move(b, at);
}

void pc__pass_branches(const pc_graph *graph)
{
    for (int i = 0; i < graph->other_count; i++)
        visit(&(branch){.plan = graph->plan, .stream = graph->others[i], .main = graph->stream});
}
