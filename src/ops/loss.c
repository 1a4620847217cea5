/* loss.c: losses, each one fused kernel forward and one backward. Under autocast those of logits read 16 bits as they
 * are, compute in float32, and round the gradient to 16 bits once. */
#include "ops/loss.h"

#include "ops/autocast.h"
#include "ops/table.h"

static pc_dtype dtype_of_loss(pc_dtype dtype)
{
    return pc__autocasting() && pc__is_half(dtype) ? PC_F32 : dtype;
}

static pc_tensor *pair(int op, pc_tensor *x, pc_tensor *y, pc_dtype dtype)
{
    const char *who = pc__ops[op].name;
    if (!pc__same_shape(x, y))
        return pc__null(PC_ERR_SHAPE,
                        "%s: the input has shape %s and the target %s; they must be the same (pc_reshape, or pc_expand "
                        "where one is to repeat)",
                        who, PC__SHAPE_OF(x), PC__SHAPE_OF(y));
    pc_tensor *result = NULL;
    PC_SCOPE {
        x = op == PC__OP_bce_with_logits ? x : pc__as_dtype(x, dtype);
        pc_tensor *in[2] = {pc_contiguous(x), pc_contiguous(pc__as_dtype(y, dtype))};
        result = pc_keep(pc__call(op, in, 2, NULL, 0));
    }
    return result;
}

pc_tensor *pc_bce_with_logits(pc_tensor *x, pc_tensor *y)
{
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, y);
    if (!pc__is_float(x->dtype))
        return pc__null(PC_ERR_DTYPE, "bce_with_logits: the input is %s; it must be floating", pc_dtype_name(x->dtype));
    return pair(PC__OP_bce_with_logits, x, y, dtype_of_loss((pc_dtype)x->dtype));
}

pc_tensor *pc_mse(pc_tensor *x, pc_tensor *y)
{
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, y);
    const pc_dtype dtype = pc__promote(x, y);
    if (!pc__is_float(dtype))
        return pc__null(PC_ERR_DTYPE, "mse: the input and the target are %s and %s; one must be floating",
                        pc_dtype_name(x->dtype), pc_dtype_name(y->dtype));
    return pair(PC__OP_mse, x, y, dtype_of_loss(dtype));
}

pc_status pc__infer_pair_loss(pc_call *call, pc__meta *out)
{
    pc__meta_contiguous(&out[0], call->in[0]->dtype, 0, NULL);
    return PC_OK;
}

static void describe(pc__meta *meta, const pc_tensor *x, pc_dtype dtype, bool wanted)
{
    const int64_t none = 0;
    pc__meta_contiguous(meta, dtype, wanted ? x->ndim : 1, wanted ? x->shape : &none);
}

/* Outputs: the loss, in the target's dtype; its gradient at x in the same; that in x's dtype where this is another, for
 * only a gradient that is not scaled any more may be rounded. No gradient where none is recorded. */
pc_status pc__infer_bce_with_logits(pc_call *call, pc__meta *out)
{
    const pc_tensor *x = call->in[0];
    const pc_dtype dtype = call->in[1]->dtype;
    const bool wanted = pc__tape_wants(call);
    pc__meta_contiguous(&out[0], dtype, 0, NULL);
    describe(&out[1], x, dtype, wanted);
    describe(&out[2], x, (pc_dtype)x->dtype, wanted && x->dtype != dtype);
    return PC_OK;
}

static pc_tensor *times(pc_tensor *t, pc_tensor *g)
{
    return g ? pc_mul(t, g) : t;
}

/* d/dx = (sigmoid(x) - y) / n, of the forward call; d/dy = -x / n. Rounded to x's dtype by the walk if not here. */
pc_status pc__grad_bce_with_logits(pc__grad *grad)
{
    pc_tensor *g = grad->out_grad[0], *x = grad->in[0];
    const bool rounded = !g && grad->in_meta[0].dtype != grad->in_meta[1].dtype;
    if (grad->needs[0])
        PC__TRY(pc__set_grad(grad, 0, times(grad->out[rounded ? 2 : 1], g)));
    if (!grad->needs[1])
        return PC_OK;
    x = pc__as_dtype(x, grad->in_meta[1].dtype);
    return pc__set_grad(grad, 1, times(pc_mul_scalar(x, -1.0 / (double)pc_tensor_count(x)), g));
}

/* d/dx = 2 (x - y) / n */
pc_status pc__grad_mse(pc__grad *grad)
{
    pc_tensor *x = grad->in[0], *y = grad->in[1];
    pc_tensor *dx = pc_mul(pc_mul_scalar(pc_sub(x, y), 2.0 / (double)pc_tensor_count(x)), grad->out_grad[0]);
    if (grad->needs[0])
        PC__TRY(pc__set_grad(grad, 0, dx));
    return grad->needs[1] ? pc__set_grad(grad, 1, pc_neg(dx)) : PC_OK;
}

static pc_tensor *fused(pc_tensor *x, pc_tensor *labels, pc__loss_attributes a)
{
    a.dtype = dtype_of_loss((pc_dtype)x->dtype);
    return PC__CALL(cross_entropy, &a, x, labels);
}

static pc_tensor *mean_of_rows(pc_tensor *x, pc_tensor *labels, bool none_is_0)
{
    if (x->ndim != 2 || labels->ndim != 1 || x->shape[0] != labels->shape[0])
        return pc__null(PC_ERR_SHAPE,
                        "cross_entropy: the input has shape %s and the labels %s; they must be [n, classes] "
                        "and [n]",
                        PC__SHAPE_OF(x), PC__SHAPE_OF(labels));
    if (!pc__is_float(x->dtype) || labels->dtype != PC_I64)
        return pc__null(PC_ERR_DTYPE,
                        "cross_entropy: the input is %s and the labels are %s; they must be floating and int64",
                        pc_dtype_name(x->dtype), pc_dtype_name(labels->dtype));
    pc_tensor *result = NULL;
    PC_SCOPE {
        const pc__loss_attributes a = {.ignored = PC__IGNORED, .none_is_0 = none_is_0};
        pc_tensor *rows = pc_contiguous(x), *numbers = pc_contiguous(labels);
        result = rows && numbers ? pc_keep(fused(rows, numbers, a)) : NULL;
    }
    return result;
}

pc_tensor *pc_cross_entropy(pc_tensor *x, pc_tensor *labels)
{
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, labels);
    return mean_of_rows(x, labels, false);
}

pc_tensor *pc__cross_entropy_or_0(pc_tensor *x, pc_tensor *labels)
{
    return x && labels ? mean_of_rows(x, labels, true) : NULL;
}

pc_tensor *pc__fused_cross_entropy(pc_tensor *x, pc_tensor *labels, int64_t ignored, bool is_sum)
{
    return x && labels ? fused(x, labels, (pc__loss_attributes){.ignored = ignored, .is_sum = is_sum}) : NULL;
}

/* Outputs: the loss; of each row its maximum and the logarithm of the sum of exp(x - it), from which and x the gradient
 * is made: less to write and keep than the probabilities. Behind the rows, what the sum was divided by. */
pc_status pc__infer_cross_entropy(pc_call *call, pc__meta *out)
{
    const pc__loss_attributes *a = call->attributes;
    const pc_tensor *x = call->in[0];
    const int64_t shape[2] = {x->shape[0] + 1, 2};
    pc__meta_contiguous(&out[0], a->dtype, 0, NULL);
    pc__meta_contiguous(&out[1], x->dtype == PC_F64 ? PC_F64 : PC_F32, 2, shape);
    return PC_OK;
}

/* Of the logits, those numbers, the labels and the gradient of the loss. */
pc_status pc__infer_cross_entropy_backward(pc_call *call, pc__meta *out)
{
    const pc__loss_attributes *a = call->attributes;
    pc__meta_contiguous(&out[0], a->dtype, 2, call->in[0]->shape);
    return PC_OK;
}

pc_status pc__grad_cross_entropy(pc__grad *grad)
{
    const pc__loss_attributes *forward = grad->attributes;
    pc__loss_attributes a = *forward;
    a.dtype = grad->in_meta[0].dtype;
    return pc__set_grad(
        grad, 0, PC__CALL(cross_entropy_backward, &a, grad->in[0], grad->out[1], grad->in[1], grad->out_grad[0]));
}
