/* cut_loss.c: cross-entropy of logits whose classes are cut up among ranks. Of each row all ranks know the largest
 * logit, the sum of exponentials and the label's logit; the gradient at a rank's own logits needs no more. */
#include "dist/group.h"
#include "parallel/cut.h"
#include "ops/loss.h"
#include "ops/table.h"

#include <math.h>
#include <paracord/no_grad.h>
#include <paracord/tensor_parallel.h>

typedef struct task {
    pc_group *group;
    pc_tensor *logits, *labels; /* [n, part], [n, 1] */
    int64_t n, part, valid;     /* columns, and those that are classes */
    int64_t classes, ignored;
    pc_reduction reduction;
} task;

/* What is found of rows, [n, 1] each. */
typedef struct rows {
    pc_tensor *index, *none; /* the label's place in the part, or 0; whether it is ignored */
    pc_tensor *hit;          /* the label is in the part, and counts: 1, else 0 */
    pc_tensor *most, *sum;   /* of all classes: the largest logit, and the sum of exp(logit - it) */
    pc_tensor *loss;
} rows;

enum { LOSS, LOGITS, MOST, INDEX, SHARE, TARGET, INPUTS };

static pc_status infer(pc_call *call, pc__meta *out)
{
    pc__meta_of(out, call->in[LOSS]);
    return PC_OK;
}

/* exp(logit - most) share / sum, less the label's share; times what arrives. In rows that do not count, whose share is 0, it is 0
 * whatever their logits are and whatever arrives. */
static pc_tensor *at_classes(pc__grad *grad, int64_t valid)
{
    pc_tensor *most = grad->in[MOST], *g = grad->out_grad[0];
    const pc_dtype dtype = pc_tensor_dtype(most);
    g = pc_reshape(pc__as_dtype(g, dtype), PC_SHAPE(-1, 1));
    pc_tensor *own = pc__as_dtype(pc_slice(grad->in[LOGITS], 1, 0, valid, 1), dtype);
    pc_tensor *p = pc_mul(pc_exp(pc_sub(own, most)), pc_mul(grad->in[SHARE], g));
    pc_tensor *none = pc_scalar(0, dtype, grad->device), *target = pc_mul(grad->in[TARGET], g);
    p = pc_masked_fill(p, pc_eq(grad->in[SHARE], none), 0);
    target = pc_masked_fill(target, pc_eq(grad->in[TARGET], none), 0);
    return pc_scatter_add(p, 1, grad->in[INDEX], pc_neg(target));
}

static pc_status gradient(pc__grad *grad)
{
    const int64_t valid = *(const int64_t *)grad->attributes, part = grad->in_meta[LOGITS].shape[1];
    const pc_dtype dtype = grad->in_meta[LOGITS].dtype;
    if (!valid)
        return pc__set_grad(grad, LOGITS,
                            pc_zeros(PC_SHAPE(grad->in_meta[LOGITS].shape[0], part), dtype, grad->device));
    pc_tensor *p = pc__as_dtype(at_classes(grad, valid), dtype);
    if (valid < part)
        p = pc_pad(p, PC_SHAPE(0), PC_SHAPE(part - valid), PC_PAD_CONSTANT, 0);
    return pc__set_grad(grad, LOGITS, p);
}

static const pc__op loss_op = {"parallel_cross_entropy",
                               PC__OP_view,
                               1,
                               PC__VIEW | PC__SAVE_IN1 | PC__SAVE_IN2 | PC__SAVE_IN3 | PC__SAVE_IN4 |
                                   PC__SAVE_IN0 << TARGET,
                               infer,
                               gradient};

static pc_status find_labels(const task *t, rows *r)
{
    pc_tensor *mine = NULL;
    r->none = pc_eq(t->labels, pc_scalar((double)t->ignored, PC_I64, pc_tensor_device(t->labels)));
    r->index =
        r->none ? pc__own_index(t->group, pc_masked_fill(t->labels, r->none, 0), t->part, t->classes, &mine) : NULL;
    r->hit = pc_logical_and(mine, pc_logical_not(r->none));
    return r->index && r->hit ? PC_OK : pc_error_last()->status;
}

static pc_tensor *column(const task *t, double value, pc_dtype dtype)
{
    return pc_full(PC_SHAPE(t->n, 1), value, dtype, pc_tensor_device(t->logits));
}

/* Of this rank's classes the sum and the label's logit, side by side. */
static pc_tensor *sums(const task *t, const rows *r, pc_tensor *own)
{
    if (!t->valid)
        return pc_zeros(PC_SHAPE(t->n, 2), pc_tensor_dtype(r->most), pc_tensor_device(t->logits));
    pc_tensor *sum = pc_sum_dims(pc_exp(pc_sub(own, r->most)), PC_SHAPE(1), true);
    pc_tensor *label = pc_masked_fill(pc_gather(own, 1, r->index), pc_logical_not(r->hit), 0);
    return pc_cat((pc_tensor *[]){sum, label}, 2, 1);
}

static pc_status measure(const task *t, rows *r)
{
    PC__TRY(find_labels(t, r));
    pc_tensor *own = pc__wide(pc_slice(t->logits, 1, 0, t->valid, 1), pc_tensor_dtype(t->logits));
    if (!own)
        return pc_error_last()->status;
    r->most = t->valid ? pc_max_dim(own, 1, true, NULL) : column(t, -INFINITY, pc_tensor_dtype(own));
    if (!r->most)
        return pc_error_last()->status;
    PC__TRY(pc_group_all_reduce(t->group, r->most, PC_GROUP_MAX));
    pc_tensor *both = sums(t, r, own);
    if (!both)
        return pc_error_last()->status;
    PC__TRY(pc_group_all_reduce(t->group, both, PC_GROUP_SUM));
    r->sum = pc_slice(both, 1, 0, 1, 1);
    r->loss = pc_add(pc_sub(r->most, pc_slice(both, 1, 1, 2, 1)), pc_log(r->sum));
    r->loss = pc_masked_fill(r->loss, r->none, 0);
    return r->loss ? PC_OK : pc_error_last()->status;
}

/* The loss, and by the rule what it is made of. */
static pc_tensor *reduced(const task *t, const rows *r, pc_tensor **in)
{
    const pc_dtype dtype = pc_tensor_dtype(r->most);
    pc_tensor *share = pc_cast(pc_logical_not(r->none), dtype), *each = r->loss;
    if (t->reduction == PC_REDUCTION_MEAN) {
        pc_tensor *count = pc_sum(share);
        each = pc_div(pc_sum(each), count);
        share = pc_div(share, pc_clamp(count, 1, INFINITY)); /* of no rows the loss is NaN, and gradients are 0 */
    } else if (t->reduction == PC_REDUCTION_SUM) {
        each = pc_sum(each);
    }
    in[LOGITS] = t->logits;
    in[MOST] = r->most;
    in[INDEX] = r->index;
    in[SHARE] = pc_masked_fill(pc_div(share, r->sum), r->none, 0);
    in[TARGET] = pc_mul(share, pc_cast(r->hit, dtype));
    return pc__reduced(each, PC_REDUCTION_NONE, pc_tensor_dtype(t->logits));
}

static pc_tensor *run(const task *t, pc_shape samples)
{
    rows r = {0};
    pc_tensor *in[INPUTS] = {NULL}, *loss = NULL;
    PC_NO_GRAD {
        if (measure(t, &r) == PC_OK)
            loss = reduced(t, &r, in);
        if (t->reduction == PC_REDUCTION_NONE && loss)
            loss = pc_reshape(loss, samples);
    }
    in[LOSS] = loss;
    pc_call call = {.op = &loss_op,
                    .in = in,
                    .n_in = INPUTS,
                    .n_out = 1,
                    .attributes = &t->valid,
                    .attribute_bytes = sizeof t->valid};
    return loss && pc_dispatch(&call) == PC_OK ? call.out[0] : NULL;
}

static bool fits(const pc_tensor *logits, const pc_tensor *labels, const task *t)
{
    const int k = logits->ndim - 1;
    if (k < 0 || labels->ndim != k || memcmp(logits->shape, labels->shape, (size_t)k * sizeof *labels->shape) != 0)
        return pc__null(PC_ERR_SHAPE,
                        "parallel_cross_entropy: the logits have shape %s and the labels %s; they must be [..., "
                        "classes of this rank] and [...]",
                        PC__SHAPE_OF(logits), PC__SHAPE_OF(labels));
    if (!pc__is_float(logits->dtype) || labels->dtype != PC_I64)
        return pc__null(PC_ERR_DTYPE,
                        "parallel_cross_entropy: the logits are %s and the labels %s; they must be floating and int64",
                        pc_dtype_name((pc_dtype)logits->dtype), pc_dtype_name((pc_dtype)labels->dtype));
    if (!pc__is_reduction("parallel_cross_entropy", t->reduction, false))
        return false;
    if (t->classes < 1 || t->classes > t->part * t->group->size)
        return pc__null(
            PC_ERR_ARGUMENT, "parallel_cross_entropy: %lld classes; %d ranks have 1 to %lld in %lld columns each",
            (long long)t->classes, t->group->size, (long long)(t->part * t->group->size), (long long)t->part);
    return true;
}

pc_tensor *pc_fn_parallel_cross_entropy(pc_tensor *logits, pc_tensor *labels, pc_group *group,
                                        pc_parallel_cross_entropy_options options)
{
    PC__NEED_OR(NULL, logits);
    PC__NEED_OR(NULL, labels);
    PC__NEED_OR(NULL, group);
    task t = {.group = group,
              .part = logits->ndim ? logits->shape[logits->ndim - 1] : 0,
              .n = pc_tensor_count(labels),
              .ignored = options.ignore ? options.ignore_index : PC__IGNORED,
              .reduction = options.reduction};
    t.classes = options.classes ? options.classes : t.part * group->size;
    if (!fits(logits, labels, &t))
        return NULL;
    t.valid = PC__MAX(PC__MIN(t.part, t.classes - t.part * group->rank), 0);
    pc_tensor *result = NULL;
    PC_SCOPE {
        t.logits = pc_reshape(logits, PC_SHAPE(t.n, t.part));
        t.labels = pc_reshape(labels, PC_SHAPE(t.n, 1));
        result = t.logits && t.labels ? pc_keep(run(&t, pc_tensor_shape(labels))) : NULL;
    }
    return result;
}

pc_tensor *pc_parallel_cross_entropy(pc_tensor *logits, pc_tensor *labels, pc_group *group)
{
    return pc_fn_parallel_cross_entropy(logits, labels, group, (pc_parallel_cross_entropy_options){0});
}
