/* leaf.c: which tensors collect gradients, and what they have collected. */
#include "autograd/leaf_watch.h"
#include "autograd/tape.h"

#include "device/graph.h"
#include "ops/table.h"

#include <paracord/autograd.h>

pc_status pc_require_grad(pc_tensor *t, bool on)
{
    PC__NEED(t);
    if (t->node)
        return pc__fail(PC_ERR_STATE,
                        "pc_require_grad: the tensor is the result of %s, not a leaf; use pc_detach first",
                        t->node->op->name);
    if (on && !pc__is_float(t->dtype))
        return pc__fail(PC_ERR_DTYPE,
                        "pc_require_grad: a %s tensor has no gradient; use a floating dtype such as float32",
                        pc_dtype_name(t->dtype));
    t->requires_grad = on;
    return PC_OK;
}

bool pc_requires_grad(const pc_tensor *t)
{
    return t && t->requires_grad;
}

bool pc_is_leaf(const pc_tensor *t)
{
    return t && !t->node;
}

pc_tensor *pc_grad(const pc_tensor *t)
{
    PC__NEED_OR(NULL, t);
    return t->grad;
}

static void end_change(void *leaf, void *before, bool put_back)
{
    pc_tensor *t = leaf, *other = before;
    if (put_back) {
        other = t->grad;
        t->grad = before;
    }
    pc_tensor_free(other);
    pc_tensor_free(t);
}

static bool made_in(const pc_graph *graph, const pc_tensor *t)
{
    const pc__graph_use *use = pc__graph_use_of(graph, t->storage);
    return use && use->made;
}

/* Nothing that was made in the recording is held for it, or its memory would be no temporary's. Such a leaf has no
 * contents when the recording is refused; such a gradient came by an earlier change, which is put back. */
pc_status pc__grad_changes(pc_tensor *leaf)
{
    pc_graph *graph = pc__graph_here(leaf->storage->device);
    if (!graph || made_in(graph, leaf) || (leaf->grad && made_in(graph, leaf->grad)))
        return PC_OK;
    PC__TRY(pc__graph_changes(graph, leaf, leaf->grad, end_change));
    pc_tensor_retain(leaf);
    pc_tensor_retain(leaf->grad);
    return PC_OK;
}

pc_status pc__grad_each_change(const pc_graph *graph, pc_status (*visit)(void *context, pc_tensor *leaf, bool before),
                               void *context)
{
    for (int i = 0; i < graph->change_count; i++)
        if (graph->changes[i].end == end_change && graph->changes[i].object)
            PC__TRY(visit(context, graph->changes[i].object, graph->changes[i].before != NULL));
    return PC_OK;
}

pc_status pc__leaf_gets(pc_tensor *leaf, pc_tensor *gradient)
{
    PC__TRY(pc__grad_changes(leaf));
    leaf->grad = pc_tensor_retain(gradient);
    return PC_OK;
}

void pc_zero_grad(pc_tensor *t)
{
    PC__NEED_OR(, t);
    if (!t->grad || pc__grad_changes(t) != PC_OK)
        return;
    pc_tensor_free(t->grad);
    t->grad = NULL;
}

pc_tensor *pc_detach(pc_tensor *t)
{
    PC__NEED_OR(NULL, t);
    pc__meta meta;
    pc__meta_of(&meta, t);
    return pc__tensor_new(&meta, t->storage->device);
}
