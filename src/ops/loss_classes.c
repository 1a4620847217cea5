/* loss_classes.c: losses of classes with options. Labels without weights, smoothing and a result for each sample go by the
 * fused kernel; the rest is made of other ops, in the shape that x has. */
#include "ops/autocast.h"
#include "ops/loss.h"
#include "ops/number.h"
#include "ops/table.h"

typedef struct task {
    const char *who;
    pc_tensor *target;
    pc_fn_cross_entropy_options options;
    int dim; /* of the classes in x */
    int64_t classes, ignored;
    pc_dtype dtype; /* of x */
} task;

/* x's shape without its classes. */
static pc_shape shape_of_samples(const pc_tensor *x, int dim)
{
    pc_shape shape = {0};
    for (int i = 0; i < x->ndim; i++)
        if (i != dim)
            shape.dim[shape.ndim++] = x->shape[i];
    return shape;
}

static bool are_labels(const task *t, const pc_tensor *x)
{
    const pc_shape samples = shape_of_samples(x, t->dim);
    const pc_tensor *labels = t->target;
    if (labels->ndim != samples.ndim ||
        memcmp(labels->shape, samples.dim, (size_t)samples.ndim * sizeof *labels->shape) != 0)
        return pc__null(PC_ERR_SHAPE,
                        "%s: the input has shape %s and the labels %s; they must be [n, classes, ...] and [n, ...]",
                        t->who, PC__SHAPE_OF(x), PC__SHAPE_OF(labels));
    if (labels->dtype != PC_I64)
        return pc__null(PC_ERR_DTYPE, "%s: the labels are %s; they must be int64", t->who,
                        pc_dtype_name(labels->dtype));
    return true;
}

static bool fits(const task *t, const pc_tensor *x)
{
    const pc_tensor *weight = t->options.weight;
    const double smoothing = t->options.label_smoothing;
    if (!pc__is_reduction(t->who, t->options.reduction, false))
        return false;
    if (x->ndim == 0 || !pc__is_float(x->dtype))
        return pc__null(x->ndim ? PC_ERR_DTYPE : PC_ERR_SHAPE,
                        "%s: the input is %s %s; it must be floating [n, classes, ...]", t->who,
                        pc_dtype_name(x->dtype), PC__SHAPE_OF(x));
    if (weight && (weight->ndim != 1 || weight->shape[0] != t->classes || !pc__is_float(weight->dtype)))
        return pc__null(PC_ERR_SHAPE,
                        "%s: the weights are %s of shape %s; they must be floating, one for each of %lld classes",
                        t->who, pc_dtype_name(weight->dtype), PC__SHAPE_OF(weight), (long long)t->classes);
    if (!(smoothing >= 0 && smoothing <= 1))
        return pc__null(PC_ERR_ARGUMENT, "%s: the label_smoothing is %g; it must be 0 to 1", t->who, smoothing);
    return true;
}

static task task_of(const char *who, const pc_tensor *x, pc_tensor *target, pc_fn_cross_entropy_options options)
{
    const int dim = x->ndim > 1 ? 1 : 0;
    return (task){.who = who,
                  .target = target,
                  .options = options,
                  .dim = dim,
                  .classes = x->ndim ? x->shape[dim] : 0,
                  .ignored = options.ignore ? options.ignore_index : PC__IGNORED,
                  .dtype = (pc_dtype)x->dtype};
}

/* Weights in the dtype of p, to be multiplied with it. */
static pc_tensor *along_classes(const task *t, const pc_tensor *p)
{
    pc_shape shape = {.ndim = p->ndim};
    for (int i = 0; i < p->ndim; i++)
        shape.dim[i] = i == t->dim ? t->classes : 1;
    return pc_reshape(pc__as_dtype(t->options.weight, (pc_dtype)p->dtype), shape);
}

/* Of each sample -(the sum over classes of w p). */
static pc_tensor *over_classes(const task *t, pc_tensor *p)
{
    if (p && t->options.weight)
        p = pc_mul(p, along_classes(t, p));
    return pc_neg(pc_sum_dims(p, PC_SHAPE(t->dim), false));
}

/* Of each sample what its label's class has; `none` says which samples are ignored. p are logarithms. */
static pc_tensor *of_labels(const task *t, pc_tensor *p, pc_tensor *safe, pc_tensor *weight, pc_tensor *none)
{
    const double smoothing = t->options.label_smoothing;
    pc_tensor *each = pc_neg(pc_squeeze(pc_gather(p, t->dim, pc_unsqueeze(safe, t->dim)), t->dim));
    each = weight ? pc_mul(each, weight) : each;
    if (smoothing > 0)
        each = pc_add(pc_mul_scalar(each, 1 - smoothing),
                      pc_mul_scalar(over_classes(t, p), smoothing / (double)t->classes));
    return pc_masked_fill(each, none, 0);
}

/* The labels' weights, in their shape. */
static pc_tensor *weights_of(const task *t, pc_tensor *safe, pc_dtype dtype)
{
    const int64_t n = safe ? pc_tensor_count(safe) : 0;
    pc_tensor *picked = pc_index_select(pc__as_dtype(t->options.weight, dtype), 0, pc_reshape(safe, PC_SHAPE(n)));
    return safe ? pc_reshape(picked, pc_tensor_shape(safe)) : NULL;
}

/* By logarithms p, in the dtype that is computed in. */
static pc_tensor *by_labels(const task *t, pc_tensor *p)
{
    if (!p)
        return NULL;
    const pc_dtype dtype = (pc_dtype)p->dtype;
    pc_tensor *none = pc_eq(t->target, pc_scalar((double)t->ignored, PC_I64, p->storage->device));
    pc_tensor *safe = pc_masked_fill(t->target, none, 0);
    pc_tensor *weight = t->options.weight ? weights_of(t, safe, dtype) : NULL;
    if (!none || !safe || (t->options.weight && !weight))
        return NULL;
    pc_tensor *each = of_labels(t, p, safe, weight, none);
    if (t->options.reduction != PC_REDUCTION_MEAN)
        return pc__reduced(each, t->options.reduction, t->dtype);
    pc_tensor *counted = weight ? pc_masked_fill(weight, none, 0) : pc__as_dtype(pc_logical_not(none), dtype);
    return pc__reduced(pc_div(pc_sum(each), pc_sum(counted)), PC_REDUCTION_NONE, t->dtype);
}

pc_tensor *pc_fn_nll_loss(pc_tensor *x, pc_tensor *labels, pc_fn_cross_entropy_options options)
{
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, labels);
    const task t = task_of("nll_loss", x, labels, options);
    if (options.label_smoothing != 0)
        return pc__null(PC_ERR_ARGUMENT, "nll_loss: it has no label_smoothing; cross_entropy does");
    if (!fits(&t, x) || !are_labels(&t, x))
        return NULL;
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(by_labels(&t, pc__wide(x, t.dtype)));
    }
    return result;
}

static pc_tensor *fused(const task *t, pc_tensor *x)
{
    const int64_t n = pc_tensor_count(t->target);
    pc_shape order = {.ndim = x->ndim};
    for (int i = 0, k = 0; i < x->ndim; i++)
        if (i != t->dim)
            order.dim[k++] = i;
    order.dim[x->ndim - 1] = t->dim;
    pc_tensor *rows = pc_reshape(pc_permute(x, order), PC_SHAPE(n, t->classes));
    pc_tensor *labels = pc_reshape(t->target, PC_SHAPE(n));
    return rows && labels ? pc__fused_cross_entropy(pc_contiguous(rows), pc_contiguous(labels), t->ignored,
                                                    t->options.reduction == PC_REDUCTION_SUM)
                          : NULL;
}

static pc_tensor *logarithms(const task *t, pc_tensor *x)
{
    return pc_log_softmax(pc__wide(x, t->dtype), t->dim);
}

static pc_tensor *by_probabilities(const task *t, pc_tensor *x)
{
    const double smoothing = t->options.label_smoothing, samples = (double)pc_tensor_count(x) / (double)t->classes;
    pc_tensor *p = logarithms(t, x), *y = p ? pc__as_dtype(t->target, (pc_dtype)p->dtype) : NULL;
    if (smoothing > 0)
        y = pc_add_scalar(pc_mul_scalar(y, 1 - smoothing), smoothing / (double)t->classes);
    pc_tensor *each = over_classes(t, pc_mul(p, y));
    if (t->options.reduction != PC_REDUCTION_MEAN)
        return pc__reduced(each, t->options.reduction, t->dtype);
    return pc__reduced(pc_div_scalar(pc_sum(each), samples), PC_REDUCTION_NONE, t->dtype);
}

static bool are_probabilities(const task *t, const pc_tensor *x)
{
    if (!pc__is_float(t->target->dtype))
        return pc__null(PC_ERR_DTYPE, "%s: a target of the input's shape has probabilities, which are floating, not %s",
                        t->who, pc_dtype_name(t->target->dtype));
    if (t->options.ignore)
        return pc__null(PC_ERR_ARGUMENT, "%s: of probabilities none is ignored; leave .ignore out", t->who);
    return pc__same_shape(x, t->target);
}

pc_tensor *pc_fn_cross_entropy(pc_tensor *x, pc_tensor *target, pc_fn_cross_entropy_options options)
{
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, target);
    const task t = task_of("cross_entropy", x, target, options);
    if (!fits(&t, x))
        return NULL;
    const bool soft = pc__same_shape(x, target);
    if (soft ? !are_probabilities(&t, x) : !are_labels(&t, x))
        return NULL;
    const bool is_plain = !options.weight && options.label_smoothing == 0 && options.reduction != PC_REDUCTION_NONE;
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(soft ? by_probabilities(&t, x) : is_plain ? fused(&t, x) : by_labels(&t, logarithms(&t, x)));
    }
    return result;
}
