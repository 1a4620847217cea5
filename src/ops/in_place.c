/* in_place.c: which tensors may be written, and which inputs share their memory. */
#include "ops/in_place.h"

#include "ops/collective.h"
#include "ops/table.h"
#include "tensor/overlap.h"

#include <paracord/no_grad.h>

static pc_status check_target(const pc_call *call, const pc_tensor *t, pc_device device)
{
    if (t->requires_grad && pc_grad_enabled())
        return pc__fail(PC_ERR_STATE,
                        "%s: in place on a tensor that requires a gradient; use PC_NO_GRAD or a new tensor",
                        call->op->name);
    if (!pc_device_equal(t->storage->device, device)) {
        char a[PC_DEVICE_NAME_MAX], b[PC_DEVICE_NAME_MAX];
        return pc__fail(PC_ERR_DEVICE, "%s: the tensor to write is on %s and the input on %s; move one with pc_to",
                        call->op->name, pc_device_name(t->storage->device, a), pc_device_name(device, b));
    }
    if (pc__repeats(t))
        return pc__fail(PC_ERR_ARGUMENT,
                        "%s: in place on an expanded tensor of shape %s, whose elements share memory; "
                        "write a pc_contiguous of it",
                        call->op->name, PC__SHAPE_OF(t));
    return PC_OK;
}

pc_status pc__targets_check(const pc_call *call, pc_device device)
{
    for (int i = 0; i < call->n_out; i++) {
        PC__TRY(check_target(call, call->out[i], device));
        for (int k = 0; k < i; k++)
            if (pc__overlap(call->out[i], call->out[k]) != PC__APART)
                return pc__fail(PC_ERR_ARGUMENT,
                                "%s: the tensors to write, of shapes %s and %s, share memory; give each its own",
                                call->op->name, PC__SHAPE_OF(call->out[k]), PC__SHAPE_OF(call->out[i]));
    }
    return PC_OK;
}

/* A rank's part of what is gathered may lie where it goes. */
static bool is_in_its_place(const pc_call *call, int i)
{
    if (call->op->index != PC__OP_all_gather)
        return false;
    const pc__collective *a = call->attributes;
    const pc_tensor *part = call->in[i], *all = call->out[0];
    return part->storage == all->storage &&
           part->offset == all->offset + a->comm->rank * pc__count(part->ndim, part->shape);
}

/* Ops that write their inputs too are the library's own, with lists of tensors that are known to be apart. */
bool pc__reads_written(const pc_call *call, int i)
{
    if (call->op->flags & (PC__WRITES_IN | PC__WRITES_HALF) || is_in_its_place(call, i))
        return false;
    for (int k = 0; k < call->n_out; k++) {
        const pc__shared shared = pc__overlap(call->out[k], call->in[i]);
        if (shared == PC__CROSSING || (shared == PC__SAME_PLACES && !(call->op->flags & PC__BY_ELEMENT)))
            return true;
    }
    return false;
}
