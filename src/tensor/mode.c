/* mode.c: whether the calling thread records calls for gradients. */
#include "tensor/call.h"

#include <paracord/no_grad.h>

static _Thread_local int paused;

void pc_no_grad_enter(void)
{
    paused++;
}

void pc_no_grad_leave(int *open)
{
    paused -= *open;
    *open = 0;
}

bool pc_grad_enabled(void)
{
    return paused == 0;
}

bool pc__tape_wants(const pc_call *call)
{
    if (paused)
        return false;
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i]->requires_grad)
            return true;
    return false;
}
