/* group.c: which calls can join a group, and how it sees their inputs. */
#include "plan/group.h"

#include "ops/number.h"
#include "ops/table.h"
#include "tensor/freeze.h"

const pc_tensor *pc__group_tensor(const pc__plan *plan, int node)
{
    return plan->node[node].call->out[0];
}

int pc__group_number(const pc__plan *plan, int node)
{
    return plan->node[node].number[plan->node[node].call->n_in];
}

static bool takes(int dtype)
{
    return dtype == PC_F32 || dtype == PC_F16 || dtype == PC_BF16;
}

bool pc__group_takes(const pc__plan *plan, const pc__plan_node *node)
{
    if (node->kind != PC__NODE_CALL || node->call->n_out != 1 || pc__region_function(node->call->op) < 0)
        return false;
    const int n_in = node->call->n_in;
    const pc_tensor *out = node->call->out[0];
    const int64_t count = pc__count(out->ndim, out->shape);
    for (int i = 0; i <= n_in; i++)
        if (!takes(pc__call_tensor(node->call, i)->dtype) ||
            pc__node_storage(node, i)->foreign || /* its memory has other names */
            (i < n_in && node->number[i] == node->number[n_in]))
            return false;
    return count > 0 && count < INT32_MAX && pc__is_dense(out) && pc__node_renews(node, n_in) &&
           plan->storage[node->number[n_in]].writes == 1;
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
static int value_of(const pc__plan *plan, const pc__group *g, pc_tensor *t, int number, const pc_tensor *out,
                    pc__region_in *in)
{
    for (int i = 0; i < g->members; i++)
        if (pc__group_number(plan, g->member[i]) == number) {
            const pc_tensor *made = pc__group_tensor(plan, g->member[i]);
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

/* Whether a region with so many results that stay has room for the node's. */
static bool has_room(const pc__plan *plan, const pc__group *g, int index)
{
    int stay = 0;
    for (int i = 0; i <= g->members; i++) {
        const int number = pc__group_number(plan, i < g->members ? g->member[i] : index);
        stay += plan->storage[number].place != PC__PLACE_TEMPORARY;
    }
    return g->members < PC__REGION_STEPS && stay <= PC__REGION_OUT;
}

/* It could be in the group as far as its result goes, which nobody in there reads under that name. */
static bool fits(const pc__plan *plan, const pc__group *g, int index)
{
    const pc__plan_node *node = &plan->node[index];
    if (!has_room(plan, g, index))
        return false;
    for (int i = 0; i < g->region.ins; i++)
        if (g->in_number[i] == pc__group_number(plan, index))
            return false;
    return !g->members || (plan->node[g->member[0]].stream == node->stream &&
                           pc__same_places(node->call->out[0], pc__group_tensor(plan, g->member[0])));
}

/* A cast that nothing here reads goes with others of its kind: casts.c. */
static bool converts(const pc__plan_node *node)
{
    return node->call->op->index == PC__OP_cast && node->call->in[0]->dtype != node->call->out[0]->dtype;
}

/* With whom it shares nothing: so little that a launch costs more than what it does, and a group with room for what
 * follows from either. */
static pc__tie tie_of_others(const pc__plan *plan, const pc__group *g, const pc__plan_node *node)
{
    enum { ELEMENTS = 1 << 20, MEMBERS = PC__REGION_STEPS / 2 };
    const pc_tensor *out = node->call->out[0];
    const bool lone = g->members == 1 && converts(&plan->node[g->member[0]]);
    const bool small = pc__count(out->ndim, out->shape) <= ELEMENTS && g->members <= MEMBERS;
    return small && !lone && !converts(node) ? PC__TIE_SMALL : PC__TIE_APART;
}

static void add_step(pc__group *g, const pc__plan_node *node, const int value[2])
{
    const pc__number *number = pc__number_of(node->call);
    const int a = number && number->first ? PC__REGION_NUMBER : value[0];
    const int b = number && !number->first ? PC__REGION_NUMBER : value[node->call->n_in > 1];
    g->region.step[g->members] = (pc__region_step){.function = (uint8_t)pc__region_function(node->call->op),
                                                   .a = (uint8_t)a,
                                                   .b = (uint8_t)b,
                                                   .dtype = node->call->out[0]->dtype};
    if (!number)
        number = pc__parameter_of(node->call);
    g->region.number[g->members] = number ? (float)number->value : 0;
}

/* The group with the node, which can be a step, in it: PC__TIE_APART where it cannot be. */
pc__tie pc__group_grow(const pc__plan *plan, const pc__group *g, int index, pc__group *grown)
{
    const pc__plan_node *node = &plan->node[index];
    const pc_tensor *out = node->call->out[0];
    if (!fits(plan, g, index))
        return PC__TIE_APART;
    *grown = *g;
    pc__tie most = tie_of_others(plan, g, node);
    int value[2] = {0};
    for (int i = 0; i < node->call->n_in; i++) {
        pc__region_in in;
        value[i] = value_of(plan, grown, node->call->in[i], node->number[i], out, &in);
        if (value[i] < 0)
            return PC__TIE_APART;
        if (value[i] >= PC__REGION_IN) {
            most = PC__TIE_SAME_VALUE;
        } else if (value[i] == grown->region.ins) {
            grown->in[grown->region.ins] = node->call->in[i];
            grown->in_number[grown->region.ins] = node->number[i];
            grown->region.in[grown->region.ins++] = in;
        } else if (value[i] < g->region.ins) {
            most = PC__MAX(most, PC__TIE_SAME_INPUT);
        }
    }
    add_step(grown, node, value);
    grown->ins_before[grown->members] = g->region.ins;
    grown->member[grown->members++] = index;
    return most;
}
