/* judge.c: losses and metrics, on whole loaders too. */
#include "train/judge.h"

#include "data/gather.h"
#include "nn/module.h"
#include "ops/score.h"
#include "ops/table.h"
#include "tensor/tensor.h"

#include <math.h>
#include <paracord/no_grad.h>

pc__judge pc__judge_of(const pc_loader *loader, const pc_fit_options *o)
{
    return (pc__judge){.loss = o->loss,
                       .forward = o->forward,
                       .context = o->context,
                       .metrics = o->metrics,
                       .metric_count = o->metrics ? o->metric_count : 0,
                       .named = pc__loader_names_classes(loader)};
}

pc_status pc__judge_check(const char *who, const pc__judge *j)
{
    if (j->metric_count < 0 || j->metric_count > PC_METRICS_MAX)
        return pc__fail(PC_ERR_ARGUMENT, "%s: %d metrics: give 0 to %d", who, j->metric_count, PC_METRICS_MAX);
    for (int i = 0; i < j->metric_count; i++)
        if (!j->metrics[i].name || !j->metrics[i].of)
            return pc__fail(PC_ERR_ARGUMENT, "%s: metric %d has no %s", who, i,
                            j->metrics[i].name ? "function" : "name");
    return PC_OK;
}

pc_tensor *pc__judge_ask(const pc__judge *j, pc_module *net, const pc_batch *batch)
{
    return j->forward ? j->forward(j->context, net, batch) : pc_forward(net, batch->x);
}

/* What a callback returned; NULL only with an error. */
static pc_tensor *number(const char *what, pc_tensor *t)
{
    if (!t)
        return pc_failed() ? NULL : pc__null(PC_ERR_ARGUMENT, "pc_fit: %s gave NULL, and no error says why", what);
    return pc_tensor_count(t) == 1 && pc__is_float((pc_dtype)t->dtype)
               ? t
               : pc__null(PC_ERR_SHAPE, "pc_fit: %s gave %s %s; it must be one floating number, as pc_mean gives", what,
                          pc_dtype_name(t->dtype), PC__SHAPE_OF(t));
}

/* y in the shape of the outputs, from which it may differ by dimensions of 1. */
static pc_tensor *alike(pc_tensor *y, pc_tensor *outputs)
{
    if (pc__same_shape(y, outputs))
        return y;
    int i = 0, k = 0;
    while (i < y->ndim || k < outputs->ndim) {
        if (i < y->ndim && k < outputs->ndim && y->shape[i] == outputs->shape[k])
            i++, k++;
        else if (i < y->ndim && y->shape[i] == 1)
            i++;
        else if (k < outputs->ndim && outputs->shape[k] == 1)
            k++;
        else
            return pc__null(PC_ERR_SHAPE,
                            "pc_fit: the network gives %s, and y is %s; the mean squared error takes one shape",
                            PC__SHAPE_OF(outputs), PC__SHAPE_OF(y));
    }
    return pc_reshape(y, pc_tensor_shape(outputs));
}

static pc_tensor *loss_by_labels(const pc__judge *j, pc_tensor *outputs, pc_tensor *y, pc_tensor *weights)
{
    if (!y)
        return pc__null(PC_ERR_ARGUMENT, "pc_fit: batches have one tensor, and no y for a loss; give .loss");
    if (j->named || !pc__is_float((pc_dtype)y->dtype))
        return pc__batch_loss(outputs, j->named ? y : pc__as_dtype(y, PC_I64), weights);
    if (weights)
        return pc__null(PC_ERR_ARGUMENT, "pc_fit: class_weights, and y is no labels but %s", pc_dtype_name(y->dtype));
    return pc_mse(outputs, alike(y, outputs));
}

pc_tensor *pc__judge_loss(const pc__judge *j, pc_tensor *outputs, const pc_batch *batch, pc_tensor *weights)
{
    if (!outputs)
        return number("the function that asks the network", NULL);
    return j->loss ? number("the loss function", j->loss(j->context, outputs, batch))
                   : loss_by_labels(j, outputs, batch->y, weights);
}

bool pc__judge_counts(const pc__judge *j, const pc_tensor *outputs, const pc_tensor *y)
{
    if (!y || outputs->ndim != 2 || pc_tensor_count(y) != outputs->shape[0] || !pc__is_float((pc_dtype)outputs->dtype))
        return false;
    return pc__is_float((pc_dtype)y->dtype) ? j->named && (outputs->shape[1] == 1 || outputs->shape[1] == 2)
                                            : y->ndim == 1 && y->dtype != PC_BOOL && outputs->shape[1] > 1;
}

bool pc__judge_may_count(const pc__judge *j, const pc_loader *loader)
{
    pc_field fields[2];
    if (pc_loader_fields(loader, fields, 2) < 2)
        return false;
    return pc__is_float(fields[1].dtype) ? j->named : fields[1].shape.ndim == 0;
}

/* --- whole loaders --- */

enum { LOSS, CORRECT, IGNORED, METRICS };

/* Add `value`, one number, times n to number `at` of the sums. */
static pc_status add(pc_tensor *sums, int at, pc_tensor *value, int64_t n)
{
    pc_status status = PC_OK;
    PC_NO_GRAD {
        PC_SCOPE {
            pc_tensor *one = pc_reshape(pc__as_dtype(value, PC_F64), PC_SHAPE(1));
            status = pc_saxpy(pc_slice(sums, 0, at, at + 1, 1), (double)n, one);
        }
    }
    return status;
}

/* Whether y has a label for each sample, which may be -100. */
static bool has_labels(const pc_batch *b)
{
    return b->y && b->y->ndim == 1 && !pc__is_float((pc_dtype)b->y->dtype) && b->y->dtype != PC_BOOL;
}

/* The loss, and 0 where no sample has a label: a mean of none may be NaN. For judging alone: what is learnt from shows it. */
static pc_tensor *or_0(pc_tensor *loss, const pc_batch *b)
{
    pc_tensor *none = pc_scalar(0, PC_F64, pc_tensor_device(b->y));
    return pc_where(pc_eq(pc__labels_counted(b->y), none), none, pc__as_dtype(loss, PC_F64));
}

static pc_status add_labelled(pc_tensor *sums, pc_tensor *loss, const pc_batch *b)
{
    pc_status status = PC_OK;
    PC_NO_GRAD {
        PC_SCOPE {
            pc_tensor *counted = pc__labels_counted(b->y);
            status = add(sums, LOSS, pc_mul(pc__as_dtype(loss, PC_F64), counted), 1);
            if (status == PC_OK)
                status = add(sums, IGNORED, pc_neg(pc_sub_scalar(counted, (double)b->n)), 1);
        }
    }
    return status;
}

pc_status pc__sum_loss(pc_tensor *sums, pc_tensor *loss, const pc_batch *b)
{
    return has_labels(b) ? add_labelled(sums, loss, b) : add(sums, LOSS, loss, b->n);
}

/* What logits and y are to be for the op that counts. */
static pc_status count(pc_tensor *sums, pc_tensor *outputs, pc_tensor *y, pc_tensor *loss)
{
    pc_tensor *logits = outputs->dtype == PC_F64 ? pc_cast(outputs, PC_F32) : outputs;
    pc_tensor *labels = pc__is_float((pc_dtype)y->dtype) ? pc__as_dtype(y, PC_F32) : pc__as_dtype(y, PC_I64);
    return pc__score_step(pc_slice(sums, 0, LOSS, METRICS, 1), pc_contiguous(logits), pc_contiguous(labels),
                          pc__as_dtype(loss, PC_F32));
}

static pc_status judge_outputs(const pc__judge *j, pc_tensor *sums, pc_tensor *outputs, const pc_batch *b, bool *counts)
{
    pc_tensor *loss = pc__judge_loss(j, outputs, b, NULL);
    if (loss && j->loss && has_labels(b))
        loss = or_0(loss, b);
    if (!loss)
        return pc_error_last()->status;
    *counts = pc__judge_counts(j, outputs, b->y);
    PC__TRY(*counts ? count(sums, outputs, b->y, loss) : pc__sum_loss(sums, loss, b));
    for (int i = 0; i < j->metric_count; i++) {
        pc_tensor *value = number(j->metrics[i].name, j->metrics[i].of(j->context, outputs, b));
        PC__TRY(value ? add(sums, METRICS + i, value, b->n) : pc_error_last()->status);
    }
    return PC_OK;
}

static pc_status judge_batch(const pc__judge *j, pc_module *net, pc_tensor *sums, const pc_batch *b, bool *counts)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *outputs = NULL;
        PC__EVALUATE
        {
            outputs = pc__judge_ask(j, net, b);
        }
        status = judge_outputs(j, sums, outputs, b, counts);
    }
    return status;
}

static pc_status judge_all(const pc__judge *j, pc_module *net, pc_loader *loader, pc_score *score)
{
    pc_batch batch;
    int64_t given = 0;
    bool counts = false;
    double totals[METRICS + PC_METRICS_MAX];
    pc_tensor *sums = pc_zeros(PC_SHAPE(METRICS + PC_METRICS_MAX), PC_F64, pc__loader_device(loader));
    PC__TRY(sums ? pc_loader_seek(loader, 0, 0) : pc_error_last()->status);
    while (pc_loader_next(loader, &batch)) {
        PC__TRY(batch.part ? judge_batch(j, net, sums, &batch, &counts) : PC_OK);
        score->count += batch.part;
        given += batch.whole;
    }
    if (given < pc__loader_given(loader))
        return pc_error_last()->status;
    PC__TRY(pc_read(sums, totals, sizeof totals));
    for (int i = 0; i < j->metric_count; i++)
        score->metric[i] = totals[METRICS + i] / (double)score->count;
    score->count -= (int64_t)totals[IGNORED];
    const double n = (double)score->count;
    score->loss = totals[LOSS] / n;
    score->correct = counts ? (int64_t)totals[CORRECT] : 0;
    score->accuracy = counts ? totals[CORRECT] / n : NAN;
    return PC_OK;
}

pc_status pc__judge_loader(const pc__judge *j, pc_module *net, pc_loader *loader, pc_score *score)
{
    pc_status status = PC_OK;
    *score = (pc_score){.loss = NAN, .accuracy = NAN};
    for (int i = 0; i < PC_METRICS_MAX; i++)
        score->metric[i] = NAN;
    PC_NO_GRAD {
        PC_SCOPE {
            status = judge_all(j, net, loader, score);
        }
    }
    return status;
}
