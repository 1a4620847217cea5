/* copies.c: the pass that takes out copies behind element-by-element calls of temporaries that nobody else reads: in
 * another memory order, as a leaf wants its gradient, or of a broadcast, as the gradient of a mean is. The call writes
 * what the copy would have, in its place. */
#include "plan/plan.h"

#include "ops/number.h"
#include "ops/region_of.h"
#include "ops/table.h"

enum { INPUTS = 3 };

typedef struct search {
    pc__plan *plan;
    const pc__plan_uses *uses;
} search;

static bool is_copy(const pc__plan_node *node)
{
    if (node->gone || node->kind != PC__NODE_CALL || node->call->n_out != 1 ||
        (node->call->op->index != PC__OP_copy && node->call->op->index != PC__OP_cast))
        return false;
    const pc_tensor *in = node->call->in[0], *out = node->call->out[0];
    return in->dtype == out->dtype && pc__same_shape(in, out) && pc__count(in->ndim, in->shape) > 0 &&
           !in->storage->foreign && !out->storage->foreign && pc__node_renews(node, node->call->n_in);
}

/* The node that made what the copy reads, if it can write something else instead; -1: none. */
static int source_of(const search *s, const pc__plan_node *copy)
{
    const int number = copy->number[0], index = s->uses->writer[number];
    if (s->plan->storage[number].place != PC__PLACE_TEMPORARY || s->plan->storage[number].writes != 1 || index < 0 ||
        s->uses->first[number + 1] - s->uses->first[number] != 1)
        return -1;
    const pc__plan_node *node = &s->plan->node[index];
    if (node->gone || node->kind != PC__NODE_CALL || node->stream != copy->stream || node->call->n_out != 1 ||
        pc__region_function(node->call->op) < 0 || node->call->n_in > INPUTS ||
        node->number[node->call->n_in] != number || !pc__node_renews(node, node->call->n_in))
        return -1;
    for (int i = 0; i < node->call->n_in; i++)
        if (pc__node_storage(node, i)->foreign || node->number[i] == number || node->number[i] == copy->number[1])
            return -1;
    return pc__is_dense(node->call->out[0]) && node->call->out[0]->dtype == copy->call->in[0]->dtype ? index : -1;
}

/* Whether the call would see the same inputs at the copy's place, and what it writes there was not used meanwhile. */
static bool can_move(const search *s, int from, int to)
{
    const pc__plan_node *node = &s->plan->node[from], *copy = &s->plan->node[to];
    for (int n = from + 1; n < to; n++) {
        const pc__plan_node *between = &s->plan->node[n];
        if (between->gone)
            continue;
        if (between->kind == PC__NODE_FUNCTION ||
            (between->kind == PC__NODE_WAIT && (between->stream == node->stream || between->other == node->stream)))
            return false;
        for (int k = 0; k < pc__node_uses(between); k++)
            for (int i = 0; i < node->call->n_in; i++)
                if (pc__node_writes(between, k) && between->number[k] == node->number[i])
                    return false;
    }
    return copy->number[0] != copy->number[1];
}

enum { STAYS = -1, NO_WHOLE_ONE = -2 };

/* Dimension of `made` that dimension d of the view of it goes along; STAYS: it is one element all along. */
static int dimension_of(const pc_tensor *view, int d, const pc_tensor *made)
{
    if (view->shape[d] == 1 || view->strides[d] == 0)
        return STAYS;
    for (int i = 0; i < made->ndim; i++)
        if (made->shape[i] == view->shape[d] && made->strides[i] == view->strides[d])
            return i;
    return NO_WHOLE_ONE;
}

/* The input as it is under the view of the result; false: it has no such view. */
static bool seen_by(const pc_tensor *view, const pc_tensor *made, const pc_tensor *in, pc_tensor *seen)
{
    unsigned left = 0;
    *seen = (pc_tensor){.dtype = in->dtype, .ndim = view->ndim, .offset = in->offset, .storage = in->storage};
    for (int i = made->ndim; i-- > 0;)
        left = left << 1 | (made->shape[i] > 1);
    for (int d = 0; d < view->ndim; d++) {
        const int along = dimension_of(view, d, made), own = along - (made->ndim - in->ndim);
        if (along == NO_WHOLE_ONE || (along >= 0 && !(left >> along & 1)))
            return false;
        left &= along >= 0 ? ~(1u << along) : ~0u;
        seen->shape[d] = view->shape[d];
        seen->strides[d] = along >= 0 && own >= 0 && in->shape[own] > 1 ? in->strides[own] : 0;
    }
    return !left;
}

/* Whether neighbours in the memory of `out` are none in that of an input. */
static bool is_turned(const pc_tensor *in, const pc_tensor *out)
{
    for (int d = 0; d < out->ndim; d++)
        if (out->strides[d] == 1 && out->shape[d] > 1)
            return in->strides[d] > 1;
    return false;
}

/* What an element takes, in additions; of casts and copies nothing. */
static int cost_of(const pc_call *call)
{
    static const int costs[PC__OP_COUNT] = {
#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative)                                               \
    [PC__OP_##name] = cost, [PC__OP_##name##_backward] = cost,
#define PC__UNARY(name, dtypes, cost, flags, f) [PC__OP_##name] = cost,
#define PC__BINARY(name, dtypes, cost, flags, f) [PC__OP_##name] = cost,
#define PC__PARAMETRIC(name, cost, f) [PC__OP_##name] = cost,
#include "ops/pointwise.def"
    };
    return costs[call->op->index];
}

/* A copy into another order reads one tensor across memory; so may the call, but no more than that. What is broadcast is
 * computed as often as it is there, which takes longer than a launch where it is there very often. */
static bool is_faster(const pc_call *call, const pc_tensor *made)
{
    enum { FEW = 65536, CHEAP = 4, MANY = 1 << 22 };
    const pc_tensor *out = call->out[0];
    const int64_t count = pc__count(out->ndim, out->shape);
    int turned = 0;
    for (int i = 0; i < call->n_in; i++)
        turned += is_turned(call->in[i], out);
    if (count <= FEW)
        return true;
    return count > pc__count(made->ndim, made->shape) ? cost_of(call) <= CHEAP && count < MANY
                                                      : turned <= 1 && !pc__number_of(call);
}

static void take_over(const search *s, int from, int to)
{
    pc__plan_node *node = &s->plan->node[from], *copy = &s->plan->node[to];
    const pc_tensor *view = copy->call->in[0], *made = node->call->out[0];
    pc_tensor seen[INPUTS], *in[INPUTS];
    int number[INPUTS + 1];
    pc_call call = *node->call;
    if (view->offset != made->offset)
        return;
    for (int i = 0; i < call.n_in; i++) {
        if (!seen_by(view, made, node->call->in[i], &seen[i]))
            return;
        in[i] = &seen[i];
        number[i] = node->number[i];
    }
    call.in = in;
    call.out[0] = copy->call->out[0];
    number[call.n_in] = copy->number[1];
    if (!is_faster(&call, made) || !pc__node_become(copy, &call, number, node->kernel))
        return;
    copy->settings = node->settings;
    copy->work.site = node->work.site;
    node->gone = PC__PASS_COPIES;
}

void pc__pass_copies(pc__plan *plan)
{
    pc__plan_uses uses;
    if (!pc__plan_uses_make(&uses, plan)) {
        pc_error_clear(); /* the plan is right without the pass */
        return;
    }
    const search s = {.plan = plan, .uses = &uses};
    for (int i = 0; i < plan->count; i++) {
        const int from = is_copy(&plan->node[i]) ? source_of(&s, &plan->node[i]) : -1;
        if (from >= 0 && from < i && can_move(&s, from, i))
            take_over(&s, from, i);
    }
    pc__plan_uses_free(&uses);
}
