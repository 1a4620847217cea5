/* mode.c: whether the calling thread records calls for gradients. */
#include "tensor/call.h"

#include <paracord/no_grad.h>

void pc_no_grad_enter(void)
{
    pc__mode.no_grad++;
}

void pc_no_grad_leave(int *open)
{
    if (!open || !*open)
        return;
    pc__mode.no_grad -= pc__mode.no_grad > 0;
    *open = 0;
}

bool pc_grad_enabled(void)
{
    return pc__mode.no_grad == 0;
}

bool pc__tape_wants(const pc_call *call)
{
    if (pc__mode.no_grad)
        return false;
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i]->requires_grad)
            return true;
    return false;
}
