/* truth.c: whether any element is not 0, or all are, and how many. */
#include "ops/reduce_call.h"

/* Of uint8 it is uint8, as in PyTorch. */
static pc_tensor *truth(int op, pc_tensor *a, unsigned mask, bool keepdim)
{
    const pc__reduce_attributes kind = {.divisor = 1, .to = a->dtype == PC_U8 ? PC_U8 : PC_BOOL};
    return pc__reduce_by_runs(op, a, mask, keepdim, &kind);
}

pc_tensor *pc_any(pc_tensor *a)
{
    PC__NEED_OR(NULL, a);
    return truth(PC__OP_any, a, pc__reduce_all_of(a), false);
}

pc_tensor *pc_any_dims(pc_tensor *a, pc_shape dims, bool keepdim)
{
    PC__NEED_OR(NULL, a);
    unsigned mask;
    return pc__reduce_mask("any", a, dims, &mask) ? truth(PC__OP_any, a, mask, keepdim) : NULL;
}

pc_tensor *pc_all(pc_tensor *a)
{
    PC__NEED_OR(NULL, a);
    return truth(PC__OP_all, a, pc__reduce_all_of(a), false);
}

pc_tensor *pc_all_dims(pc_tensor *a, pc_shape dims, bool keepdim)
{
    PC__NEED_OR(NULL, a);
    unsigned mask;
    return pc__reduce_mask("all", a, dims, &mask) ? truth(PC__OP_all, a, mask, keepdim) : NULL;
}

static pc_tensor *count(pc_tensor *a, pc_shape dims)
{
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(pc_sum_dims(pc__as_dtype(a, PC_BOOL), dims, false));
    }
    return result;
}

pc_tensor *pc_count_nonzero(pc_tensor *a)
{
    PC__NEED_OR(NULL, a);
    return count(a, (pc_shape){0});
}

pc_tensor *pc_count_nonzero_dims(pc_tensor *a, pc_shape dims)
{
    PC__NEED_OR(NULL, a);
    unsigned mask;
    return pc__reduce_mask("count_nonzero", a, dims, &mask) ? count(a, dims) : NULL;
}
