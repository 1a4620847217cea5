/* cumsum.c: running sums along a dimension. */
#include "ops/index.h"
#include "ops/table.h"

static pc_tensor *cumsum(pc_tensor *a, const pc__cumsum_attributes *attributes)
{
    return PC__CALL(cumsum, attributes, pc_contiguous(a));
}

pc_tensor *pc_cumsum(pc_tensor *a, int dim)
{
    PC__NEED_OR(NULL, a);
    const pc__cumsum_attributes attributes = {.dim = pc__dim("cumsum", dim, a->ndim)};
    if (attributes.dim < 0)
        return NULL;
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *t = pc__is_float(a->dtype) ? a : pc__as_dtype(a, PC_I64);
        result = pc_keep(a->ndim ? cumsum(t, &attributes) : pc_clone(t));
    }
    return result;
}

/* An element is part of its own sum and of those behind it. */
pc_status pc__grad_cumsum(pc__grad *grad)
{
    pc__cumsum_attributes a = *(const pc__cumsum_attributes *)grad->attributes;
    a.reversed = !a.reversed;
    return pc__set_grad(grad, 0, cumsum(grad->out_grad[0], &a));
}
