/* step_leaves.c: gradients that a recorded step leaves to others. */
#include "nn/step_leaves.h"

#include "autograd/tape.h"
#include "tensor/leaf_watch.h"

typedef struct noting {
    pc__step_leaves *leaves;
    const pc_optimizer *optimizer;
} noting;

static bool is_trained(const pc_optimizer *o, const pc_tensor *leaf)
{
    for (int i = 0; i < o->count; i++)
        if (o->parameters[i] == leaf)
            return true;
    return false;
}

static bool is_noted(const pc__step_leaves *l, const pc_tensor *leaf)
{
    for (int i = 0; i < l->count; i++)
        if (l->list[i].leaf == leaf)
            return true;
    return false;
}

/* Those of the optimiser had none in front of the step: pc_step_run sees to it. */
static pc_status note(void *context, pc_tensor *leaf, bool before)
{
    const noting *n = context;
    pc__step_leaves *l = n->leaves;
    if ((!leaf->grad && is_trained(n->optimizer, leaf)) || is_noted(l, leaf))
        return PC_OK;
    PC__TRY(pc__grow((void **)&l->list, &l->room, l->count, sizeof *l->list));
    l->list[l->count++] =
        (pc__step_leaf){pc_tensor_retain(leaf), pc_tensor_retain(leaf->grad), leaf->watch && leaf->watch->given};
    l->waited |= before;
    return PC_OK;
}

pc_status pc__step_leaves_note(pc__step_leaves *l, const pc_graph *graph, const pc_optimizer *o)
{
    return pc__grad_each_change(graph, note, &(noting){l, o});
}

bool pc__step_leaves_wait(const pc__step_leaves *l)
{
    for (int i = 0; i < l->count; i++)
        if (l->list[i].leaf->grad)
            return true;
    return false;
}

void pc__step_leaves_give(const pc__step_leaves *l)
{
    for (int i = 0; i < l->count; i++) {
        pc_tensor *leaf = l->list[i].leaf;
        if (!leaf->grad) /* it has it behind the recording itself */
            leaf->grad = pc_tensor_retain(l->list[i].grad);
        if (leaf->watch)
            leaf->watch->given = l->list[i].given;
    }
}

void pc__step_leaves_drop_grads(pc__step_leaves *l)
{
    for (int i = 0; i < l->count; i++) {
        pc_tensor_free(l->list[i].grad);
        l->list[i].grad = NULL;
    }
}

void pc__step_leaves_clear(pc__step_leaves *l)
{
    pc__step_leaves_drop_grads(l);
    for (int i = 0; i < l->count; i++)
        pc_tensor_free(l->list[i].leaf);
    pc__free(l->list);
    *l = (pc__step_leaves){0};
}
