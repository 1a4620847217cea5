/* leaf.c: which tensors collect gradients, and what they have collected. */
#include "autograd/tape.h"

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

void pc_zero_grad(pc_tensor *t)
{
    PC__NEED_OR(, t);
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
