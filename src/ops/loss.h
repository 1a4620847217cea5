/* loss.h: attributes of the losses of classes. */
#ifndef PC__OP_LOSS_H
#define PC__OP_LOSS_H

#include "tensor/tensor.h"

typedef struct pc__loss_attributes {
    pc_dtype dtype; /* of the loss and the probabilities; backward of the gradient at the logits */
} pc__loss_attributes;

#endif
