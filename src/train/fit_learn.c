/* fit_learn.c: what a step does with a batch: its parts forward and back, one after another, and the optimiser. */
#include "train/fit.h"

#include "base/base.h"
#include "parallel/pipeline.h"
#include "parallel/zero_state.h"
#include "nn/optimizer.h"
#include "nn/scaler.h"
#include "ops/norm.h"
#include "ops/scale.h"
#include "ops/table.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/no_grad.h>

/* All ranks make the same passes, so a part has a sample in every rank. */
int pc__fit_parts(const pc__fit *fit, int64_t whole)
{
    const int64_t least = whole / (fit->group ? pc_group_size(fit->group) : 1);
    return (int)PC__MAX(1, PC__MIN(fit->accumulate, least));
}

pc_status pc__fit_part(const pc_batch *batch, int i, int parts, pc_batch *part)
{
    const int64_t from = batch->n * i / parts, to = batch->n * (i + 1) / parts;
    *part = *batch;
    if (parts == 1)
        return PC_OK;
    part->n = part->part = to - from;
    part->sample = batch->sample ? batch->sample + from : NULL;
    for (int k = 0; k < batch->tensors; k++) {
        part->tensor[k] = pc_slice(batch->tensor[k], 0, from, to, 1);
        PC__TRY(part->tensor[k] ? PC_OK : pc_error_last()->status);
    }
    part->x = part->tensor[0];
    part->y = batch->tensors > 1 ? part->tensor[1] : NULL;
    return PC_OK;
}

/* One of the three numbers of a guard, or of a scaler, which has the same ones. */
static pc_tensor *number_of(pc_tensor *numbers, int which)
{
    return pc_slice(numbers, 0, which, which + 1, 1);
}

/* From a loss on that is infinite or NaN steps do nothing: the difference is 0, or NaN and stays. Behind the gradients,
 * since a backend does a network's end and its way back as one. */
static pc_status watch(const pc__fit *fit, pc_tensor *loss)
{
    pc_status status = PC_OK;
    PC_NO_GRAD {
        pc_tensor *found = number_of(fit->guard, PC__SCALER_FOUND);
        status = pc_saxpy(found, 1, pc_reshape(pc__as_dtype(pc_sub(loss, loss), PC_F32), PC_SHAPE(1)));
    }
    return status;
}

/* A bad loss of one rank is in the gradients of all. */
static pc_status watch_together(const pc__fit *fit)
{
    pc_status status = PC_OK;
    if (!fit->guard || !fit->group)
        return PC_OK;
    PC_NO_GRAD {
        pc_tensor *found = number_of(fit->guard, PC__SCALER_FOUND);
        status = pc_group_all_reduce(fit->group, found, PC_GROUP_SUM);
    }
    return status;
}

/* A scaler's step is left out for a bad loss as for a bad gradient. Of those that came before the first bad loss the guard has the
 * number: the optimiser's has not those that were left out for their gradients. */
static pc_status watch_scaled(const pc__fit *fit)
{
    pc_status status = PC_OK;
    if (!fit->guard)
        return PC_OK;
    PC_NO_GRAD {
        pc_tensor *found = number_of(fit->guard, PC__SCALER_FOUND); /* 0 or NaN */
        status = pc_saxpy(number_of(fit->guard, PC__SCALER_CLEAN), 1, pc__as_dtype(pc_eq(found, found), PC_F32));
        if (status == PC_OK)
            status = pc_saxpy(number_of(fit->scaler->numbers, PC__SCALER_FOUND), 1, found);
    }
    return status;
}

/* What the mean of n samples counts for, so that the mean of the ranks' gradients is that of the whole batch. */
static double weight_of(const pc__fit *fit, int64_t n, const pc_batch *batch)
{
    if (fit->group)
        return batch->part ? (double)(n * pc_group_size(fit->group)) / (double)batch->whole : 0;
    return (double)n / (double)batch->n;
}

/* Where parts of a batch, or of ranks, may have labels that are ignored: how many samples of the whole batch count. Else *total
 * is NULL. */
static pc_status count_all(const pc__fit *fit, const pc_batch *batch, int parts, pc_tensor **total)
{
    *total = NULL;
    if ((parts == 1 && !fit->group) || fit->judge.loss || fit->judge.named || !batch->y ||
        pc__is_float((pc_dtype)batch->y->dtype))
        return PC_OK;
    PC_NO_GRAD {
        *total = pc__labels_counted(batch->y);
        if (*total && !batch->part)
            *total = pc_mul_scalar(*total, 0);
    }
    PC__TRY(*total ? PC_OK : pc_error_last()->status);
    return fit->group ? pc_group_all_reduce(fit->group, *total, PC_GROUP_SUM) : PC_OK;
}

/* What the mean loss of a part counts for in that of the batch, of which `total` samples count. */
static pc_tensor *share_of(const pc__fit *fit, pc_tensor *loss, const pc_tensor *total, const pc_batch *part)
{
    pc_tensor *weight = NULL;
    PC_NO_GRAD {
        weight = pc_div(pc__labels_counted(part->y), pc_clamp((pc_tensor *)total, 1, INFINITY));
        if (fit->group)
            weight = pc_mul_scalar(weight, part->part ? pc_group_size(fit->group) : 0);
    }
    return weight ? pc_mul(loss, pc__as_dtype(weight, (pc_dtype)loss->dtype)) : NULL;
}

static pc_status go_back(const pc__fit *fit, pc_tensor *loss, pc_tensor *share)
{
    pc_tensor *scaled = share && fit->scaler ? pc_scaler_scale(fit->scaler, share) : share;
    PC__TRY(scaled ? pc_backward(scaled) : pc_error_last()->status);
    return fit->guard ? watch(fit, loss) : PC_OK;
}

static pc_status descend(const pc__fit *fit)
{
    PC__TRY(watch_together(fit));
    if (!fit->scaler)
        return fit->zero ? pc__zero_step(fit->zero, fit->optimizer, fit->guard)
                         : pc__optimizer_step(fit->optimizer, fit->guard);
    PC__TRY(watch_scaled(fit));
    PC__TRY(pc_scaler_step(fit->scaler, fit->optimizer));
    return pc_scaler_update(fit->scaler);
}

pc_status pc__fit_ask(pc__fit *fit, const pc_batch *batch, pc_tensor **outputs, pc_tensor **loss)
{
    static const pc_dtype products[] = {[PC_MIXED_NONE] = PC_F32, [PC_MIXED_BF16] = PC_BF16, [PC_MIXED_F16] = PC_F16};
    pc__blended given;
    *outputs = *loss = NULL;
    PC__TRY(pc__mix_batch(&fit->mix, batch, &given));
    PC_AUTOCAST(products[fit->mixed]) {
        *outputs = pc__judge_ask(&fit->judge, fit->net, &given.batch);
        *loss = pc__mix_loss(&fit->mix, &fit->judge, *outputs, &given, fit->class_weights);
    }
    return *loss ? PC_OK : pc_error_last()->status;
}

static pc_status add_up(pc__fit *fit, pc_tensor *outputs, pc_tensor *loss, const pc_batch *batch)
{
    fit->counts = pc__judge_counts(&fit->judge, outputs, batch->y);
    if (!batch->part)
        return PC_OK;
    if (!fit->counts)
        return pc__sum_loss(fit->tally.sums, loss, batch);
    pc_tensor *y = batch->y;
    if (!fit->judge.named)
        PC_NO_GRAD {
            outputs = pc_contiguous(outputs);
            y = pc__as_dtype(y, PC_I64);
        }
    return pc__tally_add(&fit->tally, outputs, y, loss);
}

static pc_status learn_part(pc__fit *fit, const pc_batch *batch, int i, int parts, pc_tensor *total)
{
    pc_tensor *outputs, *loss;
    pc_batch part;
    PC__TRY(pc__fit_part(batch, i, parts, &part));
    if (pc__fit_sees(fit))
        fit->generator = pc_generator_get();
    PC__TRY(pc__fit_ask(fit, &part, &outputs, &loss));
    if (pc__fit_sees(fit) && !isfinite(pc_item(loss)))
        return pc__fit_not_finite(fit, fit->at.batch, &part, 1);
    PC__TRY(add_up(fit, outputs, loss, &part));
    const double weight = total ? 0 : weight_of(fit, part.n, batch);
    return go_back(fit, loss,
                   total         ? share_of(fit, loss, total, &part)
                   : weight == 1 ? loss
                                 : pc_mul_scalar(loss, weight));
}

/* Gradients add up, and ranks exchange those of all parts: with pc_ddp at once, as a recorded step does each time. */
static pc_status learn_parts(pc__fit *fit, const pc_batch *batch)
{
    const int parts = pc__fit_parts(fit, batch->whole);
    pc_tensor *total;
    pc_status status = count_all(fit, batch, parts, &total);
    pc__shared_norm_stand_in(fit->group && !batch->part);
    for (int i = 0; i < parts && status == PC_OK; i++) {
        if (fit->ddp)
            pc__ddp_hold(fit->ddp, i < parts - 1);
        PC_SCOPE {
            status = learn_part(fit, batch, i, parts, total);
        }
    }
    pc__shared_norm_stand_in(false);
    if (fit->ddp)
        pc__ddp_hold(fit->ddp, false);
    for (int i = 0; i < fit->optimizer->count && status != PC_OK && parts > 1; i++)
        pc_zero_grad(fit->optimizer->parameters[i]); /* those of the parts before are no step */
    return status;
}

pc_status pc__fit_learn(pc__fit *fit, const pc_batch *batch)
{
    PC__TRY(learn_parts(fit, batch));
    return descend(fit);
}
