/* lanes.c: which work of a plan is done when other work begins. A lane is a stream of the recording, or the branch beside its
 * own one (aside.c); a node of one comes behind those in front of it there, and behind what its lane has waited for, as
 * vector clocks tell (Fidge 1988, Mattern 1989). */
#include "plan/lanes.h"

/* The lanes of others first, then the recording's own, then the branch beside it. */
static int lane_of(const pc_graph *graph, const pc__plan_node *node)
{
    int k = 0;
    while (k < graph->other_count && graph->others[k] != node->stream)
        k++;
    return node->aside ? graph->other_count + 1 : k;
}

static void see_use(pc__lane_use *use, int position, int node)
{
    if (use->first < 0)
        *use = (pc__lane_use){.first = position, .node = node};
    use->last = position;
}

/* What lane `from` has done, and has waited for, is done for lane `to`; of `from` itself so many nodes. */
static void come_behind(int *clocks, int lanes, int to, int from, int done)
{
    for (int i = 0; i < lanes; i++)
        if (i != from)
            clocks[to * lanes + i] = PC__MAX(clocks[to * lanes + i], clocks[from * lanes + i]);
    clocks[to * lanes + from] = PC__MAX(clocks[to * lanes + from], done);
}

/* The walk: clocks has, by lane, what is done of each lane; its own entry counts its nodes. */
typedef struct walk {
    const pc_graph *graph;
    pc__lanes *lanes;
    int *clocks;
    int *ended; /* by run beside the recording's own stream: nodes of that branch up to its end */
} walk;

static void visit(walk *w, int index, int *run)
{
    const pc__plan_node *node = &w->graph->plan->node[index];
    const int lanes = w->lanes->count, own = w->graph->other_count, beside = own + 1;
    const int lane = lane_of(w->graph, node);
    if (node->meets)
        come_behind(w->clocks, lanes, own, beside, w->ended[node->meets]);
    if (node->aside && node->aside != *run)
        come_behind(w->clocks, lanes, beside, own, w->clocks[own * lanes + own]);
    *run = node->aside;
    if (node->kind == PC__NODE_WAIT) {
        const int other = lane_of(w->graph, &(pc__plan_node){.stream = node->other});
        come_behind(w->clocks, lanes, lane, other, w->clocks[other * lanes + other]);
    }
    int *clock = &w->clocks[lane * lanes];
    memcpy(&w->lanes->known[(size_t)index * (size_t)lanes], clock, (size_t)lanes * sizeof *clock);
    for (int k = 0; k < pc__node_uses(node); k++)
        see_use(&w->lanes->use[(size_t)node->number[k] * (size_t)lanes + (size_t)lane], clock[lane], index);
    clock[lane]++;
    if (node->aside)
        w->ended[node->aside] = clock[lane];
}

pc_status pc__lanes_make(pc__lanes *l, const pc_graph *graph)
{
    const pc__plan *plan = graph->plan;
    const size_t lanes = (size_t)graph->other_count + 2, uses = ((size_t)plan->storages + 1) * lanes;
    *l = (pc__lanes){.count = (int)lanes,
                     .span = PC__MAX(graph->backend->span, 1),
                     .use = pc__alloc(uses * sizeof *l->use),
                     .known = pc__alloc(((size_t)plan->count + 1) * lanes * sizeof *l->known)};
    walk w = {.graph = graph,
              .lanes = l,
              .clocks = pc__calloc(lanes * lanes, sizeof *w.clocks),
              .ended = pc__calloc((size_t)plan->count + 1, sizeof *w.ended)};
    const bool made = l->use && l->known && w.clocks && w.ended;
    for (size_t i = 0; made && i < uses; i++)
        l->use[i] = (pc__lane_use){.first = -1, .last = -1};
    int run = 0;
    for (int i = 0; made && i < plan->count; i++)
        if (!plan->node[i].gone)
            visit(&w, i, &run);
    pc__free(w.clocks);
    pc__free(w.ended);
    if (!made)
        pc__lanes_free(l);
    return made ? PC_OK : PC_ERR_MEMORY;
}

void pc__lanes_free(pc__lanes *lanes)
{
    pc__free(lanes->use);
    pc__free(lanes->known);
    *lanes = (pc__lanes){0};
}

bool pc__lanes_before(const pc__lanes *l, int a, int b)
{
    const pc__lane_use *earlier = &l->use[(size_t)a * (size_t)l->count], *later = &l->use[(size_t)b * (size_t)l->count];
    for (int i = 0; i < l->count; i++)
        for (int k = 0; k < (later[i].first < 0 ? 0 : l->count); k++) {
            if (earlier[k].first < 0)
                continue;
            const bool done = k == i ? earlier[k].last + l->span <= later[i].first
                                     : l->known[later[i].node * l->count + k] > earlier[k].last;
            if (!done)
                return false;
        }
    return true;
}
