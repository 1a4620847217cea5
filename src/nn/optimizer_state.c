/* optimizer_state.c: what an optimiser keeps between steps: made, checked after failures, begun anew. */
#include "nn/optimizer.h"

#include "device/failure.h"
#include "tensor/tensor.h"

#include <paracord/autograd.h>

/* As the parameter, in C order. */
static pc_tensor *room_for(const pc_optimizer *o, const pc_tensor *parameter)
{
    static const char maker[] = "an optimiser's state";
    pc__meta meta;
    pc__meta_contiguous(&meta, (pc_dtype)parameter->dtype, parameter->ndim, parameter->shape);
    if (o->hosted)
        return pc__tensor_hosted(&meta, pc_tensor_device(parameter), maker);
    return pc_tensor_retain(pc__tensor_for(&meta, pc_tensor_device(parameter), maker));
}

pc_status pc__optimizer_make_state(pc_optimizer *o)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        for (int i = 0; i < o->slots * o->count && status == PC_OK; i++) {
            o->state[i] = room_for(o, o->parameters[i % o->count]);
            status = o->state[i] ? pc_fill(o->state[i], 0) : pc_error_last()->status;
        }
    }
    return status;
}

pc_status pc__optimizer_sound(const pc_optimizer *o)
{
    for (int i = 0; pc__ever_failed() && i < o->slots * o->count; i++) {
        const unsigned number = pc__storage_failed(o->state[i]->storage);
        if (!number)
            continue;
        const pc_error error = pc__failure_error(number);
        return pc__fail(error.status != PC_OK ? error.status : PC_ERR_STATE,
                        "pc_optimizer_step: a step of %s failed and left no result in what it keeps of parameter %d "
                        "%s; load weights, then pc_optimizer_reset begins anew: %.250s",
                        o->name, i % o->count, PC__SHAPE_OF(o->parameters[i % o->count]), error.message);
    }
    return PC_OK;
}

/* One that has a gradient is somebody's still. */
pc_status pc__optimizer_in_place(const pc_optimizer *o)
{
    for (int i = 0; i < o->count; i++)
        if (o->parameters[i]->moved && pc_requires_grad(o->parameters[i]) && !pc_grad(o->parameters[i]))
            return pc__fail(PC_ERR_STATE,
                            "pc_optimizer_step: pc_module_to has moved \"%s\" since the optimiser was made, which "
                            "trains what was there before; make optimisers after it",
                            o->names[i].name);
    return PC_OK;
}

pc_status pc__optimizer_number(const pc_optimizer *o, pc_tensor **t, double value, pc_dtype dtype)
{
    if (*t)
        return pc_fill(*t, value);
    PC_SCOPE {
        *t = pc_tensor_retain(pc_full(PC_SHAPE(1), value, dtype, pc_tensor_device(o->parameters[0])));
    }
    return *t ? PC_OK : pc_error_last()->status;
}

bool pc__optimizer_number_lost(const pc_tensor *t)
{
    return !t || pc__storage_failed(t->storage);
}

pc_status pc_optimizer_reset(pc_optimizer *optimizer)
{
    PC__NEED(optimizer);
    pc_optimizer *o = optimizer;
    PC__TRY(pc__optimizer_allows("pc_optimizer_reset", "a count that the host sets"));
    for (int i = 0; i < o->count; i++)
        pc_zero_grad(o->parameters[i]);
    for (int i = 0; i < o->slots * o->count; i++)
        PC__TRY(pc_fill(o->state[i], 0));
    pc__optimizer_adopt(o, 0);
    return PC_OK;
}
