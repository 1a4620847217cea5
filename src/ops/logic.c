/* logic.c: bools and bits, and what kind of number a number is. */
#include "ops/number.h"
#include "ops/table.h"

#include <math.h>

static pc_tensor *zero_of(pc_tensor *a)
{
    return pc_scalar(0, a->dtype, a->storage->device);
}

/* a as bool: whether it is not 0. NULL flows. */
static pc_tensor *truth(pc_tensor *a)
{
    return !a || a->dtype == PC_BOOL ? a : pc_ne(a, zero_of(a));
}

pc_tensor *pc_logical_not(pc_tensor *a)
{
    PC__NEED_OR(NULL, a);
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(pc_eq(a, zero_of(a)));
    }
    return result;
}

/* Of two bools. */
static pc_tensor *of_truths(pc_tensor *(*function)(pc_tensor *, pc_tensor *), pc_tensor *a, pc_tensor *b)
{
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(function(truth(a), truth(b)));
    }
    return result;
}

pc_tensor *pc_logical_and(pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    return of_truths(pc_mul, a, b);
}

pc_tensor *pc_logical_or(pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    return of_truths(pc_add, a, b);
}

pc_tensor *pc_logical_xor(pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    return of_truths(pc_ne, a, b);
}

/* Bits of integers; bools as logic has them, by `of_bools`. */
static pc_tensor *bitwise(int op, pc_tensor *(*of_bools)(pc_tensor *, pc_tensor *), pc_tensor *a, pc_tensor *b)
{
    const pc_dtype dtype = pc__promote(a, b);
    if (pc__is_float(dtype))
        return pc__null(PC_ERR_DTYPE, "%s: of %s; integers and bools have bits that count", pc__ops[op].name,
                        pc_dtype_name(dtype));
    return dtype == PC_BOOL ? of_bools(a, b) : pc__call_as(op, a, b, dtype);
}

pc_tensor *pc_bitwise_and(pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    return bitwise(PC__OP_bitwise_and, pc_mul, a, b);
}

pc_tensor *pc_bitwise_or(pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    return bitwise(PC__OP_bitwise_or, pc_add, a, b);
}

pc_tensor *pc_bitwise_xor(pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    return bitwise(PC__OP_bitwise_xor, pc_ne, a, b);
}

pc_tensor *pc_bitwise_not(pc_tensor *a)
{
    PC__NEED_OR(NULL, a);
    if (pc__is_float(a->dtype))
        return pc__null(PC_ERR_DTYPE, "bitwise_not: of %s; integers and bools have bits that count",
                        pc_dtype_name(a->dtype));
    return a->dtype == PC_BOOL ? pc_logical_not(a) : pc__with_number(PC__OP_bitwise_xor, a, -1, false);
}

pc_tensor *pc_isnan(pc_tensor *a)
{
    PC__NEED_OR(NULL, a);
    return pc_ne(a, a);
}

pc_tensor *pc_isfinite(pc_tensor *a)
{
    PC__NEED_OR(NULL, a);
    if (!pc__is_float(a->dtype))
        return pc_eq(a, a);
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(pc_lt(pc_abs(a), pc_scalar(INFINITY, a->dtype, a->storage->device)));
    }
    return result;
}

#define NO_GRADIENT(name)                                                                                              \
    pc_status pc__grad_##name(pc__grad *grad)                                                                          \
    {                                                                                                                  \
        return pc__no_gradient(grad);                                                                                  \
    }
NO_GRADIENT(bitwise_and)
NO_GRADIENT(bitwise_or)
NO_GRADIENT(bitwise_xor)
