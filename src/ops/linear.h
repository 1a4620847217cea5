/* linear.h: attributes of the fused linear layer. */
#ifndef PC__OP_LINEAR_H
#define PC__OP_LINEAR_H

#include <paracord/ops.h>

typedef struct pc__linear_attributes {
    pc_activation_kind activation;
} pc__linear_attributes;

#endif
