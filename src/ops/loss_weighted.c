/* loss_weighted.c: losses whose samples count by their class. Made of other ops, so that every device has them with
 * their gradients; log_softmax keeps them exact for logits of any size. */
#include "ops/autocast.h"
#include "ops/loss.h"
#include "ops/number.h"
#include "ops/table.h"

#include <math.h>

static bool are_weights(const char *who, const pc_tensor *weights, int64_t classes)
{
    bool fine = weights->ndim == 1 && weights->shape[0] == classes && pc__is_float(weights->dtype);
    if (!fine)
        (void)pc__fail(PC_ERR_SHAPE,
                       "%s: the weights are %s of shape %s; they must be floating, one for each of %lld classes", who,
                       pc_dtype_name(weights->dtype), PC__SHAPE_OF(weights), (long long)classes);
    return fine;
}

/* In the dtype of the input, whose 16 bits are float32 until then: a float16 would not hold a sum. */
static pc_tensor *rounded(pc_tensor *mean, pc_dtype dtype)
{
    return pc__autocasting() ? mean : pc__as_dtype(mean, dtype);
}

/* The two columns of log probabilities are those of the logits 0 and x. */
static pc_tensor *binary(pc_tensor *x, pc_tensor *y, pc_tensor *weights)
{
    const int64_t n = pc_tensor_count(x);
    const pc_dtype dtype = (pc_dtype)x->dtype;
    x = pc_reshape(pc__wide(x, dtype), PC_SHAPE(n, 1));
    pc_tensor *zero = x ? pc_zeros(PC_SHAPE(n, 1), pc_tensor_dtype(x), pc_tensor_device(x)) : NULL;
    pc_tensor *p = pc_log_softmax(pc_cat((pc_tensor *[]){zero, x}, 2, 1), 1);
    if (!p)
        return NULL;
    y = pc_reshape(pc__as_dtype(y, pc_tensor_dtype(p)), PC_SHAPE(n, 1));
    pc_tensor *target = pc_cat((pc_tensor *[]){pc__with_number(PC__OP_sub, y, 1, true), y}, 2, 1);
    pc_tensor *each = pc_mul(p, pc_mul(target, pc__as_dtype(weights, pc_tensor_dtype(p))));
    return rounded(pc_mul_scalar(pc_sum(each), -1.0 / (double)n), dtype);
}

pc_tensor *pc_bce_with_logits_weighted(pc_tensor *x, pc_tensor *y, pc_tensor *weights)
{
    static const char who[] = "bce_with_logits_weighted";
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, y);
    PC__NEED_OR(NULL, weights);
    if (!pc__same_shape(x, y))
        return pc__null(PC_ERR_SHAPE, "%s: the input has shape %s and the target %s; they must be the same", who,
                        PC__SHAPE_OF(x), PC__SHAPE_OF(y));
    if (!pc__is_float(x->dtype))
        return pc__null(PC_ERR_DTYPE, "%s: the input is %s; it must be floating", who, pc_dtype_name(x->dtype));
    if (!are_weights(who, weights, 2))
        return NULL;
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(binary(x, y, weights));
    }
    return result;
}

pc_tensor *pc__weights_of_labels(pc_tensor *weights, pc_tensor *labels, pc_tensor **ignored)
{
    *ignored = labels ? pc_eq(labels, pc_scalar(PC__IGNORED, PC_I64, labels->storage->device)) : NULL;
    pc_tensor *safe = *ignored ? pc_masked_fill(labels, *ignored, 0) : NULL;
    return safe ? pc_masked_fill(pc_index_select(weights, 0, safe), *ignored, 0)
                : NULL; /* refuses labels out of range */
}

/* Picked by comparing, not by multiplying with zeros: a class that is impossible has a logarithm of minus infinity. */
static pc_tensor *of_classes(pc_tensor *x, pc_tensor *labels, pc_tensor *weights, bool none_is_0)
{
    const int64_t n = x->shape[0], classes = x->shape[1];
    const pc_dtype dtype = (pc_dtype)x->dtype;
    pc_tensor *ignored, *each = pc__weights_of_labels(weights, labels, &ignored);
    if (!each)
        return NULL;
    pc_tensor *seen = pc_masked_fill(x, pc_reshape(ignored, PC_SHAPE(n, 1)), 0); /* whatever stands in the others */
    pc_tensor *p = pc_log_softmax(pc__wide(seen, dtype), 1);
    if (!p)
        return NULL;
    pc_tensor *all = pc_arange(0, (double)classes, 1, PC_I64, pc_tensor_device(x));
    pc_tensor *none = pc_zeros(PC_SHAPE(1), pc_tensor_dtype(p), pc_tensor_device(x));
    pc_tensor *picked = pc_where(pc_eq(pc_reshape(labels, PC_SHAPE(n, 1)), all), p, none);
    each = pc_reshape(pc__as_dtype(each, pc_tensor_dtype(p)), PC_SHAPE(n, 1));
    pc_tensor *counted = pc_sum(pc__as_dtype(pc_logical_not(ignored), pc_tensor_dtype(p)));
    counted = none_is_0 ? pc_clamp(counted, 1, INFINITY) : counted;
    return rounded(pc_div(pc_neg(pc_sum(pc_mul(picked, each))), counted), dtype);
}

static pc_tensor *cross_entropy_weighted(pc_tensor *x, pc_tensor *labels, pc_tensor *weights, bool none_is_0)
{
    static const char who[] = "cross_entropy_weighted";
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, labels);
    PC__NEED_OR(NULL, weights);
    if (x->ndim != 2 || labels->ndim != 1 || x->shape[0] != labels->shape[0])
        return pc__null(PC_ERR_SHAPE, "%s: the input has shape %s and the labels %s; they must be [n, classes] and [n]",
                        who, PC__SHAPE_OF(x), PC__SHAPE_OF(labels));
    if (!pc__is_float(x->dtype) || labels->dtype != PC_I64)
        return pc__null(PC_ERR_DTYPE, "%s: the input is %s and the labels are %s; they must be floating and int64", who,
                        pc_dtype_name(x->dtype), pc_dtype_name(labels->dtype));
    if (!are_weights(who, weights, x->shape[1]))
        return NULL;
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(of_classes(x, labels, weights, none_is_0));
    }
    return result;
}

pc_tensor *pc_cross_entropy_weighted(pc_tensor *x, pc_tensor *labels, pc_tensor *weights)
{
    return cross_entropy_weighted(x, labels, weights, false);
}

pc_tensor *pc__cross_entropy_weighted_or_0(pc_tensor *x, pc_tensor *labels, pc_tensor *weights)
{
    return cross_entropy_weighted(x, labels, weights, true);
}
