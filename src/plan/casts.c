/* casts.c: the pass that makes one call of several casts between float32 and 16 bits: of a network's parameters in front
 * of its forward pass, of its gradients in front of the optimiser's step.
 *
 * A cast can stand anywhere in its window: behind the last write of its input, and in front of the first use of its
 * result and the next write of its input. Where one writes what an earlier one reads or writes, their windows have nothing
 * in common. Casts whose windows share a place become one call there. Windows are taken by their ends, the first one first,
 * and each takes all others with it that reach as far as the last cast within it.
 *
 * It runs behind the pass of regions: a cast that is a step of a region costs no launch at all. */
#include "plan/plan.h"

#include "ops/table.h"

#include <stdlib.h>

enum { MOST = 16384 }; /* casts; for more, looking for those that go together takes too long */

typedef struct movable {
    int node;
    int low, high; /* its window: the first and the last node in whose place it can stand */
    bool taken;
} movable;

typedef struct search {
    pc__plan *plan;
    pc__kernel kernel;
    movable *cast, **by_end;
    int count;
    int *used, *written; /* by storage: the node that did last, or will do next */
    bool *made;          /* by storage: by one of these casts */
    int *member;
} search;

static bool is_cast(const pc__plan_node *node)
{
    if (node->gone || node->kind != PC__NODE_CALL || node->call->op->index != PC__OP_cast)
        return false;
    const pc_tensor *in = node->call->in[0], *out = node->call->out[0];
    const bool down = in->dtype == PC_F32 && pc__is_half((pc_dtype)out->dtype),
               up = out->dtype == PC_F32 && pc__is_half((pc_dtype)in->dtype);
    return (down || up) && pc__count(in->ndim, in->shape) > 0 && pc__same_places(in, out) && !in->storage->foreign &&
           !out->storage->foreign; /* their memory can be another storage's, too */
}

/* What moves must not depend on what moves too: a cast of a cast stays. */
static void find_casts(search *s)
{
    for (int i = 0; i < s->plan->count; i++) {
        const pc__plan_node *node = &s->plan->node[i];
        if (!is_cast(node) || s->made[node->number[0]])
            continue;
        s->cast[s->count++] = (movable){.node = i, .high = s->plan->count - 1};
        s->made[node->number[1]] = true;
    }
}

static void note_uses(search *s, int index)
{
    const pc__plan_node *node = &s->plan->node[index];
    for (int k = 0; k < (node->gone ? 0 : pc__node_uses(node)); k++) {
        s->used[node->number[k]] = index;
        if (pc__node_writes(node, k))
            s->written[node->number[k]] = index;
    }
}

static void forget_uses(search *s, int node)
{
    for (int i = 0; i < s->plan->storages; i++)
        s->used[i] = s->written[i] = node;
}

static void find_windows(search *s)
{
    const int nodes = s->plan->count;
    forget_uses(s, -1);
    for (int i = 0, k = 0; i < nodes; i++) {
        if (k < s->count && s->cast[k].node == i) {
            const int *number = s->plan->node[i].number;
            s->cast[k++].low = PC__MAX(s->written[number[0]], s->used[number[1]]) + 1;
        }
        note_uses(s, i);
    }
    forget_uses(s, nodes);
    for (int i = nodes - 1, k = s->count - 1; i >= 0; i--) {
        if (k >= 0 && s->cast[k].node == i) {
            const int *number = s->plan->node[i].number;
            s->cast[k--].high = PC__MIN(s->written[number[0]], s->used[number[1]]) - 1;
        }
        note_uses(s, i);
    }
}

/* A function may use anything that it has a pointer to. A cast that its stream does behind a wait of its own stays
 * there, and one that another stream waits for stays in front of that. */
static void stop_at(const search *s, int index)
{
    const pc__plan_node *node = &s->plan->node[index];
    for (int i = 0; i < s->count; i++) {
        movable *c = &s->cast[i];
        const pc_stream *stream = s->plan->node[c->node].stream;
        const bool function = node->kind == PC__NODE_FUNCTION;
        if (c->node > index && (function || node->stream == stream))
            c->low = PC__MAX(c->low, index + 1);
        if (c->node < index && (function || node->other == stream))
            c->high = PC__MIN(c->high, index - 1);
    }
}

/* Windows were found with all other casts where they are. One that writes what an earlier one reads or writes must stay behind
 * it wherever both go: its window begins behind the earlier one's. */
static void keep_order(search *s)
{
    forget_uses(s, -1);
    for (int i = 0; i < s->count; i++) {
        movable *c = &s->cast[i];
        const int *number = s->plan->node[c->node].number;
        c->low = PC__MAX(c->low, s->used[number[1]] + 1);
        for (int k = 0; k < 2; k++)
            s->used[number[k]] = PC__MAX(s->used[number[k]], c->high);
    }
}

/* Of one pair of dtypes, on one stream. */
static bool go_together(const search *s, const movable *a, const movable *b)
{
    const pc__plan_node *x = &s->plan->node[a->node], *y = &s->plan->node[b->node];
    return x->stream == y->stream && x->call->in[0]->dtype == y->call->in[0]->dtype &&
           x->call->out[0]->dtype == y->call->out[0]->dtype;
}

/* The call in the place of `at`, which is one of the members; without memory nothing changes. */
static void emit(search *s, int at, int members)
{
    pc_tensor **tensors = pc__alloc(2 * (size_t)members * sizeof *tensors);
    int *number = pc__alloc((2 * (size_t)members + 1) * sizeof *number);
    bool done = tensors && number;
    for (int i = 0; done && i < members; i++) {
        const pc__plan_node *member = &s->plan->node[s->member[i]];
        tensors[i] = member->call->out[0];
        tensors[members + i] = member->call->in[0];
        number[i] = member->number[1];
        number[members + i] = member->number[0];
    }
    if (done) {
        pc_call call = {.op = &pc__ops[PC__OP_cast_many], .in = tensors, .n_in = 2 * members, .n_out = 1};
        call.out[0] = tensors[0];
        number[call.n_in] = number[0];
        done = pc__node_become(&s->plan->node[at], &call, number, s->kernel);
    } else
        pc_error_clear();
    for (int i = 0; done && i < members; i++)
        if (s->member[i] != at)
            s->plan->node[s->member[i]].gone = PC__PASS_CASTS;
    pc__free(tensors);
    pc__free(number);
}

/* No window that is left ends in front of that of `first`. */
static void gather(search *s, movable *first)
{
    int at = first->node, members = 0;
    for (int i = 0; i < s->count; i++) {
        const movable *c = &s->cast[i];
        if (!c->taken && c->node > at && c->node <= first->high && go_together(s, c, first))
            at = c->node;
    }
    for (int i = 0; i < s->count; i++) {
        movable *c = &s->cast[i];
        if (c->taken || c->low > at || !go_together(s, c, first))
            continue;
        c->taken = true;
        s->member[members++] = c->node;
    }
    if (members > 1)
        emit(s, at, members);
}

static int first_end_first(const void *x, const void *y)
{
    const movable *a = *(movable *const *)x, *b = *(movable *const *)y;
    return a->high != b->high ? (a->high > b->high) - (a->high < b->high) : (a > b) - (a < b);
}

static void run(search *s)
{
    find_casts(s);
    if (s->count < 2 || s->count > MOST)
        return;
    find_windows(s);
    for (int i = 0; i < s->plan->count; i++) {
        const pc__plan_node *node = &s->plan->node[i];
        if (!node->gone && (node->kind == PC__NODE_FUNCTION || node->kind == PC__NODE_WAIT))
            stop_at(s, i);
    }
    keep_order(s);
    for (int i = 0; i < s->count; i++)
        s->by_end[i] = &s->cast[i];
    qsort(s->by_end, (size_t)s->count, sizeof *s->by_end, first_end_first);
    for (int i = 0; i < s->count; i++)
        if (!s->by_end[i]->taken)
            gather(s, s->by_end[i]);
}

void pc__pass_casts(pc__plan *plan, const pc__backend *backend)
{
    const size_t nodes = (size_t)plan->count, storages = (size_t)plan->storages + 1;
    search s = {.plan = plan, .kernel = backend->kernels()[PC__OP_cast_many]};
    if (!s.kernel)
        return;
    s.cast = pc__alloc(nodes * sizeof *s.cast);
    s.by_end = pc__alloc(nodes * sizeof *s.by_end);
    s.used = pc__alloc(storages * sizeof *s.used);
    s.written = pc__alloc(storages * sizeof *s.written);
    s.made = pc__calloc(storages, sizeof *s.made);
    s.member = pc__alloc(nodes * sizeof *s.member);
    if (s.cast && s.by_end && s.used && s.written && s.made && s.member)
        run(&s);
    else
        pc_error_clear(); /* the plan is right without the pass */
    pc__free(s.cast);
    pc__free(s.by_end);
    pc__free(s.used);
    pc__free(s.written);
    pc__free(s.made);
    pc__free(s.member);
}
