/* activation.h: the gradient through a fused activation. */
#ifndef PC__OP_ACTIVATION_H
#define PC__OP_ACTIVATION_H

#include "ops/table.h"

/* The gradient before the activation, from the gradient g and the value y behind it. */
static inline pc_tensor *pc__activation_backward(pc_activation_kind kind, pc_tensor *g, pc_tensor *y)
{
    static const int ops[] = {-1, PC__OP_relu_backward, PC__OP_sigmoid_backward, PC__OP_tanh_backward};
    return kind == PC_NONE ? g : pc__call(ops[kind], (pc_tensor *[]){g, y}, 2, NULL, 0);
}

#endif
