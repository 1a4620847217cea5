/* loss_weighted.c: losses whose samples count by their class. Made of other ops, so that every device has them with
 * their gradients; log_softmax keeps them exact for logits of any size. */
#include "ops/autocast.h"
#include "ops/loss.h"
#include "ops/number.h"
#include "ops/table.h"

static bool are_weights(const char *who, const pc_tensor *weights, int64_t classes)
{
    bool fine = weights->ndim == 1 && weights->shape[0] == classes && pc__is_float(weights->dtype);
    if (!fine)
        (void)pc__fail(PC_ERR_SHAPE,
                       "%s: the weights are %s of shape %s; they must be floating, one for each of %lld classes", who,
                       pc_dtype_name(weights->dtype), PC__SHAPE_OF(weights), (long long)classes);
    return fine;
}

/* -(sum of a) / n, in the dtype of the input, whose 16 bits are float32 until then: a float16 would not hold the sum. */
static pc_tensor *lost(pc_tensor *a, int64_t n, pc_dtype dtype)
{
    pc_tensor *mean = pc_mul_scalar(pc_sum(a), -1.0 / (double)n);
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
    return lost(pc_mul(p, pc_mul(target, pc__as_dtype(weights, pc_tensor_dtype(p)))), n, dtype);
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

/* Picked by comparing, not by multiplying with zeros: a class that is impossible has a logarithm of minus infinity. */
static pc_tensor *of_classes(pc_tensor *x, pc_tensor *labels, pc_tensor *weights)
{
    const int64_t n = x->shape[0], classes = x->shape[1];
    const pc_dtype dtype = (pc_dtype)x->dtype;
    pc_tensor *each = pc_index_select(weights, 0, labels); /* refuses labels out of range */
    pc_tensor *p = pc_log_softmax(pc__wide(x, dtype), 1);
    if (!each || !p)
        return NULL;
    pc_tensor *all = pc_arange(0, (double)classes, 1, PC_I64, pc_tensor_device(x));
    pc_tensor *none = pc_zeros(PC_SHAPE(1), pc_tensor_dtype(p), pc_tensor_device(x));
    pc_tensor *picked = pc_where(pc_eq(pc_reshape(labels, PC_SHAPE(n, 1)), all), p, none);
    each = pc_reshape(pc__as_dtype(each, pc_tensor_dtype(p)), PC_SHAPE(n, 1));
    return lost(pc_mul(picked, each), n, dtype);
}

pc_tensor *pc_cross_entropy_weighted(pc_tensor *x, pc_tensor *labels, pc_tensor *weights)
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
        result = pc_keep(of_classes(x, labels, weights));
    }
    return result;
}
