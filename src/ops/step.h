/* step.h: optimiser updates of all parameters in one kernel. */
#ifndef PC__OP_STEP_H
#define PC__OP_STEP_H

#include "tensor/tensor.h"

/* Formulas as in torch.optim.SGD and torch.optim.Adam (Kingma and Ba, 2015). */
typedef struct pc__step_attributes {
    int count;   /* parameters; the call's inputs are count parameters, count gradients, then count of each slot */
    bool copies; /* then count more: of 16 bits, to get what the parameter becomes; or the parameter itself, for none */
    double lr, momentum, nesterov, weight_decay;
    double beta1, beta2, epsilon;
    int64_t step; /* from 1; 0: the call's last input, int64 [1], has what it counts up by one: the steps made */
    bool guarded; /* the input before that is a loss scaler's numbers: with something found nothing is done */
} pc__step_attributes;

/* tensors: parameters, gradients, slots (sgd: velocity when momentum > 0; adam: first and second moment), each `count`
 * long; all contiguous, in place. With attributes->copies `count` more (on CUDA, where no parameter has 16 bits), with
 * attributes->guarded one more, the scaler's numbers (ops/scale.h), and with attributes->step 0 one more, the number of
 * steps made. */
pc_status pc__sgd_step(pc_tensor **tensors, int n, const pc__step_attributes *attributes);
pc_status pc__adam_step(pc_tensor **tensors, int n, const pc__step_attributes *attributes);

#endif
