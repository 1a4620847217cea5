/* regions.c: the pass that makes one call of several element-by-element ones, so that what goes from one to the next stays
 * off the memory. A group is open while calls join it: each must share a tensor with it, be on its stream, and have a
 * result of its shape and memory order. It runs where its last call stood, so it closes in front of whatever reads or
 * writes what a call of it writes, or writes what it reads. A few groups are open at a time. */
#include "plan/plan.h"

#include "ops/number.h"
#include "ops/region_of.h"
#include "ops/table.h"
#include "tensor/freeze.h"

typedef struct group {
    int member[PC__REGION_STEPS], members; /* nodes */
    int ins_before[PC__REGION_STEPS];      /* inputs that were there when a member joined */
    pc_tensor *in[PC__REGION_IN];
    int in_number[PC__REGION_IN];
    pc__region region;
} group;

enum { OPEN = 4 };

typedef struct walk {
    pc__plan *plan;
    pc__kernel kernel;
    int *uses;        /* by storage: how many operands of nodes that are left are of it */
    group open[OPEN]; /* without members: a free place */
    int oldest;
} walk;

static const pc_tensor *result_of(const pc__plan *plan, int node)
{
    return plan->node[node].call->out[0];
}

static int result_number(const pc__plan *plan, int node)
{
    return plan->node[node].number[plan->node[node].call->n_in];
}

static bool takes(int dtype)
{
    return dtype == PC_F32 || dtype == PC_F16 || dtype == PC_BF16;
}

static bool can_be_step(const pc__plan *plan, const pc__plan_node *node)
{
    if (node->kind != PC__NODE_CALL || node->call->n_out != 1 || pc__region_function(node->call->op) < 0)
        return false;
    const pc_tensor *out = node->call->out[0];
    const int64_t count = pc__count(out->ndim, out->shape);
    for (int i = 0; i < node->call->n_in; i++)
        if (!takes(node->call->in[i]->dtype) || pc__node_storage(node, i)->foreign) /* its memory has other names */
            return false;
    return takes(out->dtype) && count > 0 && count < INT32_MAX && pc__is_dense(out) &&
           pc__node_renews(node, node->call->n_in) && plan->storage[node->number[node->call->n_in]].writes == 1;
}

/* How `t`, broadcast to `out`, is seen from element numbers of out's memory: false where that is no (i / inner) % n. The
 * dimensions that it has must lie together in out's memory, in their order, and be dense in its own. */
static bool broadcast(const pc_tensor *t, const pc_tensor *out, pc__region_in *in)
{
    int64_t inner = 0, n = 1;
    for (int64_t next = 0;; next = inner * n) { /* the dimension of `out` that comes next in its memory */
        int own = -1;
        for (int i = 0; i < out->ndim; i++) {
            const int k = i - (out->ndim - t->ndim);
            const bool has = k >= 0 && t->shape[k] > 1 && t->strides[k] != 0;
            if (has && (inner ? out->strides[i] == next : own < 0 || out->strides[i] < out->strides[own]))
                own = i;
        }
        if (own < 0)
            break;
        const int k = own - (out->ndim - t->ndim);
        if (t->strides[k] != n || t->shape[k] != out->shape[own])
            return false;
        inner = inner ? inner : out->strides[own];
        n *= t->shape[k];
    }
    int64_t elements = 1;
    for (int k = 0; k < t->ndim; k++)
        elements *= t->strides[k] ? t->shape[k] : 1;
    *in = (pc__region_in){.inner = inner ? inner : pc__count(out->ndim, out->shape), .n = n};
    return elements == n;
}

/* The group's value that the tensor is, the number of a new input, or -1. */
static int value_of(const walk *w, const group *g, pc_tensor *t, int number, const pc_tensor *out, pc__region_in *in)
{
    for (int i = 0; i < g->members; i++)
        if (result_number(w->plan, g->member[i]) == number) {
            const pc_tensor *made = result_of(w->plan, g->member[i]);
            return t->offset == made->offset && pc__same_places(t, made) ? PC__REGION_IN + i : -1;
        }
    *in = (pc__region_in){0};
    if (!pc__same_places(t, out) && !broadcast(t, out, in))
        return -1;
    for (int i = 0; i < g->region.ins; i++)
        if (g->in_number[i] == number && g->in[i]->offset == t->offset && g->in[i]->dtype == t->dtype &&
            g->region.in[i].inner == in->inner && g->region.in[i].n == in->n)
            return i;
    return g->region.ins < PC__REGION_IN ? g->region.ins : -1;
}

/* True where the node, which can be a step, became one of the group. */
static bool join(const walk *w, group *g, int index)
{
    const pc__plan_node *node = &w->plan->node[index];
    if (g->members == PC__REGION_STEPS)
        return false;
    const pc_tensor *out = node->call->out[0];
    if (g->members &&
        (w->plan->node[g->member[0]].stream != node->stream || !pc__same_places(out, result_of(w->plan, g->member[0]))))
        return false;
    group grown = *g;
    bool linked = !g->members;
    int value[2] = {0};
    for (int i = 0; i < node->call->n_in; i++) {
        pc__region_in in;
        value[i] = value_of(w, &grown, node->call->in[i], node->number[i], out, &in);
        if (value[i] < 0)
            return false;
        if (value[i] == grown.region.ins) {
            grown.in[grown.region.ins] = node->call->in[i];
            grown.in_number[grown.region.ins] = node->number[i];
            grown.region.in[grown.region.ins++] = in;
        } else {
            linked = true;
        }
    }
    if (!linked)
        return false;
    const pc__number *number = pc__number_of(node->call);
    const int a = number && number->first ? PC__REGION_NUMBER : value[0];
    const int b = number && !number->first ? PC__REGION_NUMBER : value[node->call->n_in > 1];
    grown.region.step[grown.members] = (pc__region_step){.function = (uint8_t)pc__region_function(node->call->op),
                                                         .a = (uint8_t)a,
                                                         .b = (uint8_t)b,
                                                         .dtype = out->dtype};
    grown.region.number[grown.members] = number ? (float)number->value : 0;
    grown.ins_before[grown.members] = g->region.ins;
    grown.member[grown.members++] = index;
    *g = grown;
    return true;
}

/* Whether the node must come behind the group. */
static bool is_in_the_way(const pc__plan *plan, const group *g, const pc__plan_node *node)
{
    const pc_stream *stream = plan->node[g->member[0]].stream;
    if (node->kind == PC__NODE_FUNCTION ||
        (node->kind == PC__NODE_WAIT && (node->stream == stream || node->other == stream)))
        return true;
    for (int k = 0; k < pc__node_uses(node); k++) {
        for (int i = 0; i < g->members; i++)
            if (result_number(plan, g->member[i]) == node->number[k])
                return true;
        for (int i = 0; pc__node_writes(node, k) && i < g->region.ins; i++)
            if (g->in_number[i] == node->number[k])
                return true;
    }
    return false;
}

/* Steps whose results somebody needs behind the group. */
static int find_outputs(const walk *w, group *g)
{
    g->region.outs = 0;
    for (int i = 0; i < g->members; i++) {
        const int number = result_number(w->plan, g->member[i]);
        int inside = 1;
        for (int k = i + 1; k < g->members; k++) {
            const pc__plan_node *reader = &w->plan->node[g->member[k]];
            for (int j = 0; j < reader->call->n_in; j++)
                inside += reader->number[j] == number;
        }
        if (w->plan->storage[number].place == PC__PLACE_TEMPORARY && w->uses[number] == inside)
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

/* The last member's node becomes the region's. Without memory nothing changes. */
static void emit(walk *w, group *g)
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
        numbers[call.n_in + i] = result_number(w->plan, from);
    }
    g->region.count = pc__count(call.out[0]->ndim, call.out[0]->shape);
    g->region.work_bytes = offsetof(pc__region, number);
    number_values(&g->region, g->members);
    pc_call *made = pc__call_copy(&call);
    int *number = pc__alloc(sizeof numbers);
    if (!made || !number) {
        pc__free(made);
        pc__free(number);
        pc_error_clear();
        return;
    }
    memcpy(number, numbers, sizeof numbers);
    for (int i = 0; i < g->members - 1; i++)
        w->plan->node[g->member[i]].gone = PC__PASS_REGIONS;
    pc__free(last->call);
    pc__free(last->number);
    last->call = made;
    last->number = number;
    last->kernel = w->kernel;
    last->work.name = call.op->name;
}

static void close(walk *w, group *g)
{
    while (g->members > 1 && find_outputs(w, g) > PC__REGION_OUT)
        g->region.ins = g->ins_before[--g->members]; /* what joined last stays a call of its own */
    if (g->members > 1 && g->region.outs > 0)
        emit(w, g);
    *g = (group){0};
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
    group *g = &w->open[w->oldest];
    for (int i = 0; i < OPEN; i++)
        g = w->open[i].members ? g : &w->open[i];
    if (g->members)
        w->oldest = (w->oldest + 1) % OPEN;
    close(w, g);
    (void)join(w, g, index);
}

static void visit(walk *w, int index)
{
    const pc__plan_node *node = &w->plan->node[index];
    const bool step = can_be_step(w->plan, node);
    group *joined = NULL;
    for (int i = 0; step && i < OPEN && !joined; i++)
        if (w->open[i].members && join(w, &w->open[i], index))
            joined = &w->open[i];
    for (int i = 0; i < OPEN; i++)
        if (w->open[i].members && &w->open[i] != joined && is_in_the_way(w->plan, &w->open[i], node))
            close(w, &w->open[i]);
    if (step && !joined)
        begin(w, index);
}

void pc__pass_regions(pc__plan *plan, const pc__backend *backend)
{
    walk w = {.plan = plan, .kernel = backend->kernels()[PC__OP_region]};
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
