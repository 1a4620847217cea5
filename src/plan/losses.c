/* losses.c: the pass that has the loss of many classes and its gradient be one call, which reads each row of logits once, where the gradient
 * was made, with what the loss is multiplied by as a third input. Nobody reads the logits behind it: the gradient takes their memory. */
#include "plan/epilogue.h"

#include "ops/loss.h"

/* The loss's gradient: what reads the norms of its rows, and nobody else does. -1: none. */
static int gradient_of(const pc__epilogues *s, int i)
{
    const pc__plan_node *loss = pc__node(s, i);
    const int norms = loss->number[loss->call->n_in + 1];
    const int reader = s->uses.first[norms] < s->uses.first[norms + 1] ? s->uses.reader[s->uses.first[norms]] : -1;
    return reader > i && pc__node_is(s, reader, PC__OP_cross_entropy_backward) && pc__is_only_for(s, norms, &reader, 1)
               ? reader
               : -1;
}

/* They are about the same numbers, and nothing between them wants the loss or changes what it is made of. */
static bool go_together(const pc__epilogues *s, int i, int gradient)
{
    const pc__plan_node *loss = pc__node(s, i), *dx = pc__node(s, gradient);
    const int x = loss->number[0], labels = loss->number[1];
    return dx->stream == loss->stream && dx->number[0] == x && dx->number[2] == labels &&
           pc__is_same_memory(loss->call->in[0], dx->call->in[0]) &&
           pc__is_same_memory(loss->call->in[1], dx->call->in[2]) &&
           !pc__is_between(s, i + 1, gradient, loss->stream, (int[]){pc__result_number(s, i), x, labels}, 3, true);
}

/* Whether the gradient can lie where the logits do. */
static bool can_replace(const pc__epilogues *s, int i, int gradient)
{
    const pc__plan_node *dx = pc__node(s, gradient);
    const int nodes[3] = {i, gradient,
                          s->uses.writer[dx->number[0]]}; /* who leaves room behind rows is a reader, too */
    return pc__is_only_for(s, dx->number[0], nodes, 3) && pc__is_temporary(s, pc__result_number(s, gradient)) &&
           pc__is_same_memory(dx->call->in[0], pc__result(s, gradient)) &&
           s->plan->storage[dx->number[0]].bytes == s->plan->storage[pc__result_number(s, gradient)].bytes;
}

static void replace(pc__epilogues *s, int number, int by)
{
    for (int i = 0; i < s->plan->count; i++)
        for (int k = 0; k < (pc__node(s, i)->gone ? 0 : pc__node_uses(pc__node(s, i))); k++)
            if (pc__node(s, i)->number[k] == number)
                pc__node_rename(s->plan, pc__node(s, i), k, by);
    s->plan->storage[by].writes += s->plan->storage[number].writes;
    s->plan->storage[number].writes = 0;
}

static void join(pc__epilogues *s, int i, int gradient)
{
    pc__plan_node *loss = pc__node(s, i), *dx = pc__node(s, gradient);
    const bool replaces = can_replace(s, i, gradient);
    const int x = loss->number[0], own = pc__result_number(s, gradient);
    pc_tensor *in[3] = {loss->call->in[0], loss->call->in[1], dx->call->in[3]};
    pc_call call = *loss->call;
    call.in = in, call.n_in = 3;
    call.out[1] = dx->call->out[0];
    if (!pc__node_become(dx, &call, (int[]){x, loss->number[1], dx->number[3], pc__result_number(s, i), own},
                         loss->kernel))
        return;
    loss->gone = PC__PASS_LOSSES;
    if (replaces)
        replace(s, own, x);
}

void pc__pass_losses(pc__plan *plan, const pc__backend *backend)
{
    pc__epilogues s = {.plan = plan, .backend = backend};
    if (backend->type != PC_CUDA || !pc__epilogues_find(&s))
        return;
    for (int i = 0; i < plan->count; i++) {
        const bool is_loss = pc__node_is(&s, i, PC__OP_cross_entropy) && pc__loss_is_long(pc__node(&s, i)->call->in[0]);
        const int gradient = is_loss ? gradient_of(&s, i) : -1;
        if (gradient >= 0 && go_together(&s, i, gradient))
            join(&s, i, gradient);
    }
    pc__plan_uses_free(&s.uses);
}
