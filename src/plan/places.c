/* places.c: the pass that takes out copies into memory that is there, as into a bucket of gradients: whoever made what is
 * copied, a temporary that nobody else reads, writes it in its place. */
#include "plan/plan.h"

#include "ops/table.h"

enum { ALIGNMENT = 64 }; /* bytes: what kernels may expect of an output */

typedef struct search {
    pc__plan *plan;
    const pc__plan_uses *uses;
} search;

static bool is_copy(const pc__plan_node *node)
{
    if (node->gone || node->kind != PC__NODE_CALL || node->call->op->index != PC__OP_copy)
        return false;
    const pc_tensor *in = node->call->in[0], *out = node->call->out[0];
    return in->dtype == out->dtype && pc__same_shape(in, out) && pc__same_places(in, out) && pc__is_dense(out) &&
           (size_t)out->offset * pc_dtype_size((pc_dtype)out->dtype) % ALIGNMENT == 0 && !out->storage->foreign &&
           node->number[0] != node->number[1];
}

/* Which output of the call the storage is; -1: none, or it may not be another one. */
static int output_of(const pc__plan_node *node, int number)
{
    if (node->gone || node->kind != PC__NODE_CALL || node->call->op->flags & (PC__IN_PLACE | PC__SIDE_EFFECTS))
        return -1;
    int found = -1;
    for (int i = 0; i < node->call->n_in + node->call->n_out; i++) {
        if (node->number[i] != number)
            continue;
        if (i < node->call->n_in || found >= 0)
            return -1;
        found = i - node->call->n_in;
    }
    return found;
}

/* The copy reads all of it, as it lies. */
static bool is_whole(const pc_tensor *made, const pc_tensor *read)
{
    const bool same = pc__same_shape(made, read) && pc__same_places(made, read);
    return made->dtype == read->dtype && made->offset == 0 && read->offset == 0 &&
           pc__count(made->ndim, made->shape) == pc__count(read->ndim, read->shape) &&
           (same || (pc__is_contiguous(made) && pc__is_contiguous(read)));
}

static bool overlaps(const pc_tensor *a, const pc_tensor *b)
{
    const int64_t size_a = (int64_t)pc_dtype_size((pc_dtype)a->dtype),
                  size_b = (int64_t)pc_dtype_size((pc_dtype)b->dtype);
    return a->offset * size_a < (b->offset + pc__span(b)) * size_b &&
           b->offset * size_b < (a->offset + pc__span(a)) * size_a;
}

/* Nobody touches the place from the call on, and the stream waits for nobody who might. */
static bool is_free_meanwhile(const search *s, int from, int to)
{
    const pc__plan_node *copy = &s->plan->node[to];
    const int number = copy->number[1];
    for (int n = from; n < to; n++) {
        const pc__plan_node *node = &s->plan->node[n];
        if (node->gone)
            continue;
        if (node->kind == PC__NODE_FUNCTION || (node->kind == PC__NODE_WAIT && node->stream == copy->stream))
            return false;
        for (int k = 0; k < pc__node_uses(node); k++)
            if (node->number[k] == number &&
                (node->kind != PC__NODE_CALL || overlaps(pc__call_tensor(node->call, k), copy->call->out[0])))
                return false;
    }
    return true;
}

/* The node that makes what the copy reads, where it can write the place instead; -1: none. */
static int maker_of(const search *s, int to)
{
    const pc__plan_node *copy = &s->plan->node[to];
    const int number = copy->number[0], index = s->uses->writer[number];
    const pc__plan_storage *storage = &s->plan->storage[number];
    if (storage->place != PC__PLACE_TEMPORARY || storage->writes != 1 || index < 0 || index >= to ||
        s->uses->first[number + 1] - s->uses->first[number] != 1)
        return -1;
    const pc__plan_node *node = &s->plan->node[index];
    const int output = output_of(node, number);
    return output >= 0 && node->stream == copy->stream && is_whole(node->call->out[output], copy->call->in[0]) &&
                   is_free_meanwhile(s, index, to)
               ? index
               : -1;
}

static void take_over(const search *s, int from, int to)
{
    pc__plan_node *node = &s->plan->node[from], *copy = &s->plan->node[to];
    const int output = output_of(node, copy->number[0]);
    node->call->out[output]->offset = copy->call->out[0]->offset;
    pc__node_rename(s->plan, node, node->call->n_in + output, copy->number[1]);
    copy->gone = PC__PASS_PLACES;
}

void pc__pass_places(pc__plan *plan)
{
    pc__plan_uses uses;
    if (!pc__plan_uses_make(&uses, plan)) {
        pc_error_clear(); /* the plan is right without the pass */
        return;
    }
    const search s = {.plan = plan, .uses = &uses};
    for (int i = 0; i < plan->count; i++) {
        const int from = is_copy(&plan->node[i]) ? maker_of(&s, i) : -1;
        if (from >= 0)
            take_over(&s, from, i);
    }
    pc__plan_uses_free(&uses);
}
