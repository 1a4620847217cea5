/* compare.c: comparisons, and choice by a condition. */
#include "ops/table.h"

static pc_tensor *compare(int op, pc_tensor *a, pc_tensor *b)
{
    return a && b ? pc__call_as(op, a, b, pc__promote(a, b)) : pc__call(op, (pc_tensor *[]){a, b}, 2, NULL, 0);
}

pc_status pc__infer_compare(pc_call *call, pc__meta *out)
{
    PC__TRY(pc__infer_binary(call, out));
    out[0].dtype = PC_BOOL;
    return PC_OK;
}

pc_tensor *pc_eq(pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    return compare(PC__OP_eq, a, b);
}

pc_tensor *pc_ne(pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    return compare(PC__OP_ne, a, b);
}

pc_tensor *pc_lt(pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    return compare(PC__OP_lt, a, b);
}

pc_tensor *pc_le(pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    return compare(PC__OP_le, a, b);
}

pc_tensor *pc_gt(pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    return compare(PC__OP_gt, a, b);
}

pc_tensor *pc_ge(pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    return compare(PC__OP_ge, a, b);
}

pc_tensor *pc_where(pc_tensor *condition, pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, condition);
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    if (condition->dtype != PC_BOOL)
        return pc__null(PC_ERR_DTYPE, "where: the condition is %s; it must be bool (compare, or pc_cast to PC_BOOL)",
                        pc_dtype_name(condition->dtype));
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_dtype dtype = pc__promote(a, b);
        result = pc_keep(PC__CALL_PLAIN(where, condition, pc__as_dtype(a, dtype), pc__as_dtype(b, dtype)));
    }
    return result;
}

/* In the memory order of an operand that has the result's shape, where one has. */
pc_status pc__infer_where(pc_call *call, pc__meta *out)
{
    const pc_tensor *c = call->in[0], *a = call->in[1], *b = call->in[2];
    pc_tensor both = {.dtype = a->dtype};
    int ndim;
    PC__TRY(pc__broadcast("where", a, b, &ndim, both.shape));
    both.ndim = (uint8_t)ndim;
    int64_t shape[PC_MAX_DIMS];
    PC__TRY(pc__broadcast("where", c, &both, &ndim, shape));
    const pc_tensor *operands[] = {a, b, c}, *whole = NULL;
    for (int i = 0; i < 3 && !whole; i++)
        if (operands[i]->ndim == ndim && memcmp(operands[i]->shape, shape, (size_t)ndim * sizeof *shape) == 0 &&
            pc__is_dense(operands[i]))
            whole = operands[i];
    if (whole)
        pc__meta_like(&out[0], whole, (pc_dtype)a->dtype);
    else
        pc__meta_contiguous(&out[0], (pc_dtype)a->dtype, ndim, shape);
    return PC_OK;
}

pc_status pc__grad_where(pc__grad *grad)
{
    pc_tensor *g = grad->out_grad[0];
    pc_tensor *zero = pc_scalar(0, g->dtype, grad->device);
    for (int i = 1; i <= 2; i++)
        if (grad->needs[i]) {
            pc_tensor *part = i == 1 ? pc_where(grad->in[0], g, zero) : pc_where(grad->in[0], zero, g);
            PC__TRY(pc__set_grad(grad, i, pc__sum_to(part, grad->in_meta[i].ndim, grad->in_meta[i].shape)));
        }
    return PC_OK;
}
