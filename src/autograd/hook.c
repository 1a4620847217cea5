/* hook.c: a function of the program in the way of a gradient. It is a view, an op without a kernel, which no table needs to
 * know: only the tape calls its rule. */
#include "ops/table.h"

#include <paracord/autograd.h>

typedef struct hook_attributes {
    pc_gradient_fn function;
    void *context;
} hook_attributes;

static pc_status infer(pc_call *call, pc__meta *out)
{
    pc__meta_of(out, call->in[0]);
    return PC_OK;
}

static pc_status gradient(pc__grad *grad)
{
    const hook_attributes *hook = grad->attributes;
    pc_tensor *given = grad->out_grad[0], *back = hook->function(hook->context, given);
    if (!back && !pc_failed())
        return pc__fail(PC_ERR_ARGUMENT, "backward: the function of a gradient hook returned NULL without an error");
    if (back && (!pc__same_shape(back, given) || !pc_device_equal(back->storage->device, given->storage->device)))
        return pc__fail(PC_ERR_SHAPE,
                        "backward: the function of a gradient hook gave %s for a gradient of shape %s; it must be of "
                        "that shape, and on its device",
                        PC__SHAPE_OF(back), PC__SHAPE_OF(given));
    return pc__set_grad(grad, 0, back && back != given ? pc__share(back) : back);
}

static const pc__op hook_op = {"gradient_hook", PC__OP_view, 1, PC__VIEW, infer, gradient};

pc_tensor *pc_gradient_hook(pc_tensor *x, pc_gradient_fn function, void *context)
{
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, function);
    if (!x->requires_grad)
        return pc__share(x);
    const hook_attributes attributes = {function, context};
    pc_call call = {.op = &hook_op,
                    .in = &x,
                    .n_in = 1,
                    .n_out = 1,
                    .attributes = &attributes,
                    .attribute_bytes = sizeof attributes};
    return pc_dispatch(&call) == PC_OK ? call.out[0] : NULL;
}
