/* step.c: optimiser updates. In place on leaves that require gradients: the optimiser is the one who may. */
#include "ops/step.h"

#include "ops/table.h"

#include <paracord/no_grad.h>

static void raise_version(pc_tensor *t)
{
    atomic_fetch_add_explicit(&t->storage->version, 1, memory_order_relaxed);
}

static pc_status step(int op, pc_tensor **tensors, int n, const pc__step_attributes *attributes)
{
    pc_status status = PC_OK;
    PC_NO_GRAD {
        status = pc__call_in_place(op, tensors[0], tensors, n, attributes, sizeof *attributes);
    }
    for (int i = 1; i < attributes->count && status == PC_OK; i++)
        raise_version(tensors[i]);
    const int others = attributes->guarded + !attributes->step;
    for (int i = 0; attributes->copies && i < attributes->count && status == PC_OK; i++)
        if (pc__is_half((pc_dtype)tensors[n - others - 1 - i]->dtype))
            raise_version(tensors[n - others - 1 - i]);
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
