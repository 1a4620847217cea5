/* extremes.c: the smaller and the larger of two, and numbers kept between bounds. */
#include "ops/number.h"
#include "ops/table.h"

#include <math.h>

/* Of bools the smaller is "and", the larger "or". */
static pc_tensor *extreme(int op, pc_tensor *a, pc_tensor *b)
{
    const pc_dtype dtype = pc__promote(a, b);
    if (dtype != PC_BOOL)
        return pc__call_as(op, a, b, dtype);
    return op == PC__OP_minimum ? pc_mul(a, b) : pc_add(a, b);
}

pc_tensor *pc_minimum(pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    return extreme(PC__OP_minimum, a, b);
}

pc_tensor *pc_maximum(pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    return extreme(PC__OP_maximum, a, b);
}

static bool is_none(double bound, bool is_low)
{
    return isinf(bound) && (bound < 0) == is_low;
}

/* The dtype in which a tensor meets a bound: that of arithmetic with a number. */
static pc_dtype bounded_dtype(pc_dtype dtype, double bound, bool is_low)
{
    if (pc__is_float(dtype) || is_none(bound, is_low))
        return dtype;
    if (bound != floor(bound) || fabs(bound) >= 0x1p63)
        return PC_F32;
    return dtype == PC_BOOL ? PC_I64 : dtype;
}

/* One bound, in a's dtype, to which what is taken would be rounded: then the gradient knows what is on it. Beyond integers
 * it bounds as the last of them does. */
static pc_tensor *bounded(pc_tensor *a, double bound, bool is_low)
{
    static const double least[PC_DTYPE_COUNT] = {[PC_I32] = -0x1p31, [PC_I64] = -0x1p63},
                        most[PC_DTYPE_COUNT] = {[PC_U8] = 255, [PC_I32] = 0x1p31 - 1, [PC_I64] = 0x1p63 - 1024};
    if (!a || is_none(bound, is_low))
        return a;
    const double kept = pc__is_float(a->dtype) ? pc__number_in(bound, (pc_dtype)a->dtype)
                                               : fmin(fmax(bound, least[a->dtype]), most[a->dtype]);
    return pc__with_number(is_low ? PC__OP_maximum : PC__OP_minimum, a, kept, false);
}

pc_tensor *pc_clamp(pc_tensor *a, double low, double high)
{
    PC__NEED_OR(NULL, a);
    const pc_dtype dtype = bounded_dtype(bounded_dtype(a->dtype, low, true), high, false);
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *y = bounded(bounded(pc__as_dtype(a, dtype), low, true), high, false);
        result = pc_keep(y == a ? pc_clone(a) : y);
    }
    return result;
}

/* Where input i is the one that was taken; equals share. Of NaN both get the gradient, as in PyTorch. */
static pc_status part(pc__grad *grad, int i, bool is_largest)
{
    pc_tensor *g = grad->out_grad[0], *own = grad->in[i], *other = grad->in[1 - i];
    pc_tensor *passed = is_largest ? pc_lt(own, other) : pc_gt(own, other);
    pc_tensor *value =
        pc_where(passed, pc_scalar(0, g->dtype, grad->device), pc_where(pc_eq(own, other), pc_mul_scalar(g, 0.5), g));
    return pc__set_grad(grad, i, pc__sum_to(value, grad->in_meta[i].ndim, grad->in_meta[i].shape));
}

/* On a bound and of NaN the gradient is 0, as in PyTorch. Functions of elements, which a recording makes one call of; and
 * relu's, since a product of 0 and an infinite gradient is NaN. */
static pc_status inside(pc__grad *grad, bool is_low)
{
    const pc__number *number = grad->attributes;
    pc_tensor *g = grad->out_grad[0], *is_inside = pc__with_number(PC__OP_above, grad->in[0], number->value, !is_low);
    return pc__set_grad(grad, 0, is_inside ? pc__call_as(PC__OP_relu_backward, g, is_inside, g->dtype) : NULL);
}

static pc_status share(pc__grad *grad, bool is_largest)
{
    if (grad->n_in == 1)
        return inside(grad, is_largest);
    for (int i = 0; i < 2; i++)
        if (grad->needs[i])
            PC__TRY(part(grad, i, is_largest));
    return PC_OK;
}

pc_status pc__grad_minimum(pc__grad *grad)
{
    return share(grad, false);
}

pc_status pc__grad_maximum(pc__grad *grad)
{
    return share(grad, true);
}

pc_status pc__grad_above(pc__grad *grad)
{
    return pc__no_gradient(grad);
}
