/* power.c: a to the power of b. */
#include "ops/autocast.h"
#include "ops/number.h"
#include "ops/table.h"

#include <math.h>

pc_tensor *pc_pow(pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    if (pc__promote(a, b) == PC_BOOL)
        return pc__null(PC_ERR_DTYPE, "pow: bool tensors are no numbers; cast one first");
    if (!pc__autocasting())
        return pc__call_as(PC__OP_pow, a, b, pc__promote(a, b));
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *x = pc__autocast_up(a), *y = pc__autocast_up(b);
        result = pc_keep(x && y ? pc__call_as(PC__OP_pow, x, y, pc__promote(x, y)) : NULL);
    }
    return result;
}

/* Powers that have a shorter way. */
static pc_tensor *power_of(pc_tensor *a, double b)
{
    const bool is_whole = b == floor(b) && fabs(b) < 0x1p63;
    if (b == 2)
        return pc_square(a);
    if (!pc__is_float(a->dtype) && is_whole)
        return pc__with_number(PC__OP_pow, a, b, false);
    if (b == 0.5)
        return pc_sqrt(a);
    if (b == -0.5)
        return pc_rsqrt(a);
    if (b == -1)
        return pc__with_number(PC__OP_div, a, 1, true);
    return pc__with_number(PC__OP_pow, a, b, false);
}

pc_tensor *pc_pow_scalar(pc_tensor *a, double b)
{
    PC__NEED_OR(NULL, a);
    if (!pc__is_float(a->dtype) && b < 0 && b == floor(b) && b >= -0x1p63)
        return pc__null(PC_ERR_ARGUMENT, "pow: integers to the power %g are fractions; pc_cast to a floating dtype", b);
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *x = pc__autocast_up(a);
        result = pc_keep(x ? power_of(x, b) : NULL);
    }
    return result;
}

/* What a gradient by two tensors is made of: in float32 where they have 16 bits, since it takes several steps. Functions of
 * elements all of them, which a recording makes one call of. */
typedef struct parts {
    pc_tensor *g, *a, *b, *power;
} parts;

static pc_tensor *wide(pc_tensor *t)
{
    return t && pc__is_half(t->dtype) ? pc__as_dtype(t, PC_F32) : t;
}

/* `slope`, NaN and infinity too, but 0 where `gate` is at most 0: as relu's gradient. */
static pc_tensor *gated(pc_tensor *slope, pc_tensor *gate)
{
    return slope && gate ? pc__call_as(PC__OP_relu_backward, slope, gate, pc_tensor_dtype(slope)) : NULL;
}

/* b a^(b - 1), and 0 where b is. */
static pc_tensor *along_base(parts p)
{
    return gated(pc_mul(p.g, pc_mul(p.b, pc_pow(p.a, pc_sub_scalar(p.b, 1)))), pc_abs(p.b));
}

/* a^b log(a), and 0 where a is and b is not below. */
static pc_tensor *along_exponent(parts p)
{
    return gated(pc_mul(p.g, pc_mul(p.power, pc_log(p.a))), pc_maximum(pc_abs(p.a), pc_neg(p.b)));
}

/* What comes back may be wider than the base. */
static pc_status by_number(pc__grad *grad, double b)
{
    const int op = b == 3 ? PC__OP_cube_backward : PC__OP_pow_backward;
    pc_tensor *slope = pc__with_parameter(op, grad->out_grad[0], grad->in[0], b);
    return pc__set_grad(grad, 0, pc__as_dtype(slope, (pc_dtype)grad->in_meta[0].dtype));
}

pc_status pc__grad_pow(pc__grad *grad)
{
    if (grad->n_in == 1)
        return by_number(grad, ((const pc__number *)grad->attributes)->value);
    parts p = {wide(grad->out_grad[0]), wide(grad->in[0]), wide(grad->in[1]), wide(grad->out[0])};
    for (int i = 0; i < grad->n_in; i++)
        if (grad->needs[i]) {
            const pc__meta *meta = &grad->in_meta[i];
            pc_tensor *slope = pc__sum_to(i == 0 ? along_base(p) : along_exponent(p), meta->ndim, meta->shape);
            PC__TRY(pc__set_grad(grad, i, pc__as_dtype(slope, (pc_dtype)meta->dtype)));
        }
    return PC_OK;
}
