/* step.h: optimiser updates of all parameters in one kernel. */
#ifndef PC__OP_STEP_H
#define PC__OP_STEP_H

#include "ops/table.h"

/* Formulas as in torch.optim.SGD and torch.optim.Adam (Kingma and Ba, 2015). */
typedef struct pc__step_attributes {
    int count; /* parameters; the call's inputs are count parameters, count gradients, then count of each slot */
    bool
        copies; /* then count more: of one dtype of 16 bits, to get what the parameter becomes; or the parameter itself,
                    for none. Plans ask for it (plan/shadows.c), where no parameter has 16 bits */
    double lr, momentum, nesterov, weight_decay;
    double beta1, beta2, epsilon;
    int64_t step; /* from 1; 0: the call's last input, int64 [1], has what it counts up by one: the steps made */
    bool guarded; /* the input before that is a loss scaler's numbers: with something found nothing is done */
} pc__step_attributes;

/* tensors: parameters, gradients, slots (sgd: velocity when momentum > 0; adam: first and second moment), each `count`
 * long; all contiguous, in place. With attributes->guarded one more, the scaler's numbers (ops/scale.h), and with
 * attributes->step 0 one more, the number of steps made. */
pc_status pc__sgd_step(pc_tensor **tensors, int n, const pc__step_attributes *attributes);
pc_status pc__adam_step(pc_tensor **tensors, int n, const pc__step_attributes *attributes);

/* The attributes, where the call is such an update; else NULL. */
static inline const pc__step_attributes *pc__step_of(const pc_call *call)
{
    const int op = call->op->index;
    return op == PC__OP_sgd_step || op == PC__OP_adam_step ? call->attributes : NULL;
}

/* What has 16 bits in the call is written alone: a kernel of float32 does it. */
static inline bool pc__step_has_copies(const pc_call *call)
{
    const pc__step_attributes *a = pc__step_of(call);
    return a && a->copies;
}

/* Of the call's inputs so many are lists of tensors, in front of what else it has. */
static inline int pc__step_lists(const pc_call *call)
{
    const pc__step_attributes *a = call->attributes;
    return call->n_in - a->guarded - !a->step;
}

/* Where parameter i is to be written in 16 bits, or NULL. */
static inline pc_tensor *pc__step_copy(const pc_call *call, int i)
{
    const pc__step_attributes *a = call->attributes;
    pc_tensor *t = a->copies ? call->in[pc__step_lists(call) - a->count + i] : NULL;
    return t && pc__is_half((pc_dtype)t->dtype) ? t : NULL;
}

#endif
