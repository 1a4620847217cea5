/* var.c: variances and standard deviations. */
#include "ops/reduce_call.h"
#include "tensor/read.h"

#include <math.h>

static pc_tensor *variance(const char *who, pc_tensor *a, unsigned mask, double correction, bool keepdim, bool root)
{
    if (!pc__is_float(a->dtype))
        return pc__null(PC_ERR_DTYPE, "%s: a %s tensor has none in its own dtype; use pc_cast to PC_F32 first", who,
                        pc_dtype_name(a->dtype));
    pc__reduce_attributes kind;
    pc__reduce_describe(a, mask, keepdim, &kind);
    kind.divisor = fmax((double)kind.reduced - correction, 0);
    kind.root = root;
    kind.to = a->dtype;
    return pc__reduce_to_one(PC__OP_var, a, mask, keepdim, &kind);
}

pc_status pc__infer_var(pc_call *call, pc__meta *out)
{
    const pc__reduce_attributes *a = call->attributes;
    pc__meta_contiguous(&out[0], (pc_dtype)a->to, a->ndim, a->shape);
    pc__meta_contiguous(&out[1], PC_F64, a->ndim, a->shape); /* the mean */
    return PC_OK;
}

pc_tensor *pc_var(pc_tensor *a, double correction)
{
    PC__NEED_OR(NULL, a);
    return variance("var", a, pc__reduce_all_of(a), correction, false, false);
}

pc_tensor *pc_var_dims(pc_tensor *a, pc_shape dims, double correction, bool keepdim)
{
    PC__NEED_OR(NULL, a);
    unsigned mask;
    return pc__reduce_mask("var", a, dims, &mask) ? variance("var", a, mask, correction, keepdim, false) : NULL;
}

pc_tensor *pc_std(pc_tensor *a, double correction)
{
    PC__NEED_OR(NULL, a);
    return variance("std", a, pc__reduce_all_of(a), correction, false, true);
}

pc_tensor *pc_std_dims(pc_tensor *a, pc_shape dims, double correction, bool keepdim)
{
    PC__NEED_OR(NULL, a);
    unsigned mask;
    return pc__reduce_mask("std", a, dims, &mask) ? variance("std", a, mask, correction, keepdim, true) : NULL;
}

static pc_tensor *number(double value, const pc__grad *grad, const pc_tensor *like)
{
    return pc_scalar(value, like->dtype, grad->device);
}

/* d var = 2 (x - mean) / divisor dx; d std = d var / (2 std), 0 where std is: in float32 where the dtype is float16, which need not have
 * a gradient divided by a small std. Without degrees of freedom it is infinite, and NaN
 * where x is the mean, as in PyTorch. */
pc_status pc__grad_var(pc__grad *grad)
{
    const pc__reduce_attributes *a = grad->attributes;
    pc__meta wide = grad->in_meta[0];
    const pc__meta *in = &wide;
    if (a->root && wide.dtype == PC_F16)
        wide.dtype = PC_F32;
    const bool widened = wide.dtype != grad->in_meta[0].dtype;
    pc_tensor *g = pc__as_dtype(grad->out_grad[0], in->dtype), *x = pc__as_dtype(grad->in[0], in->dtype);
    pc_tensor *value = widened ? pc__as_dtype(grad->out[0], in->dtype) : grad->out[0];
    if (!g || !x || !value)
        return pc__set_grad(grad, 0, NULL);
    if (a->root)
        g = pc_where(pc_eq(value, number(0, grad, value)), number(0, grad, g), pc_div(g, pc_mul_scalar(value, 2)));
    pc_tensor *mean = pc__reduce_spread(grad->out[1], a, in), *each;
    if (a->divisor > 0)
        each = pc_mul(pc_sub(x, mean), pc__reduce_spread(pc_mul_scalar(g, 2 / a->divisor), a, in));
    else
        each = pc_mul(pc_where(pc_eq(x, mean), number(NAN, grad, x), number(INFINITY, grad, x)),
                      pc__reduce_spread(g, a, in));
    return pc__set_grad(grad, 0, pc__as_dtype(each, grad->in_meta[0].dtype));
}
