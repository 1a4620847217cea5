/* arith.c: add, sub, mul, div, with numbers too. */
#include "ops/table.h"
#include "tensor/half.h"

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

static bool is_half_number(pc_dtype dtype, double b)
{
    float f = (float)b;
    return (double)(dtype == PC_F16 ? pc__f16_float(pc__f16_of(f)) : pc__bf16_float(pc__bf16_of(f))) == b;
}

static pc_tensor *with_number(int op, pc_tensor *a, double b)
{
    if (!a)
        return pc__call(op, (pc_tensor *[]){a}, 1, NULL, 0);
    pc_dtype dtype = number_dtype(op, a->dtype, b);
    pc_tensor *result = NULL;
    PC_SCOPE {
        if (pc__is_half(dtype) && !is_half_number(dtype, b)) /* the number stays a float's */
            result = pc_keep(pc__as_dtype(with_number(op, pc__as_dtype(a, PC_F32), b), dtype));
        else
            result = pc_keep(binary(op, a, pc_scalar(wrapped(b, dtype), dtype, a->storage->device)));
    }
    return result;
}

pc_tensor *pc_add_scalar(pc_tensor *a, double b)
{
    PC__NEED_OR(NULL, a);
    return with_number(PC__OP_add, a, b);
}

pc_tensor *pc_sub_scalar(pc_tensor *a, double b)
{
    PC__NEED_OR(NULL, a);
    return with_number(PC__OP_sub, a, b);
}

pc_tensor *pc_mul_scalar(pc_tensor *a, double b)
{
    PC__NEED_OR(NULL, a);
    return with_number(PC__OP_mul, a, b);
}

pc_tensor *pc_div_scalar(pc_tensor *a, double b)
{
    PC__NEED_OR(NULL, a);
    return with_number(PC__OP_div, a, b);
}

/* in_grad[i] = value, summed to the shape of input i. */
static pc_status pass(pc__grad *grad, int i, pc_tensor *value)
{
    return pc__set_grad(grad, i, pc__sum_to(value, grad->in_meta[i].ndim, grad->in_meta[i].shape));
}

pc_status pc__grad_add(pc__grad *grad)
{
    for (int i = 0; i < 2; i++)
        if (grad->needs[i])
            PC__TRY(pass(grad, i, grad->out_grad[0]));
    return PC_OK;
}

pc_status pc__grad_sub(pc__grad *grad)
{
    pc_tensor *g = grad->out_grad[0];
    if (grad->needs[0])
        PC__TRY(pass(grad, 0, g));
    return grad->needs[1] ? pass(grad, 1, pc_neg(g)) : PC_OK;
}

pc_status pc__grad_mul(pc__grad *grad)
{
    for (int i = 0; i < 2; i++)
        if (grad->needs[i])
            PC__TRY(pass(grad, i, pc_mul(grad->out_grad[0], grad->in[1 - i])));
    return PC_OK;
}

/* d(a / b) = da / b - a db / b^2 */
pc_status pc__grad_div(pc__grad *grad)
{
    pc_tensor *g = grad->out_grad[0], *a = grad->in[0], *b = grad->in[1];
    if (grad->needs[0])
        PC__TRY(pass(grad, 0, pc_div(g, b)));
    return grad->needs[1] ? pass(grad, 1, pc_neg(pc_div(pc_mul(g, pc_div(a, b)), b))) : PC_OK;
}
