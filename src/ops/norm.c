/* norm.c: normalisations of rows: layer_norm and rms_norm. */
#include "ops/norm.h"

#include "ops/autocast.h"
#include "ops/table.h"

#include <math.h>

pc_status pc__norm_dtype_check(const char *who, const pc_tensor *x, const pc_tensor *parameter)
{
    if (!pc__is_float(x->dtype))
        return pc__fail(PC_ERR_DTYPE, "%s: the input is %s; it must be floating (pc_cast)", who,
                        pc_dtype_name(x->dtype));
    if (!parameter || parameter->dtype == x->dtype || (pc__is_half((pc_dtype)x->dtype) && parameter->dtype == PC_F32))
        return PC_OK;
    return pc__fail(
        PC_ERR_DTYPE,
        "%s: the input is %s and a parameter %s; parameters are like it, or float32 beside 16 bits (pc_cast)", who,
        pc_dtype_name(x->dtype), pc_dtype_name(parameter->dtype));
}

static bool ends_in(const pc_tensor *x, pc_shape shape)
{
    for (int i = 0; i < shape.ndim; i++)
        if (shape.ndim > x->ndim || x->shape[x->ndim - shape.ndim + i] != shape.dim[i])
            return false;
    return shape.ndim > 0;
}

static pc_status check_parameter(const char *who, const pc_tensor *x, const pc_tensor *parameter, pc_shape shape)
{
    if (parameter && (parameter->ndim != shape.ndim || !ends_in(parameter, shape)))
        return pc__fail(PC_ERR_SHAPE, "%s: a parameter of shape %s; it must have the normalized shape %s", who,
                        PC__SHAPE_OF(parameter), pc__shape_format(shape.ndim, shape.dim).s);
    return pc__norm_dtype_check(who, x, parameter);
}

static pc_status check(const char *who, const pc_tensor *x, pc_shape shape, const pc_tensor *weight,
                       const pc_tensor *bias, double eps)
{
    PC__TRY(pc__ndim_check(who, shape.ndim));
    if (!ends_in(x, shape))
        return pc__fail(
            PC_ERR_SHAPE,
            "%s: an input of shape %s does not end in the normalized shape %s, which has a dimension or more", who,
            PC__SHAPE_OF(x), pc__shape_format(shape.ndim, shape.dim).s);
    if (pc__count(shape.ndim, shape.dim) > INT32_MAX) /* kernels count them by 32 bits */
        return pc__fail(PC_ERR_SHAPE, "%s: the normalized shape %s has 2^31 elements or more", who,
                        pc__shape_format(shape.ndim, shape.dim).s);
    if (!(eps >= 0) || isinf(eps))
        return pc__fail(PC_ERR_ARGUMENT, "%s: epsilon is %g; it must be finite and at least 0", who, eps);
    PC__TRY(check_parameter(who, x, weight, shape));
    return check_parameter(who, x, bias, shape);
}

static pc_tensor *normalized(int op, pc_tensor *x, pc_shape shape, pc_tensor *weight, pc_tensor *bias, double eps)
{
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *in[3] = {pc_contiguous(pc__autocast_up(x))}, *parameters[2] = {weight, bias};
        int n_in = 1;
        for (int i = 0; i < 2; i++)
            if (parameters[i])
                in[n_in++] = pc_contiguous(pc__autocast_up(parameters[i]));
        const pc__layer_norm_attributes attributes = {.n = pc__count(shape.ndim, shape.dim),
                                                      .eps = eps,
                                                      .dims = shape.ndim,
                                                      .centered = op == PC__OP_layer_norm,
                                                      .has_weight = weight,
                                                      .has_bias = bias};
        result = pc_keep(pc__call(op, in, n_in, &attributes, sizeof attributes));
    }
    return result;
}

pc_tensor *pc_fn_layer_norm(pc_tensor *x, pc_shape shape, pc_tensor *weight, pc_tensor *bias, double eps)
{
    PC__NEED_OR(NULL, x);
    return check("layer_norm", x, shape, weight, bias, eps) == PC_OK
               ? normalized(PC__OP_layer_norm, x, shape, weight, bias, eps)
               : NULL;
}

pc_tensor *pc_fn_rms_norm(pc_tensor *x, pc_shape shape, pc_tensor *weight, double eps)
{
    PC__NEED_OR(NULL, x);
    return check("rms_norm", x, shape, weight, NULL, eps) == PC_OK
               ? normalized(PC__OP_rms_norm, x, shape, weight, NULL, eps)
               : NULL;
}

pc_status pc__infer_layer_norm(pc_call *call, pc__meta *out)
{
    const pc__layer_norm_attributes *a = call->attributes;
    const pc_tensor *x = call->in[0];
    const int64_t shape[2] = {a->centered ? 2 : 1, pc__tape_wants(call) ? pc__count(x->ndim - a->dims, x->shape) : 0};
    pc__meta_like(&out[0], x, (pc_dtype)x->dtype);
    pc__meta_contiguous(&out[1], pc__norm_dtype(x->dtype), 2, shape);
    return PC_OK;
}

pc_status pc__infer_layer_norm_backward(pc_call *call, pc__meta *out)
{
    const pc__layer_norm_attributes *a = call->attributes;
    const pc_tensor *x = call->in[1];
    const int64_t none = 0;
    if (a->needs[0])
        pc__meta_like(&out[0], x, (pc_dtype)x->dtype);
    else
        pc__meta_contiguous(&out[0], (pc_dtype)x->dtype, 1, &none);
    for (int i = 1; i < 3; i++)
        pc__meta_contiguous(&out[i], (pc_dtype)a->to[i - 1], a->needs[i] ? a->dims : 1,
                            a->needs[i] ? x->shape + x->ndim - a->dims : &none);
    return PC_OK;
}

pc_status pc__grad_layer_norm(pc__grad *grad)
{
    pc__layer_norm_attributes a = *(const pc__layer_norm_attributes *)grad->attributes;
    const int place[3] = {0, a.has_weight ? 1 : -1, a.has_bias ? 1 + a.has_weight : -1};
    pc_tensor *in[4] = {pc_contiguous(grad->out_grad[0]), grad->in[0], grad->out[1], grad->in[1]};
    pc_tensor *out[PC__OUT_MAX];
    for (int i = 0; i < 3; i++)
        a.needs[i] = place[i] >= 0 && grad->needs[place[i]];
    for (int i = 0; i < 2; i++)
        a.to[i] = pc__norm_parameter_dtype(grad, place[1 + i]);
    PC__TRY(pc__call_all(PC__OP_layer_norm_backward, in, 3 + a.has_weight, &a, sizeof a, out));
    for (int i = 0; i < 3; i++)
        if (a.needs[i])
            PC__TRY(pc__set_grad(grad, place[i], out[i]));
    return PC_OK;
}
