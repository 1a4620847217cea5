/* loss_pairs.c: losses of pairs with reductions, made of other ops; and what all losses with options share. */
#include "ops/autocast.h"
#include "ops/loss.h"
#include "ops/number.h"
#include "ops/table.h"

#include <math.h>

bool pc__is_pair(const char *who, const pc_tensor *x, const pc_tensor *y, pc_dtype *dtype)
{
    *dtype = pc__promote(x, y);
    if (!pc__same_shape(x, y))
        return pc__null(PC_ERR_SHAPE,
                        "%s: the input has shape %s and the target %s; they must be the same (pc_reshape, or pc_expand "
                        "where one is to repeat)",
                        who, PC__SHAPE_OF(x), PC__SHAPE_OF(y));
    if (!pc__is_float(*dtype))
        return pc__null(PC_ERR_DTYPE, "%s: the input and the target are %s and %s; one must be floating", who,
                        pc_dtype_name(x->dtype), pc_dtype_name(y->dtype));
    return true;
}

bool pc__is_reduction(const char *who, pc_reduction reduction, bool by_batch)
{
    const int last = by_batch ? PC_REDUCTION_BATCH_MEAN : PC_REDUCTION_NONE, asked = (int)reduction;
    if (asked < 0 || asked > last)
        return pc__null(PC_ERR_ARGUMENT, "%s: it has no reduction %d; they are mean, sum, none%s", who, asked,
                        by_batch ? " and batch_mean" : "");
    return true;
}

pc_tensor *pc__wide(pc_tensor *t, pc_dtype dtype)
{
    return pc__as_dtype(t, pc__is_half(dtype) ? PC_F32 : dtype);
}

static pc_tensor *reduced(pc_tensor *each, pc_reduction reduction)
{
    if (reduction == PC_REDUCTION_NONE)
        return each;
    if (reduction == PC_REDUCTION_MEAN)
        return pc_mean(each);
    const int64_t batch = each->ndim ? each->shape[0] : 1;
    pc_tensor *sum = pc_sum(each);
    return reduction == PC_REDUCTION_SUM ? sum : pc_div_scalar(sum, (double)batch);
}

pc_tensor *pc__reduced(pc_tensor *each, pc_reduction reduction, pc_dtype dtype)
{
    if (!each)
        return NULL;
    each = reduced(each, reduction);
    return pc__autocasting() ? each : pc__as_dtype(each, dtype);
}

/* The losses of elements, by a number that a loss may have; x and y in their common dtype, or float32. */
typedef pc_tensor *(*each_fn)(pc_tensor *x, pc_tensor *y, double number);

static pc_tensor *pair(const char *who, each_fn each, pc_tensor *x, pc_tensor *y, double number, pc_reduction reduction)
{
    pc_dtype dtype;
    if (!pc__is_reduction(who, reduction, strcmp(who, "kl_div") == 0) || !pc__is_pair(who, x, y, &dtype))
        return NULL;
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *a = pc__wide(x, dtype), *b = pc__wide(y, dtype);
        result = pc_keep(a && b ? pc__reduced(each(a, b, number), reduction, dtype) : NULL);
    }
    return result;
}

static pc_tensor *squared(pc_tensor *x, pc_tensor *y, double number)
{
    (void)number;
    return pc_square(pc_sub(x, y));
}

pc_tensor *pc_mse_loss(pc_tensor *x, pc_tensor *y, pc_reduction reduction)
{
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, y);
    return reduction == PC_REDUCTION_MEAN ? pc_mse(x, y) : pair("mse_loss", squared, x, y, 0, reduction);
}

static pc_tensor *distance(pc_tensor *x, pc_tensor *y, double number)
{
    (void)number;
    return pc_abs(pc_sub(x, y));
}

pc_tensor *pc_l1_loss(pc_tensor *x, pc_tensor *y, pc_reduction reduction)
{
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, y);
    return pair("l1_loss", distance, x, y, 0, reduction);
}

/* Of z, and c = min(z, delta): c (z - c / 2), whose derivative is z, and delta where c is that. */
static pc_tensor *huber(pc_tensor *x, pc_tensor *y, double delta)
{
    pc_tensor *z = distance(x, y, 0), *c = z ? pc_clamp(z, -INFINITY, delta) : NULL;
    return c ? pc_mul(c, pc_sub(z, pc_mul_scalar(c, 0.5))) : NULL;
}

pc_tensor *pc_huber_loss(pc_tensor *x, pc_tensor *y, double delta, pc_reduction reduction)
{
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, y);
    if (!(delta > 0))
        return pc__null(PC_ERR_ARGUMENT, "huber_loss: delta is %g; it must be above 0", delta);
    return pair("huber_loss", huber, x, y, delta, reduction);
}

static pc_tensor *smooth(pc_tensor *x, pc_tensor *y, double beta)
{
    return beta > 0 ? pc_div_scalar(huber(x, y, beta), beta) : distance(x, y, 0);
}

pc_tensor *pc_smooth_l1_loss(pc_tensor *x, pc_tensor *y, double beta, pc_reduction reduction)
{
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, y);
    if (!(beta >= 0))
        return pc__null(PC_ERR_ARGUMENT, "smooth_l1_loss: beta is %g; it must be at least 0", beta);
    return pair("smooth_l1_loss", smooth, x, y, beta, reduction);
}

static pc_tensor *divergence(pc_tensor *x, pc_tensor *y, double is_log)
{
    if (is_log > 0)
        return pc_mul(pc_exp(y), pc_sub(y, x));
    pc_tensor *none = pc_eq(y, pc_scalar(0, y->dtype, y->storage->device));
    pc_tensor *entropy = pc_masked_fill(pc_mul(y, pc_log(pc_masked_fill(y, none, 1))), none, 0);
    return pc_sub(entropy, pc_mul(y, x));
}

pc_tensor *pc_kl_div(pc_tensor *x, pc_tensor *y, bool log_target, pc_reduction reduction)
{
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, y);
    return pair("kl_div", divergence, x, y, log_target, reduction);
}
