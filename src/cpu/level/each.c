/* each.c: from a call to runs over its operands. */
#include "cpu/level/each.h"

pc_status pc__each(const pc_call *call, const pc__run_fn runs[PC_DTYPE_COUNT], int cost)
{
    pc_dtype dtype = call->in[0]->dtype;
    if (!runs[dtype])
        return pc__fail(PC_ERR_DTYPE, "%s has no kernel for %s on the CPU; pc_cast to another dtype", call->op->name,
                        pc_dtype_name(dtype));
    pc_tensor *operands[PC__OPERANDS] = {call->out[0]};
    for (int i = 0; i < call->n_in; i++)
        operands[i + 1] = call->in[i];
    pc__loop loop;
    pc__loop_make(&loop, call->n_in + 1, operands, call->attributes);
    pc__loop_run(&loop, runs[dtype], cost);
    return PC_OK;
}
