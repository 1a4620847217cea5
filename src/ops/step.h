/* step.h: optimiser updates of all parameters in one kernel. */
#ifndef PC__OP_STEP_H
#define PC__OP_STEP_H

#include "ops/step_attributes.h"
#include "ops/table.h"

static inline bool pc__step_has(const pc__step_attributes *a, pc__step_extra extra)
{
    return extra == PC__STEP_SCALER    ? a->guarded
           : extra == PC__STEP_COUNTER ? a->step == 0
           : extra == PC__STEP_RATE    ? a->rated
                                       : a->clipped;
}

/* tensors: parameters, gradients, slots (sgd: velocity when momentum > 0; adam: first and second moment; rmsprop: mean of
 * squares, and velocity when momentum > 0; lion: momentum), each `count` long; all contiguous, in place; then the extras. */
pc_status pc__sgd_step(pc_tensor **tensors, int n, const pc__step_attributes *attributes);
pc_status pc__adam_step(pc_tensor **tensors, int n, const pc__step_attributes *attributes);
pc_status pc__rmsprop_step(pc_tensor **tensors, int n, const pc__step_attributes *attributes);
pc_status pc__lion_step(pc_tensor **tensors, int n, const pc__step_attributes *attributes);

/* clip, float64 [2]: the norm of all n gradients together, and by what they are to be multiplied so that it is at most
 * `most`: min(1, most / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_. */
pc_status pc__gradient_norm(pc_tensor *clip, pc_tensor **gradients, int n, double most);

/* The attributes, where the call is such an update; else NULL. */
static inline const pc__step_attributes *pc__step_of(const pc_call *call)
{
    const int op = call->op->index;
    return op == PC__OP_sgd_step || op == PC__OP_adam_step || op == PC__OP_rmsprop_step || op == PC__OP_lion_step
               ? call->attributes
               : NULL;
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
    int lists = call->n_in;
    for (int i = 0; i < PC__STEP_EXTRAS; i++)
        lists -= pc__step_has(call->attributes, (pc__step_extra)i);
    return lists;
}

/* That input; NULL where the call has none. */
static inline pc_tensor *pc__step_extra_of(const pc_call *call, pc__step_extra extra)
{
    int at = pc__step_lists(call);
    for (int i = 0; i < (int)extra; i++)
        at += pc__step_has(call->attributes, (pc__step_extra)i);
    return pc__step_has(call->attributes, extra) ? call->in[at] : NULL;
}

/* The group of parameter i. */
static inline int pc__step_group(const pc__step_attributes *a, int i)
{
    int group = 0;
    while (group < a->groups - 1 && i >= a->group[group].end)
        group++;
    return group;
}

/* Where parameter i is to be written in 16 bits, or NULL. */
static inline pc_tensor *pc__step_copy(const pc_call *call, int i)
{
    const pc__step_attributes *a = call->attributes;
    pc_tensor *t = a->copies ? call->in[pc__step_lists(call) - a->count + i] : NULL;
    return t && pc__is_half((pc_dtype)t->dtype) ? t : NULL;
}

#endif
