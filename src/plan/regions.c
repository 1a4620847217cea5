/* regions.c: the pass that makes one call of several element-by-element ones, so that what goes from one to the next stays
 * off the memory. A group is open while calls join it: each must be on its stream, have a result of its shape and memory
 * order, and share a tensor with it or be small. It runs where its last call stood, so it closes in front of whatever
 * reads or writes what a call of it writes, or writes what it reads. A few groups are open at a time. */
#include "plan/group.h"

#include "ops/table.h"

enum { OPEN = 4 };

typedef struct walk {
    pc__plan *plan;
    const pc__backend *backend;
    pc__kernel kernel;
    int *uses;            /* by storage: how many operands of nodes that are left are of it */
    pc__group open[OPEN]; /* without members: a free place */
    int oldest;
} walk;

/* Whether the node must come behind the group. */
static bool is_in_the_way(const pc__plan *plan, const pc__group *g, const pc__plan_node *node)
{
    const pc_stream *stream = plan->node[g->member[0]].stream;
    if (node->kind == PC__NODE_FUNCTION ||
        (node->kind == PC__NODE_WAIT && (node->stream == stream || node->other == stream)))
        return true;
    for (int k = 0; k < pc__node_uses(node); k++) {
        for (int i = 0; i < g->members; i++)
            if (pc__group_number(plan, g->member[i]) == node->number[k])
                return true;
        for (int i = 0; pc__node_writes(node, k) && i < g->region.ins; i++)
            if (g->in_number[i] == node->number[k])
                return true;
    }
    return false;
}

/* Steps whose results somebody needs behind the group, or nobody reads: without the pass `dead` these are written, too. */
static int find_outputs(const walk *w, pc__group *g)
{
    g->region.outs = 0;
    for (int i = 0; i < g->members; i++) {
        const int number = pc__group_number(w->plan, g->member[i]);
        int inside = 1;
        for (int k = i + 1; k < g->members; k++) {
            const pc__plan_node *reader = &w->plan->node[g->member[k]];
            for (int j = 0; j < reader->call->n_in; j++)
                inside += reader->number[j] == number;
        }
        if (w->plan->storage[number].place == PC__PLACE_TEMPORARY && inside > 1 && w->uses[number] == inside)
            continue;
        if (g->region.outs < PC__REGION_OUT)
            g->region.out[g->region.outs] = (uint8_t)(PC__REGION_IN + i);
        g->region.outs++;
    }
    return g->region.outs;
}

static uint8_t without_gap(int value, int gap)
{
    return (uint8_t)(value >= PC__REGION_IN && value != PC__REGION_NUMBER ? value - gap : value);
}

/* Values are numbered without gaps: inputs, then steps. */
static void number_values(pc__region *r, int steps)
{
    const int gap = PC__REGION_IN - r->ins;
    r->steps = steps;
    for (int i = 0; i < steps; i++) {
        r->step[i].a = without_gap(r->step[i].a, gap);
        r->step[i].b = without_gap(r->step[i].b, gap);
    }
    for (int i = 0; i < r->outs; i++)
        r->out[i] -= (uint8_t)gap;
}

/* The last member's node becomes the region's. Without memory, or where the backend does the calls faster, nothing changes. */
static void emit(walk *w, pc__group *g)
{
    pc__plan_node *last = &w->plan->node[g->member[g->members - 1]];
    int numbers[PC__REGION_IN + PC__REGION_OUT];
    pc_call call = {.op = &pc__ops[PC__OP_region],
                    .in = g->in,
                    .n_in = g->region.ins,
                    .n_out = g->region.outs,
                    .attributes = &g->region,
                    .attribute_bytes = sizeof g->region};
    for (int i = 0; i < call.n_in; i++)
        numbers[i] = g->in_number[i];
    for (int i = 0; i < call.n_out; i++) {
        const int from = g->member[g->region.out[i] - PC__REGION_IN];
        call.out[i] = w->plan->node[from].call->out[0];
        numbers[call.n_in + i] = pc__group_number(w->plan, from);
    }
    g->region.count = pc__count(call.out[0]->ndim, call.out[0]->shape);
    g->region.work_bytes = offsetof(pc__region, number);
    number_values(&g->region, g->members);
    if ((w->backend->is_faster_apart && w->backend->is_faster_apart(&call)) ||
        !pc__node_become(last, &call, numbers, w->kernel))
        return;
    for (int i = 0; i < g->members - 1; i++)
        w->plan->node[g->member[i]].gone = PC__PASS_REGIONS;
}

/* The first members of a group, as many as a region has outputs for; how many. */
static int emit_first(walk *w, pc__group *g)
{
    while (g->members > 1 && find_outputs(w, g) > PC__REGION_OUT)
        g->region.ins = g->ins_before[--g->members];
    if (g->members > 1 && g->region.outs > 0)
        emit(w, g);
    return g->members;
}

/* A group's members from `first` on, as many as have something in common. */
static pc__group rest_of(const walk *w, const pc__group *g, int first)
{
    pc__group part = {0}, with = {0};
    for (int i = first; i < g->members; i++, part = with)
        if (pc__group_grow(w->plan, &part, g->member[i], &with) == PC__TIE_APART && part.members)
            break;
    return part;
}

/* What is beyond a region's outputs is another group, or several. */
static void close(walk *w, pc__group *g)
{
    for (int first = 0; first < g->members;) {
        pc__group part = first ? rest_of(w, g, first) : *g;
        first += emit_first(w, &part);
    }
    *g = (pc__group){0};
}

static void count_uses(walk *w)
{
    for (int i = 0; i < w->plan->count; i++)
        for (int k = 0; k < (w->plan->node[i].gone ? 0 : pc__node_uses(&w->plan->node[i])); k++)
            w->uses[w->plan->node[i].number[k]]++;
}

/* Into a group of its own, in the place of the oldest one. */
static void begin(walk *w, int index)
{
    pc__group *g = &w->open[w->oldest], alone = {0};
    for (int i = 0; i < OPEN; i++)
        g = w->open[i].members ? g : &w->open[i];
    if (g->members)
        w->oldest = (w->oldest + 1) % OPEN;
    close(w, g);
    (void)pc__group_grow(w->plan, &(pc__group){0}, index, &alone);
    *g = alone;
}

/* The group that the node joined, which can be a step; NULL: none. */
static pc__group *join(walk *w, int index)
{
    pc__group *joined = NULL, with, best;
    pc__tie most = PC__TIE_APART;
    for (int i = 0; i < OPEN; i++) {
        const pc__tie own = w->open[i].members ? pc__group_grow(w->plan, &w->open[i], index, &with) : PC__TIE_APART;
        if (own > most) {
            most = own;
            best = with;
            joined = &w->open[i];
        }
    }
    if (joined)
        *joined = best;
    return joined;
}

static void visit(walk *w, int index)
{
    const pc__plan_node *node = &w->plan->node[index];
    const bool step = pc__group_takes(w->plan, node);
    const pc__group *joined = step ? join(w, index) : NULL;
    for (int i = 0; i < OPEN; i++)
        if (w->open[i].members && &w->open[i] != joined && is_in_the_way(w->plan, &w->open[i], node))
            close(w, &w->open[i]);
    if (step && !joined)
        begin(w, index);
}

void pc__pass_regions(pc__plan *plan, const pc__backend *backend)
{
    walk w = {.plan = plan, .backend = backend, .kernel = backend->kernels()[PC__OP_region]};
    w.uses = w.kernel ? pc__calloc((size_t)plan->storages + 1, sizeof *w.uses) : NULL;
    if (!w.uses) {
        if (w.kernel)
            pc_error_clear(); /* the plan is right without the pass */
        return;
    }
    count_uses(&w);
    for (int i = 0; i < plan->count; i++)
        if (!plan->node[i].gone)
            visit(&w, i);
    for (int i = 0; i < OPEN; i++)
        close(&w, &w.open[i]);
    pc__free(w.uses);
}
