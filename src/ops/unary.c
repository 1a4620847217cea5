/* unary.c: functions of one tensor, element by element. */
#include "ops/autocast.h"
#include "ops/table.h"

static pc_tensor *unary(int op, pc_tensor *a, bool keeps_integers)
{
    if (!a || pc__is_float(a->dtype) || (keeps_integers && a->dtype != PC_BOOL))
        return pc__call(op, (pc_tensor *[]){a}, 1, NULL, 0);
    if (keeps_integers)
        return pc__null(PC_ERR_DTYPE, "%s: a bool tensor has no sign; cast it first", pc__ops[op].name);
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(pc__call(op, (pc_tensor *[]){pc__as_dtype(a, PC_F32)}, 1, NULL, 0));
    }
    return result;
}

pc_tensor *pc_neg(pc_tensor *a)
{
    PC__NEED_OR(NULL, a);
    return unary(PC__OP_neg, a, true);
}

/* In float32 where the thread casts. */
static pc_tensor *exact(int op, pc_tensor *a)
{
    if (!pc__autocasting())
        return unary(op, a, false);
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(unary(op, pc__autocast_up(a), false));
    }
    return result;
}

pc_tensor *pc_exp(pc_tensor *a)
{
    PC__NEED_OR(NULL, a);
    return exact(PC__OP_exp, a);
}

pc_tensor *pc_log(pc_tensor *a)
{
    PC__NEED_OR(NULL, a);
    return exact(PC__OP_log, a);
}

pc_tensor *pc_sqrt(pc_tensor *a)
{
    PC__NEED_OR(NULL, a);
    return unary(PC__OP_sqrt, a, false);
}

pc_tensor *pc_relu(pc_tensor *a)
{
    PC__NEED_OR(NULL, a);
    return unary(PC__OP_relu, a, true);
}

pc_tensor *pc_sigmoid(pc_tensor *a)
{
    PC__NEED_OR(NULL, a);
    return unary(PC__OP_sigmoid, a, false);
}

pc_tensor *pc_tanh(pc_tensor *a)
{
    PC__NEED_OR(NULL, a);
    return unary(PC__OP_tanh, a, false);
}

pc_status pc__grad_neg(pc__grad *grad)
{
    return pc__set_grad(grad, 0, pc_neg(grad->out_grad[0]));
}

pc_status pc__grad_exp(pc__grad *grad)
{
    return pc__set_grad(grad, 0, pc_mul(grad->out_grad[0], grad->out[0]));
}

pc_status pc__grad_log(pc__grad *grad)
{
    return pc__set_grad(grad, 0, pc_div(grad->out_grad[0], grad->in[0]));
}

/* d sqrt(a) = da / (2 sqrt(a)) */
pc_status pc__grad_sqrt(pc__grad *grad)
{
    return pc__set_grad(grad, 0, pc_div(grad->out_grad[0], pc_mul_scalar(grad->out[0], 2)));
}

/* Fused: the gradient from the output's gradient g and the output y. */
static pc_status from_output(pc__grad *grad, int op)
{
    pc_tensor *in[2] = {grad->out_grad[0], grad->out[0]};
    return pc__set_grad(grad, 0, pc__call(op, in, 2, NULL, 0));
}

pc_status pc__grad_relu(pc__grad *grad)
{
    return from_output(grad, PC__OP_relu_backward);
}

pc_status pc__grad_sigmoid(pc__grad *grad)
{
    return from_output(grad, PC__OP_sigmoid_backward);
}

pc_status pc__grad_tanh(pc__grad *grad)
{
    return from_output(grad, PC__OP_tanh_backward);
}
