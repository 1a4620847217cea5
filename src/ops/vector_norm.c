/* vector_norm.c: vector norms: of the orders that matter most by an op that reads its input once, of others by powers. */
#include "ops/number.h"
#include "ops/reduce_call.h"
#include "tensor/read.h"

#include <math.h>
#include <paracord/no_grad.h>

/* NULL flows. */
static pc_tensor *number(double value, pc_tensor *like)
{
    return like ? pc_scalar(value, like->dtype, like->storage->device) : NULL;
}

/* NaN is not 0. */
static pc_tensor *is_other_than_zero(pc_tensor *t)
{
    return pc_cast(t, PC_BOOL);
}

/* Where nobody differentiates, powers of 0 are what they are. */
static bool has_gradient(const pc_tensor *t)
{
    return t && t->requires_grad && pc_grad_enabled();
}

/* |a|^p; what is 0 has no gradient, whose formula is infinite there below the order 1. */
static pc_tensor *powers_of(pc_tensor *a, double order)
{
    pc_tensor *size = pc_abs(a);
    if (order > 1 || !has_gradient(a))
        return pc_pow_scalar(size, order);
    pc_tensor *other = is_other_than_zero(a);
    return pc_where(other, pc_pow_scalar(pc_where(other, size, number(1, a)), order),
                    number(order > 0 ? 0 : INFINITY, a));
}

/* sum(|a|^p)^(1/p). Where the sum is 0 the norm has no gradient; of an order below 0 it is infinite there. */
static pc_tensor *by_powers(pc_tensor *a, double order, pc_shape dims, bool keepdim)
{
    pc_tensor *sum = pc_sum_dims(powers_of(a, order), dims, keepdim);
    if (order > 0 && !has_gradient(sum))
        return pc_pow_scalar(sum, 1 / order);
    pc_tensor *some = is_other_than_zero(sum);
    return pc_where(some, pc_pow_scalar(pc_where(some, sum, number(1, sum)), 1 / order),
                    number(order > 0 ? 0 : INFINITY, sum));
}

/* The order 0 counts what is not 0. */
static pc_tensor *by_other_ops(pc_tensor *a, double order, pc_shape dims, bool keepdim)
{
    const pc_dtype to = pc__reduce_dtype(a);
    pc_tensor *result = NULL;
    PC_SCOPE {
        if (order == 0)
            result = pc_cast(pc_sum_dims(pc_cast(a, PC_BOOL), dims, keepdim), to);
        else
            result = pc__as_dtype(
                by_powers(pc__is_half((pc_dtype)a->dtype) ? pc_cast(a, PC_F32) : a, order, dims, keepdim), to);
        result = pc_keep(result);
    }
    return result;
}

static pc_tensor *norm(pc_tensor *a, double order, pc_shape dims, bool keepdim)
{
    unsigned mask;
    if (!pc__is_float(a->dtype))
        return pc__null(PC_ERR_DTYPE, "norm: a %s tensor has no norm in its own dtype; use pc_cast to PC_F32 first",
                        pc_dtype_name(a->dtype));
    if (isnan(order))
        return pc__null(PC_ERR_ARGUMENT, "norm: the order is not a number");
    if (!pc__reduce_mask("norm", a, dims, &mask))
        return NULL;
    pc__reduce_attributes kind;
    pc__reduce_describe(a, mask, keepdim, &kind);
    if (kind.reduced == 0 && (order < 0 || isinf(order)))
        return pc__null(PC_ERR_SHAPE, "norm: a tensor of shape %s has no elements, whose norm of order %g is no number",
                        PC__SHAPE_OF(a), order);
    if (!isinf(order) && order != 1 && order != 2 && order != 3)
        return by_other_ops(a, order, dims, keepdim);
    kind.norm = isinf(order) ? (order > 0 ? PC__NORM_MOST : PC__NORM_LEAST)
                : order == 1 ? PC__NORM_SUM
                : order == 2 ? PC__NORM_ROOT
                             : PC__NORM_CUBE_ROOT;
    kind.to = (uint8_t)pc__reduce_dtype(a);
    return isinf(order) || pc__is_half((pc_dtype)kind.to) ? pc__reduce_to_one(PC__OP_norm, a, mask, keepdim, &kind)
                                                          : pc__reduce_by_runs(PC__OP_norm, a, mask, keepdim, &kind);
}

pc_tensor *pc_norm(pc_tensor *a, double order)
{
    PC__NEED_OR(NULL, a);
    return norm(a, order, (pc_shape){0}, false);
}

pc_tensor *pc_norm_dims(pc_tensor *a, double order, pc_shape dims, bool keepdim)
{
    PC__NEED_OR(NULL, a);
    return norm(a, order, dims, keepdim);
}

/* Those that have the extreme size share the gradient. */
static pc_tensor *shared(pc_tensor *g, pc_tensor *x, pc_tensor *value, const pc__reduce_attributes *a,
                         const pc__meta *in)
{
    pc_shape gone = {0};
    for (int d = 0; d < in->ndim; d++)
        if (a->kept_shape[d] != in->shape[d])
            gone.dim[gone.ndim++] = d;
    pc_tensor *chosen = pc_logical_or(pc_eq(pc_abs(x), pc__reduce_spread(value, a, in)), pc_isnan(x));
    pc_tensor *part = pc__as_dtype(chosen, in->dtype), *count = gone.ndim ? pc_sum_dims(part, gone, true) : part;
    pc_tensor *kept = pc_reshape(g, pc_shape_of(in->ndim, a->kept_shape));
    return pc_mul(pc_mul(pc_sign(x), part), pc_div(kept, count));
}

/* `slope`, and 0 where the norm is, as relu's gradient has it: two functions of elements, which need no tensor of zeros. NULL flows. */
static pc_tensor *gated(pc_tensor *slope, pc_tensor *norm)
{
    return slope ? pc__call_as(PC__OP_relu_backward, slope, norm, (pc_dtype)slope->dtype) : NULL;
}

/* Of order 3: the sizes of x / norm times these; in float32 where they have 16 bits. */
static pc_tensor *along_cubes(pc_tensor *g, pc_tensor *x, pc_tensor *value, const pc__reduce_attributes *a,
                              const pc__meta *in)
{
    pc__meta wide = *in;
    if (pc__is_half((pc_dtype)in->dtype))
        wide.dtype = PC_F32;
    const pc_dtype dtype = (pc_dtype)wide.dtype;
    value = pc__as_dtype(value, dtype);
    pc_tensor *inverse = gated(value ? pc__with_number(PC__OP_div, value, 1, true) : NULL, value);
    pc_tensor *share = pc_mul(pc__as_dtype(x, dtype), pc__reduce_spread(inverse, a, &wide));
    pc_tensor *each = pc_mul(pc_mul(share, pc_abs(share)), pc__reduce_spread(pc__as_dtype(g, dtype), a, &wide));
    return pc__as_dtype(each, (pc_dtype)in->dtype);
}

/* Of order 2. In float16 g divided by a small norm may be more than there is, though the gradient is not: in float32 then. */
static pc_tensor *along_squares(pc_tensor *g, pc_tensor *x, pc_tensor *value, const pc__reduce_attributes *a,
                                const pc__meta *in)
{
    pc__meta wide = *in;
    if (in->dtype == PC_F16)
        wide.dtype = PC_F32;
    const pc_dtype dtype = (pc_dtype)wide.dtype;
    value = pc__as_dtype(value, dtype);
    pc_tensor *slope = pc__reduce_spread(gated(pc_div(pc__as_dtype(g, dtype), value), value), a, &wide);
    return pc__as_dtype(pc_mul(pc__as_dtype(x, dtype), slope), (pc_dtype)in->dtype);
}

/* d|x| = sign(x); of order 2 x / norm, 0 where that is 0. */
pc_status pc__grad_norm(pc__grad *grad)
{
    const pc__reduce_attributes *a = grad->attributes;
    const pc__meta *in = &grad->in_meta[0];
    pc_tensor *g = pc__as_dtype(grad->out_grad[0], in->dtype), *x = grad->in[0], *each;
    pc_tensor *value = pc__as_dtype(grad->out[0], in->dtype);
    if (a->norm == PC__NORM_SUM)
        each = pc_mul(pc_sign(x), pc__reduce_spread(g, a, in));
    else if (a->norm == PC__NORM_ROOT)
        each = along_squares(g, x, value, a, in);
    else if (a->norm == PC__NORM_CUBE_ROOT)
        each = along_cubes(g, x, value, a, in);
    else
        each = shared(g, x, value, a, in);
    return pc__set_grad(grad, 0, each);
}
