/* linear.c: activation(x w^T + bias) in one kernel. */
#include "ops/linear.h"

#include "ops/activation.h"
#include "ops/autocast.h"
#include "ops/matmul.h"
#include "ops/table.h"

pc_status pc__infer_linear(pc_call *call, pc__meta *out)
{
    const pc_tensor *x = call->in[0], *w = call->in[1];
    pc__meta_contiguous(&out[0], x->dtype, 2, (int64_t[]){x->shape[0], w->shape[0]});
    return PC_OK;
}

static pc_status check(const pc_tensor *x, const pc_tensor *w, const pc_tensor *bias)
{
    if (x->ndim < 1 || w->ndim != 2 || x->shape[x->ndim - 1] != w->shape[1])
        return pc__fail(PC_ERR_SHAPE, "linear: an input of shape %s does not fit a weight of shape %s ([out, in])",
                        PC__SHAPE_OF(x), PC__SHAPE_OF(w));
    if (x->dtype != w->dtype || !pc__is_float(x->dtype) || (bias && bias->dtype != w->dtype))
        return pc__fail(PC_ERR_DTYPE,
                        "linear: input %s, weight %s, bias %s: all must be of one floating dtype (pc_cast)",
                        pc_dtype_name(x->dtype), pc_dtype_name(w->dtype), pc_dtype_name(bias ? bias->dtype : w->dtype));
    return PC_OK;
}

static pc_shape result_shape(const pc_tensor *x, const pc_tensor *w)
{
    pc_shape shape = pc_tensor_shape(x);
    shape.dim[shape.ndim - 1] = w->shape[0];
    return shape;
}

static pc_tensor *linear(pc_tensor *x, pc_tensor *weight, pc_tensor *bias, pc_activation_kind activation);

/* A bias of another shape than [out]: one number for all outputs, or one that differs from row to row, which is added
 * behind the kernel. It broadcasts to the result, as in PyTorch, and does not make it larger. */
static pc_tensor *with_wide_bias(pc_tensor *x, pc_tensor *weight, pc_tensor *bias, pc_activation_kind activation)
{
    const pc_shape shape = result_shape(x, weight);
    bool fits = bias->ndim <= shape.ndim;
    for (int i = 1; fits && i <= bias->ndim; i++)
        fits = bias->shape[bias->ndim - i] == 1 || bias->shape[bias->ndim - i] == shape.dim[shape.ndim - i];
    if (!fits)
        return pc__null(PC_ERR_SHAPE, "linear: a bias of shape %s does not fit a weight of shape %s",
                        PC__SHAPE_OF(bias), PC__SHAPE_OF(weight));
    pc_tensor *result = NULL;
    PC_SCOPE {
        if (bias->ndim < 2)
            result = linear(x, weight, pc_expand(bias, PC_SHAPE(weight->shape[0])), activation);
        else
            result = pc__activated(activation, pc_add(linear(x, weight, NULL, PC_ACTIVATION_NONE), bias));
        result = pc_keep(result);
    }
    return result;
}

/* The activation as an op of its own. */
static pc_tensor *then(pc_tensor *x, pc_tensor *weight, pc_tensor *bias, pc_activation_kind activation)
{
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(pc__activated(activation, linear(x, weight, bias, PC_ACTIVATION_NONE)));
    }
    return result;
}

static pc_tensor *linear(pc_tensor *x, pc_tensor *weight, pc_tensor *bias, pc_activation_kind activation)
{
    const pc__activation_row *row = pc__activation_row_of(activation);
    pc_tensor *in[3] = {x, weight, bias};
    pc__linear_attributes attributes = {.activation = activation};
    if (!x || !weight)
        return pc__call(PC__OP_linear, in, 2, NULL, 0);
    if (!row)
        return pc__null(PC_ERR_ARGUMENT, "linear: there is no activation %d (pc_activation_kind)", (int)activation);
    if (!row->fused)
        return then(x, weight, bias, activation);
    if (check(x, weight, bias) != PC_OK)
        return NULL;
    if (bias && (bias->ndim != 1 || bias->shape[0] != weight->shape[0]))
        return with_wide_bias(x, weight, bias, activation);
    if (x->ndim == 2 && (!bias || pc__is_contiguous(bias)))
        return pc__call(PC__OP_linear, in, bias ? 3 : 2, &attributes, sizeof attributes);
    pc_tensor *result = NULL;
    PC_SCOPE {
        in[2] = bias ? pc_contiguous(bias) : NULL;
        in[0] = pc_reshape(x, PC_SHAPE(pc__count(x->ndim - 1, x->shape), x->shape[x->ndim - 1]));
        pc_tensor *y = pc__call(PC__OP_linear, in, bias ? 3 : 2, &attributes, sizeof attributes);
        result = pc_keep(pc_reshape(y, result_shape(x, weight)));
    }
    return result;
}

pc_tensor *pc_fn_linear(pc_tensor *x, pc_tensor *weight, pc_tensor *bias, pc_activation_kind activation)
{
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, weight);
    if (!pc__autocasting())
        return linear(x, weight, bias, activation);
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *b = pc__autocast_down(bias);
        if (b || !bias)
            result = pc_keep(linear(pc__autocast_down(x), pc__autocast_down(weight), b, activation));
    }
    return result;
}

pc_status pc__infer_linear_backward(pc_call *call, pc__meta *out)
{
    const pc_tensor *dy = call->in[0], *x = call->in[2];
    const pc__linear_backward_attributes *a = call->attributes;
    pc_dtype wide = pc__is_half((pc_dtype)x->dtype) && !a->narrow ? PC_F32 : x->dtype;
    pc__meta_contiguous(&out[0], x->dtype, 2, call->n_in > 3 ? x->shape : (int64_t[]){0, 0});
    pc__meta_contiguous(&out[1], wide, 2, (int64_t[]){dy->shape[1], x->shape[1]});
    pc__meta_contiguous(&out[2], wide, 1, &dy->shape[1]);
    return PC_OK;
}

static bool is_fused(const pc__grad *grad)
{
    const int64_t *x = grad->in_meta[0].shape, outputs = grad->in_meta[1].shape[0];
    const pc_dtype dtype = (pc_dtype)grad->in_meta[0].dtype;
    return grad->needs[1] && dtype != PC_F64 && pc__linear_is_small(x[0], outputs, x[1]) &&
           !(grad->device.type == PC_CUDA && pc__linear_has_good_products(dtype, outputs, x[1]));
}

static pc_status fused(pc__grad *grad)
{
    pc__linear_backward_attributes a = *(const pc__linear_attributes *)grad->attributes;
    pc_tensor *x = grad->in[0], *out[PC__OUT_MAX];
    const bool near = x->strides[1] == 1 && x->strides[0] <= INT32_MAX / x->shape[0]; /* kernels count in 32 bits */
    pc_tensor *in[4] = {pc_contiguous(grad->out_grad[0]), grad->out[0], near ? x : pc_contiguous(x),
                        grad->needs[0] ? pc_contiguous(grad->in[1]) : NULL};
    a.narrow = !grad->wider[1] && !(grad->n_in > 2 && grad->wider[2]);
    PC__TRY(pc__call_all(PC__OP_linear_backward, in, grad->needs[0] ? 4 : 3, &a, sizeof a, out));
    for (int i = 0; i < grad->n_in; i++)
        if (grad->needs[i])
            PC__TRY(pc__set_grad(grad, i, out[i]));
    return PC_OK;
}

pc_status pc__grad_linear(pc__grad *grad)
{
    const pc__linear_attributes *a = grad->attributes;
    if (is_fused(grad))
        return fused(grad);
    pc_tensor *g = pc__activation_backward(a->activation, grad->out_grad[0], grad->out[0]);
    if (grad->needs[0])
        PC__TRY(pc__set_grad(grad, 0, pc__matmul_as(g, grad->in[1], &grad->in_meta[0])));
    if (grad->needs[1]) {
        pc_tensor *turned = pc_transpose(g, 0, 1), *x = grad->in[0];
        PC__TRY(pc__set_grad(grad, 1, grad->wider[1] ? pc__matmul_wide(turned, x) : pc_matmul(turned, x)));
    }
    if (grad->n_in < 3 || !grad->needs[2])
        return PC_OK;
    const pc_shape rows = PC_SHAPE(0);
    return pc__set_grad(grad, 2, grad->wider[2] ? pc__sum_wide(g, rows) : pc_sum_dims(g, rows, false));
}
