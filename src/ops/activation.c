/* activation.c: the table of activations, and what products do with those that their kernels do not have. */
#include "ops/activation.h"

static const pc__activation_row rows[] = {
#define PC__ACTIVATION(kind, fused, function, option, module, inside)                                                  \
    [PC_ACTIVATION_##kind] = {fused, function, option, module, inside},
#include "ops/activation.def"
#undef PC__ACTIVATION
};

const pc__activation_row *pc__activation_row_of(pc_activation_kind kind)
{
    return (unsigned)kind < PC__COUNT(rows) ? &rows[kind] : NULL;
}

pc_tensor *pc__activated(pc_activation_kind kind, pc_tensor *y)
{
    return y && kind != PC_ACTIVATION_NONE ? rows[kind].function(y) : y;
}

/* Of the fused ones. */
static const struct {
    int forward, backward;
} ops[] = {[PC_ACTIVATION_RELU] = {PC__OP_relu, PC__OP_relu_backward},
           [PC_ACTIVATION_SIGMOID] = {PC__OP_sigmoid, PC__OP_sigmoid_backward},
           [PC_ACTIVATION_TANH] = {PC__OP_tanh, PC__OP_tanh_backward}};

pc_tensor *pc__activation_backward(pc_activation_kind kind, pc_tensor *g, pc_tensor *y)
{
    return kind == PC_ACTIVATION_NONE ? g : pc__call(ops[kind].backward, (pc_tensor *[]){g, y}, 2, NULL, 0);
}

pc_activation_kind pc__activation_by_op(const pc__op *op)
{
    int i = (int)PC__COUNT(ops) - 1;
    while (i > PC_ACTIVATION_NONE && op->index != ops[i].forward)
        i--;
    return (pc_activation_kind)i;
}

pc_activation_kind pc__activation_by_backward(const pc__op *op)
{
    int i = (int)PC__COUNT(ops) - 1;
    while (i > PC_ACTIVATION_NONE && op->index != ops[i].backward)
        i--;
    return (pc_activation_kind)i;
}
