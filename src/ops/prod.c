/* prod.c: products of elements. */
#include "ops/reduce_call.h"

static pc_tensor *product(pc_tensor *a, unsigned mask, bool keepdim)
{
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *ready = pc__is_float(a->dtype) ? a : pc__as_dtype(a, PC_I64);
        if (!ready)
            break;
        const pc__reduce_attributes kind = {.divisor = 1, .to = (uint8_t)pc__reduce_dtype(ready)};
        result = pc_keep(pc__reduce_to_one(PC__OP_prod, ready, mask, keepdim, &kind));
    }
    return result;
}

pc_tensor *pc_prod(pc_tensor *a)
{
    PC__NEED_OR(NULL, a);
    return product(a, pc__reduce_all_of(a), false);
}

pc_tensor *pc_prod_dim(pc_tensor *a, int dim, bool keepdim)
{
    PC__NEED_OR(NULL, a);
    unsigned mask;
    return pc__reduce_mask_of_one("prod", a, dim, &mask) ? product(a, mask, keepdim) : NULL;
}

/* The product of the other elements. With a zero among them that is 0 but for the zero's own, with several always: quotients
 * of the result would be NaN there. */
pc_status pc__grad_prod(pc__grad *grad)
{
    const pc__meta *in = &grad->in_meta[0];
    pc__reduce_attributes a = *(const pc__reduce_attributes *)grad->attributes;
    a.ndim = in->ndim;
    memcpy(a.shape, in->shape, sizeof a.shape);
    pc_tensor *g = pc_contiguous(pc__as_dtype(grad->out_grad[0], in->dtype));
    return pc__set_grad(grad, 0, PC__CALL(prod_backward, &a, g, pc_contiguous(grad->in[0])));
}
