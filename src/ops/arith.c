/* arith.c: add, sub, mul, div, with numbers too. */
#include "ops/number.h"
#include "ops/table.h"

#include <math.h>

/* Both inputs in their common dtype (for div a floating one), then the op. */
static pc_tensor *binary(int op, pc_tensor *a, pc_tensor *b)
{
    if (!a || !b)
        return pc__call(op, (pc_tensor *[]){a, b}, 2, NULL, 0);
    pc_dtype dtype = pc__promote(a, b);
    if (op == PC__OP_div && !pc__is_float(dtype))
        dtype = PC_F32;
    if (op == PC__OP_sub && dtype == PC_BOOL)
        return pc__null(PC_ERR_DTYPE, "sub: bool tensors cannot be subtracted; use pc_ne, or cast them first");
    return pc__call_as(op, a, b, dtype);
}

pc_tensor *pc_add(pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    return binary(PC__OP_add, a, b);
}

pc_tensor *pc_sub(pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    return binary(PC__OP_sub, a, b);
}

pc_tensor *pc_mul(pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    return binary(PC__OP_mul, a, b);
}

pc_tensor *pc_div(pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    return binary(PC__OP_div, a, b);
}

/* The dtype in which a number meets a tensor. */
static pc_dtype number_dtype(int op, pc_dtype dtype, double b)
{
    if (pc__is_float(dtype))
        return dtype;
    if (op == PC__OP_div || b != floor(b) || fabs(b) >= 0x1p63)
        return PC_F32;
    return dtype == PC_BOOL ? PC_I64 : dtype;
}

/* What is left of a whole number in a dtype of integers, where what is computed wraps. */
static double wrapped(double b, pc_dtype dtype)
{
    return dtype == PC_U8 ? (uint8_t)(int64_t)b : dtype == PC_I32 ? (int32_t)(int64_t)b : b;
}

/* The number as the arithmetic of a dtype has it. */
static double rounded(double b, pc_dtype dtype)
{
    return dtype == PC_F64 ? b : pc__is_float(dtype) ? (double)(float)b : wrapped(b, dtype);
}

pc_tensor *pc__with_number(int op, pc_tensor *a, double b, bool first)
{
    const pc_dtype dtype = a ? number_dtype(op, a->dtype, b) : PC_F32;
    const pc__number number = {.value = rounded(b, dtype), .first = first};
    if (!a || a->dtype == dtype)
        return pc__call(op, &a, 1, &number, sizeof number);
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *cast = pc__as_dtype(a, dtype);
        result = pc_keep(pc__call(op, &cast, 1, &number, sizeof number));
    }
    return result;
}

pc_tensor *pc__with_parameter(int op, pc_tensor *a, pc_tensor *b, double parameter)
{
    const pc__number number = {.value = parameter};
    if (!a || !b || a->dtype == b->dtype)
        return pc__call(op, (pc_tensor *[]){a, b}, 2, &number, sizeof number);
    const pc_dtype dtype = pc__promote(a, b);
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *in[2] = {pc__as_dtype(a, dtype), pc__as_dtype(b, dtype)};
        result = pc_keep(pc__call(op, in, 2, &number, sizeof number));
    }
    return result;
}

pc_tensor *pc_add_scalar(pc_tensor *a, double b)
{
    PC__NEED_OR(NULL, a);
    return pc__with_number(PC__OP_add, a, b, false);
}

pc_tensor *pc_sub_scalar(pc_tensor *a, double b)
{
    PC__NEED_OR(NULL, a);
    return pc__with_number(PC__OP_sub, a, b, false);
}

pc_tensor *pc_mul_scalar(pc_tensor *a, double b)
{
    PC__NEED_OR(NULL, a);
    return pc__with_number(PC__OP_mul, a, b, false);
}

pc_tensor *pc_div_scalar(pc_tensor *a, double b)
{
    PC__NEED_OR(NULL, a);
    return pc__with_number(PC__OP_div, a, b, false);
}

/* The number that the call had for an input, or NULL. */
static const pc__number *number_of(const pc__grad *grad)
{
    return grad->n_in == 1 ? grad->attributes : NULL;
}

/* in_grad[i] = value, summed to the shape of input i. What comes back through a number may be wider than the input. */
static pc_status pass(pc__grad *grad, int i, pc_tensor *value)
{
    const pc__meta *meta = &grad->in_meta[i];
    if (number_of(grad))
        return pc__set_grad(grad, i, pc__as_dtype(value, (pc_dtype)meta->dtype));
    return pc__set_grad(grad, i, pc__sum_to(value, meta->ndim, meta->shape));
}

pc_status pc__grad_add(pc__grad *grad)
{
    for (int i = 0; i < grad->n_in; i++)
        if (grad->needs[i])
            PC__TRY(pass(grad, i, grad->out_grad[0]));
    return PC_OK;
}

pc_status pc__grad_sub(pc__grad *grad)
{
    pc_tensor *g = grad->out_grad[0];
    const pc__number *number = number_of(grad);
    if (number)
        return pass(grad, 0, number->first ? pc_neg(g) : g);
    if (grad->needs[0])
        PC__TRY(pass(grad, 0, g));
    return grad->needs[1] ? pass(grad, 1, pc_neg(g)) : PC_OK;
}

pc_status pc__grad_mul(pc__grad *grad)
{
    const pc__number *number = number_of(grad);
    if (number)
        return pass(grad, 0, pc_mul_scalar(grad->out_grad[0], number->value));
    for (int i = 0; i < 2; i++)
        if (grad->needs[i])
            PC__TRY(pass(grad, i, pc_mul(grad->out_grad[0], grad->in[1 - i])));
    return PC_OK;
}

/* d(a / b) = da / b - a db / b^2 */
pc_status pc__grad_div(pc__grad *grad)
{
    pc_tensor *g = grad->out_grad[0], *a = grad->in[0], *b = grad->in[grad->n_in - 1];
    const pc__number *number = number_of(grad);
    if (number && !number->first)
        return pass(grad, 0, pc_div_scalar(g, number->value));
    if (!number && grad->needs[0])
        PC__TRY(pass(grad, 0, pc_div(g, b)));
    if (!grad->needs[grad->n_in - 1])
        return PC_OK;
    /* Neither g a nor a / b^2 need be a number that float16 has where the gradient is. */
    const int dtype = b->dtype, wide = dtype == PC_F16 ? PC_F32 : dtype;
    b = pc__as_dtype(b, (pc_dtype)wide);
    if (!number)
        a = pc__as_dtype(a, (pc_dtype)wide);
    pc_tensor *ratio = number ? pc__with_number(PC__OP_div, b, number->value, true) : pc_div(a, b);
    pc_tensor *slope = pc_neg(pc_div(pc_mul(pc__as_dtype(g, (pc_dtype)wide), ratio), b));
    return pass(grad, grad->n_in - 1, pc__as_dtype(slope, (pc_dtype)dtype));
}
