/* leaky.c: activations that go on below 0, by a number of their own. */
#include "ops/number.h"
#include "ops/table.h"

static pc_tensor *leaky(int op, pc_tensor *a, double number)
{
    if (pc__is_float(a->dtype))
        return pc__with_number(op, a, number, false);
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(pc__with_number(op, pc__as_dtype(a, PC_F32), number, false));
    }
    return result;
}

pc_tensor *pc_leaky_relu(pc_tensor *a, double slope)
{
    PC__NEED_OR(NULL, a);
    return leaky(PC__OP_leaky_relu, a, slope);
}

pc_tensor *pc_elu(pc_tensor *a, double alpha)
{
    PC__NEED_OR(NULL, a);
    return leaky(PC__OP_elu, a, alpha);
}

static pc_status through(pc__grad *grad, int backward)
{
    const pc__number *number = grad->attributes;
    return pc__set_grad(grad, 0, pc__with_parameter(backward, grad->out_grad[0], grad->in[0], number->value));
}

pc_status pc__grad_leaky_relu(pc__grad *grad)
{
    return through(grad, PC__OP_leaky_relu_backward);
}

pc_status pc__grad_elu(pc__grad *grad)
{
    return through(grad, PC__OP_elu_backward);
}
