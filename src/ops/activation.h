/* activation.h: what may follow a product, by kind. */
#ifndef PC__OP_ACTIVATION_H
#define PC__OP_ACTIVATION_H

#include "ops/table.h"

typedef struct pc__activation_row {
    bool fused; /* in the kernels of products, with the gradient from the value behind it */
    pc_tensor *(*function)(pc_tensor *y);
    const char *option, *module, *inside;
} pc__activation_row;

/* NULL where there is no such kind. */
const pc__activation_row *pc__activation_row_of(pc_activation_kind kind);

/* y with the activation applied as an op; y itself for PC_ACTIVATION_NONE. NULL flows. */
pc_tensor *pc__activated(pc_activation_kind kind, pc_tensor *y);

/* The gradient before a fused activation, from the gradient g and the value y behind it. */
pc_tensor *pc__activation_backward(pc_activation_kind kind, pc_tensor *g, pc_tensor *y);

/* The fused activation that an op is, or is the gradient of; PC_ACTIVATION_NONE: none such. */
pc_activation_kind pc__activation_by_op(const pc__op *op);
pc_activation_kind pc__activation_by_backward(const pc__op *op);

#endif
