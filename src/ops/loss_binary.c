/* loss_binary.c: binary cross-entropy with weights and reductions. Of probabilities it is an op, whose gradient is not that of
 * its formula where a logarithm is cut; of logits it is made of other ops, the mean without weights being fused. */
#include "ops/autocast.h"
#include "ops/loss.h"
#include "ops/number.h"
#include "ops/table.h"

#include <math.h>

/* each * weight in the dtype of each. NULL flows; without a weight it is each. */
static pc_tensor *weighted(pc_tensor *each, pc_tensor *weight)
{
    return each && weight ? pc_mul(each, pc__as_dtype(weight, (pc_dtype)each->dtype)) : each;
}

static bool is_weight(const char *who, const char *what, const pc_tensor *weight, const pc_tensor *x)
{
    if (weight && !pc__is_float(weight->dtype))
        return pc__null(PC_ERR_DTYPE, "%s: the %s is %s; it must be floating", who, what, pc_dtype_name(weight->dtype));
    int ndim = 0;
    int64_t shape[PC_MAX_DIMS];
    if (weight && (pc__broadcast(who, x, weight, &ndim, shape) != PC_OK || ndim != x->ndim ||
                   memcmp(shape, x->shape, (size_t)ndim * sizeof *shape) != 0))
        return pc__null(PC_ERR_SHAPE, "%s: the %s has shape %s; it must broadcast to that of the input, %s", who, what,
                        PC__SHAPE_OF(weight), PC__SHAPE_OF(x));
    return true;
}

static bool fits(const char *who, const pc_tensor *x, const pc_tensor *y, const pc_fn_bce_options *o, pc_dtype *dtype)
{
    return pc__is_reduction(who, o->reduction, false) && pc__is_pair(who, x, y, dtype) &&
           is_weight(who, "weight", o->weight, x) && is_weight(who, "pos_weight", o->pos_weight, x);
}

pc_tensor *pc_fn_bce(pc_tensor *x, pc_tensor *y, pc_fn_bce_options options)
{
    pc_dtype dtype;
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, y);
    if (!fits("bce", x, y, &options, &dtype))
        return NULL;
    if (options.pos_weight)
        return pc__null(PC_ERR_ARGUMENT, "bce: of probabilities there is no pos_weight; bce_with_logits has it");
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *a = pc__wide(x, dtype), *b = pc__wide(y, dtype);
        pc_tensor *each = a && b ? pc__call_as(PC__OP_bce, a, b, (pc_dtype)a->dtype) : NULL;
        result = pc_keep(pc__reduced(weighted(each, options.weight), options.reduction, dtype));
    }
    return result;
}

/* As PyTorch: d/dx = (x - y) / max(x (1 - x), 1e-12), d/dy = log(1 - x) - log x. */
pc_status pc__grad_bce(pc__grad *grad)
{
    pc_tensor *g = grad->out_grad[0], *x = grad->in[0], *y = grad->in[1];
    pc_tensor *rest = pc__with_number(PC__OP_sub, x, 1, true);
    if (grad->needs[0])
        PC__TRY(pc__set_grad(grad, 0, pc_div(pc_mul(g, pc_sub(x, y)), pc_clamp(pc_mul(x, rest), 1e-12, INFINITY))));
    return grad->needs[1] ? pc__set_grad(grad, 1, pc_mul(g, pc_sub(pc_log(rest), pc_log(x)))) : PC_OK;
}

static pc_tensor *of_logits(pc_tensor *x, pc_tensor *y, pc_tensor *pos_weight)
{
    pc_tensor *loss = pc_softplus(pc_neg(x));
    if (pos_weight)
        loss =
            pc_mul(loss, pc_add_scalar(pc_mul(y, pc_sub_scalar(pc__as_dtype(pos_weight, (pc_dtype)y->dtype), 1)), 1));
    return pc_add(pc_mul(pc__with_number(PC__OP_sub, y, 1, true), x), loss);
}

pc_tensor *pc_fn_bce_with_logits(pc_tensor *x, pc_tensor *y, pc_fn_bce_options options)
{
    pc_dtype dtype;
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, y);
    if (!fits("bce_with_logits", x, y, &options, &dtype))
        return NULL;
    if (options.reduction == PC_REDUCTION_MEAN && !options.weight && !options.pos_weight && pc__is_float(x->dtype))
        return pc_bce_with_logits(x, y);
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *a = pc__wide(x, dtype), *b = pc__wide(y, dtype);
        pc_tensor *each = a && b ? of_logits(a, b, options.pos_weight) : NULL;
        result = pc_keep(pc__reduced(weighted(each, options.weight), options.reduction, dtype));
    }
    return result;
}
