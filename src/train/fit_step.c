/* fit_step.c: one step of a training: recorded where the device works later, else plain calls. */
#include "train/fit.h"

#include "base/base.h"
#include "data/gather.h"
#include "nn/optimizer.h"
#include "nn/step.h"
#include "ops/scale.h"
#include "ops/table.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/no_grad.h>

/* From a loss on that is infinite or NaN steps do nothing: the difference is 0, or NaN and stays. Behind the gradients,
 * since a backend does a network's end and its way back as one. */
static pc_status watch(const pc__fit *fit, pc_tensor *loss)
{
    pc_status status = PC_OK;
    PC_NO_GRAD {
        pc_tensor *found = pc_slice(fit->guard, 0, PC__SCALER_FOUND, PC__SCALER_FOUND + 1, 1);
        status = pc_saxpy(found, 1, pc_reshape(pc__as_dtype(pc_sub(loss, loss), PC_F32), PC_SHAPE(1)));
        if (status == PC_OK && fit->ddp) /* a bad loss of one rank is in the gradients of all */
            status = pc_group_all_reduce(fit->group, found, PC_GROUP_SUM);
    }
    return status;
}

/* The mean of the ranks' gradients is then that of the whole batch. */
static pc_tensor *weighed(const pc__fit *fit, pc_tensor *loss, const pc_batch *batch)
{
    const int64_t counts = fit->ddp ? batch->part * pc_group_size(fit->group) : batch->whole;
    return counts == batch->whole ? loss : pc_mul_scalar(loss, (double)counts / (double)batch->whole);
}

static pc_status descend(const pc__fit *fit, pc_tensor *loss, const pc_batch *batch)
{
    pc_tensor *share = weighed(fit, loss, batch);
    PC__TRY(share ? PC_OK : pc_error_last()->status);
    if (!fit->scaler) {
        PC__TRY(pc_backward(share));
        PC__TRY(fit->guard ? watch(fit, loss) : PC_OK);
        return pc__optimizer_step(fit->optimizer, fit->guard);
    }
    pc_tensor *scaled = pc_scaler_scale(fit->scaler, share);
    PC__TRY(scaled ? pc_backward(scaled) : pc_error_last()->status);
    PC__TRY(pc_scaler_step(fit->scaler, fit->optimizer));
    return pc_scaler_update(fit->scaler);
}

static pc_batch as_batch(const pc__learning *l)
{
    const pc__pair *p = &l->now;
    pc_batch batch = {.x = p->tensor[0],
                      .y = p->tensor[1],
                      .n = pc_tensor_size(p->tensor[0], 0),
                      .sample = l->fit->tally.immediate ? l->fit->sample : NULL,
                      .tensors = p->count,
                      .whole = l->whole,
                      .part = l->part};
    memcpy(batch.tensor, p->tensor, sizeof batch.tensor);
    return batch;
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
        return pc__sum_add(fit->tally.sums, 0, loss, batch->n);
    pc_tensor *y = batch->y;
    if (!fit->judge.named)
        PC_NO_GRAD {
            outputs = pc_contiguous(outputs);
            y = pc__as_dtype(y, PC_I64);
        }
    return pc__tally_add(&fit->tally, outputs, y, loss);
}

static pc_status learn_from(pc__fit *fit, const pc_batch *batch)
{
    pc_tensor *outputs, *loss;
    if (pc__fit_sees(fit))
        fit->generator = pc_generator_get();
    PC__TRY(pc__fit_ask(fit, batch, &outputs, &loss));
    if (pc__fit_sees(fit) && !isfinite(pc_item(loss)))
        return pc__fit_not_finite(fit, fit->at.batch, batch);
    PC__TRY(add_up(fit, outputs, loss, batch));
    return descend(fit, loss, batch);
}

static pc_status learn(void *context)
{
    pc__learning *l = context;
    const pc_batch batch = as_batch(l);
    pc_status status = PC_OK;
    PC_SCOPE {
        status = learn_from(l->fit, &batch);
    }
    if (status == PC_OK && l->next.count) /* plans begin it earlier */
        status = pc__loader_gather_next(l->fit->train, l->next.tensor[0], l->next.tensor[1]);
    return status;
}

static void drop(pc__pair *p)
{
    for (int k = 0; k < PC_FIELDS_MAX; k++)
        pc_tensor_free(p->tensor[k]);
    *p = (pc__pair){0};
}

static pc_status room(const pc__fit *fit, int64_t n, pc__pair *p)
{
    drop(p);
    PC__TRY(pc__loader_room(fit->train, n, &p->tensor[0], &p->tensor[1]));
    p->count = 2;
    return PC_OK;
}

/* Whether the batch is a whole one, that a recorded step can take; the last one of several may be short. */
static bool suits_recording(const pc__fit *fit, const pc_batch *batch)
{
    if (fit->tally.immediate || (fit->step && pc_step_why(fit->step)))
        return false;
    if (fit->fixed.now.count)
        return batch->whole == fit->fixed.whole;
    return batch->first == 0 || batch->first + batch->whole < pc_loader_count(fit->train);
}

static pc_status fix(pc_tensor **fixed, pc_tensor *t)
{
    if (*fixed)
        return pc_copy(*fixed, t);
    PC_SCOPE {
        *fixed = pc_tensor_retain(pc_clone(t));
    }
    return *fixed ? PC_OK : pc_error_last()->status;
}

/* The batch that was passed last, of n, is in the pair `now`. */
static pc_status have(pc__fit *fit, int64_t n)
{
    pc__learning *l = &fit->fixed;
    if (!l->now.count || !l->next.count) {
        PC__TRY(room(fit, n, &l->now));
        PC__TRY(room(fit, n, &l->next));
    }
    if (!fit->ahead)
        return pc__loader_gather(fit->train, l->now.tensor[0], l->now.tensor[1]);
    const pc__pair read = l->now;
    l->now = l->next;
    l->next = read;
    fit->turn = (fit->turn + 1) % PC__STEP_TURNS;
    return PC_OK;
}

static pc_status learn_whole(pc__fit *fit, const pc_batch *batch)
{
    pc__learning *l = &fit->fixed;
    l->fit = fit;
    l->whole = batch->whole;
    l->part = batch->part;
    if (!batch->x) {
        PC__TRY(have(fit, batch->n));
        fit->ahead = pc__loader_has_next(fit->train);
    } else {
        for (int k = 0; k < batch->tensors; k++)
            PC__TRY(fix(&l->now.tensor[k], batch->tensor[k]));
        l->now.count = batch->tensors;
    }
    fit->step = fit->step ? fit->step : pc_step_new(learn, l, fit->optimizer);
    return fit->step ? pc__step_run(fit->step, fit->turn) : pc_error_last()->status;
}

static pc_status learn_part(pc__fit *fit, const pc_batch *batch)
{
    pc__learning l = {.fit = fit, .now = {.count = batch->tensors}, .whole = batch->whole, .part = batch->part};
    memcpy(l.now.tensor, batch->tensor, sizeof l.now.tensor);
    if (batch->x)
        return learn(&l);
    pc_status status = room(fit, batch->n, &l.now);
    if (status == PC_OK)
        status = pc__loader_gather(fit->train, l.now.tensor[0], l.now.tensor[1]);
    if (status == PC_OK)
        status = learn(&l);
    drop(&l.now);
    return status;
}

pc_status pc__fit_step(pc__fit *fit, const pc_batch *batch)
{
    fit->sample = batch->sample;
    PC__TRY(suits_recording(fit, batch) ? learn_whole(fit, batch) : learn_part(fit, batch));
    return pc__tally_passed(&fit->tally, batch->whole);
}

void pc__fit_end_steps(pc__fit *fit)
{
    pc_step_free(fit->step);
    drop(&fit->fixed.now);
    drop(&fit->fixed.next);
    fit->step = NULL;
}
