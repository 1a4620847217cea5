/* step.c: optimiser updates. In place on leaves that require gradients: the optimiser is the one who may. */
#include "ops/step.h"

#include "device/graph.h"

#include <paracord/no_grad.h>

static pc_status step(int op, pc_tensor **tensors, int n, const pc__step_attributes *attributes)
{
    pc_status status = PC_OK;
    PC_NO_GRAD {
        status = pc__call_in_place(op, tensors[0], tensors, n, attributes, sizeof *attributes);
    }
    for (int i = 1; i < attributes->count && status == PC_OK; i++)
        status = pc__graph_raises(tensors[0]->storage->device, tensors[i]->storage);
    return status;
}

pc_status pc__sgd_step(pc_tensor **tensors, int n, const pc__step_attributes *attributes)
{
    return step(PC__OP_sgd_step, tensors, n, attributes);
}

pc_status pc__adam_step(pc_tensor **tensors, int n, const pc__step_attributes *attributes)
{
    return step(PC__OP_adam_step, tensors, n, attributes);
}

pc_status pc__rmsprop_step(pc_tensor **tensors, int n, const pc__step_attributes *attributes)
{
    return step(PC__OP_rmsprop_step, tensors, n, attributes);
}

pc_status pc__lion_step(pc_tensor **tensors, int n, const pc__step_attributes *attributes)
{
    return step(PC__OP_lion_step, tensors, n, attributes);
}

pc_status pc__gradient_norm(pc_tensor *clip, pc_tensor **gradients, int n, double most)
{
    return pc__call_in_place(PC__OP_gradient_norm, clip, gradients, n, &most, sizeof most);
}
