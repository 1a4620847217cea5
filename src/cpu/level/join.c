/* join.c: cat. */
#include "ops/join.h"

#include "cpu/level/kernels.h"
#include "cpu/level/loop.h"
#include "ops/copy.h"

PC__KERNEL(cat)
{
    const pc__dim_attributes *a = call->attributes;
    pc_tensor *out = call->out[0];
    int64_t at = 0;
    for (int i = 0; i < call->n_in; i++) {
        pc_tensor part = *out; /* the place of input i in the output, as a view without an owner */
        part.shape[a->dim] = call->in[i]->shape[a->dim];
        part.offset = out->offset + at * out->strides[a->dim];
        at += part.shape[a->dim];
        pc_call copy = {.op = &pc__ops[PC__OP_copy], .in = &call->in[i], .n_in = 1, .n_out = 1, .out = {&part}};
        if (pc_tensor_count(&part))
            PC__TRY(PC__K(op_copy)(stream, &copy));
    }
    return PC_OK;
}
