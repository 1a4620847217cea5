/* fit.c: the training loop. */
#include "train/fit.h"

#include "base/base.h"
#include "data/gather.h"
#include "device/trace.h"
#include "nn/optimizer.h"
#include "nn/step.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/trace.h>

double pc__seconds_now(void)
{
    return (double)pc__now() * 1e-9;
}

static pc_status descend(const pc__fit *fit, pc_tensor *loss)
{
    if (!fit->scaler) {
        PC__TRY(pc_backward(loss));
        return pc_optimizer_step(fit->optimizer);
    }
    pc_tensor *scaled = pc_scaler_scale(fit->scaler, loss);
    PC__TRY(scaled ? pc_backward(scaled) : pc_error_last()->status);
    PC__TRY(pc_scaler_step(fit->scaler, fit->optimizer));
    return pc_scaler_update(fit->scaler);
}

pc_status pc__fit_scaler(pc__fit *fit)
{
    if (fit->mixed != PC_MIXED_F16 || fit->scaler)
        return PC_OK;
    fit->scaler = pc_scaler(pc_tensor_device(fit->optimizer->parameters[0]));
    return fit->scaler ? PC_OK : pc_error_last()->status;
}

pc_status pc__fit_weigh(pc__fit *fit, const float *weights, int classes)
{
    PC_SCOPE {
        pc_tensor *w = pc_from_data(weights, PC_SHAPE(classes), PC_F32, pc__loader_device(fit->train));
        fit->class_weights = pc_tensor_retain(w);
    }
    return fit->class_weights ? PC_OK : pc_error_last()->status;
}

static pc_status learn(void *context)
{
    pc__learning *l = context;
    static const pc_dtype products[] = {[PC_MIXED_NONE] = PC_F32, [PC_MIXED_BF16] = PC_BF16, [PC_MIXED_F16] = PC_F16};
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *logits = NULL, *loss = NULL;
        PC_AUTOCAST(products[l->fit->mixed]) {
            logits = pc_forward(l->fit->net, l->now.x);
            loss = logits ? pc__batch_loss(logits, l->now.y, l->fit->class_weights) : NULL;
        }
        status = loss ? pc__tally_add(&l->fit->tally, logits, l->now.y, loss) : pc_error_last()->status;
        if (status == PC_OK)
            status = descend(l->fit, loss);
    }
    if (status == PC_OK && l->next.x) /* plans begin it earlier */
        status = pc__loader_gather_next(l->fit->train, l->next.x, l->next.y);
    return status;
}

static void drop(pc__pair *p)
{
    pc_tensor_free(p->x);
    pc_tensor_free(p->y);
    *p = (pc__pair){NULL, NULL};
}

static pc_status room(const pc__fit *fit, int64_t n, pc__pair *p)
{
    drop(p);
    return pc__loader_room(fit->train, n, &p->x, &p->y);
}

/* Whether the batch is a whole one, that a recorded step can take; the last one of several may be short. */
static bool suits_recording(const pc__fit *fit, const pc_batch *batch)
{
    if (fit->tally.immediate || (fit->step && pc_step_why(fit->step)))
        return false;
    if (fit->fixed.now.x)
        return batch->n == pc_tensor_size(fit->fixed.now.x, 0);
    return batch->first == 0 || batch->first + batch->n < pc_loader_count(fit->train);
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
    if (!l->now.y || !l->next.y) {
        PC__TRY(room(fit, n, &l->now));
        PC__TRY(room(fit, n, &l->next));
    }
    if (!fit->ahead)
        return pc__loader_gather(fit->train, l->now.x, l->now.y);
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
    if (!batch->x) {
        PC__TRY(have(fit, batch->n));
        fit->ahead = pc__loader_has_next(fit->train);
    } else {
        PC__TRY(fix(&l->now.x, batch->x));
        PC__TRY(fix(&l->now.y, batch->y));
    }
    fit->step = fit->step ? fit->step : pc_step_new(learn, l, fit->optimizer);
    return fit->step ? pc__step_run(fit->step, fit->turn) : pc_error_last()->status;
}

static pc_status learn_part(pc__fit *fit, const pc_batch *batch)
{
    pc__learning l = {.fit = fit, .now = {batch->x, batch->y}};
    if (batch->x)
        return learn(&l);
    pc_status status = room(fit, batch->n, &l.now);
    if (status == PC_OK)
        status = pc__loader_gather(fit->train, l.now.x, l.now.y);
    if (status == PC_OK)
        status = learn(&l);
    drop(&l.now);
    return status;
}

static pc_status step(pc__fit *fit, const pc_batch *batch)
{
    PC__TRY(suits_recording(fit, batch) ? learn_whole(fit, batch) : learn_part(fit, batch));
    return pc__tally_passed(&fit->tally, batch->n);
}

static void end_steps(pc__fit *fit)
{
    pc_step_free(fit->step);
    drop(&fit->fixed.now);
    drop(&fit->fixed.next);
    fit->step = NULL;
}

/* What has come since the last time goes into the curve. */
static void draw(pc__fit *fit)
{
    const pc__score *now = &fit->at.score;
    if (now->seen <= fit->drawn.seen)
        return;
    int64_t passed = fit->at.epoch * pc_loader_batches(fit->train) + fit->at.batch;
    pc__curve_add(&fit->curve, PC__MAX(passed - 1, 0), now->loss - fit->drawn.loss, now->seen - fit->drawn.seen);
    fit->drawn = *now;
}

pc_status pc__fit_settle(pc__fit *fit)
{
    PC__TRY(pc__tally_settle(&fit->tally));
    draw(fit);
    return PC_OK;
}

/* Time left in all, from the pace of this epoch. */
static double seconds_left(const pc__fit *fit, double done, double total)
{
    double per_picture = fit->at.seconds / done;
    double epochs_after = (double)(fit->epochs - fit->at.epoch - 1);
    return per_picture * (total - done + epochs_after * total);
}

static void tell_progress(const pc__fit *fit, int64_t done)
{
    if (!fit->callbacks || !fit->callbacks->progress)
        return;
    const pc__score *score = &fit->at.score;
    int64_t total = pc_loader_count(fit->train);
    pc_progress progress = {.epoch = (int)fit->at.epoch + 1,
                            .epochs = fit->epochs,
                            .done = done,
                            .total = total,
                            .loss = pc__score_loss(score),
                            .accuracy = pc__score_accuracy(score),
                            .images_per_second = fit->at.seconds > 0 ? (double)done / fit->at.seconds : 0,
                            .seconds_left = seconds_left(fit, (double)done, (double)total)};
    fit->callbacks->progress(fit->callbacks->context, &progress);
}

static bool wants_stop(const pc__fit *fit)
{
    return fit->callbacks && fit->callbacks->stop && fit->callbacks->stop(fit->callbacks->context);
}

/* The rest of the epoch under way. */
static pc_status run_epoch(pc__fit *fit)
{
    bool resident = pc_loader_resident(fit->train, NULL, 0);
    PC__TRY(pc_loader_seek(fit->train, fit->at.epoch, fit->at.batch));
    fit->ahead = false;
    fit->drawn = fit->at.score;
    PC__TRY(pc__tally_begin(&fit->tally, pc__loader_device(fit->train)));
    pc_batch batch;
    double start = pc__seconds_now();
    while (resident ? pc__loader_pass(fit->train, &batch) : pc_loader_next(fit->train, &batch)) {
        int64_t done = batch.first + batch.n;
        PC__TRY(step(fit, &batch));
        if (fit->at.batch + 1 == pc_loader_batches(fit->train))
            PC__TRY(pc__tally_settle(&fit->tally)); /* here, so that the epoch's seconds have all of its work */
        double now = pc__seconds_now();
        fit->at.seconds += now - start;
        start = now;
        fit->at.batch++;
        draw(fit);
        PC__TRY(fit->passed ? fit->passed(fit->context, fit, NULL) : PC_OK);
        tell_progress(fit, done);
        if (wants_stop(fit)) {
            fit->stopped = true;
            return pc__fit_settle(fit);
        }
    }
    return fit->at.batch == pc_loader_batches(fit->train) ? PC_OK : pc_error_last()->status;
}

static pc_status score_test(pc__fit *fit, pc_epoch_result *result)
{
    pc__score test;
    PC__TRY(pc__answers_collect(&fit->answers, fit->net, fit->test, &test));
    result->test_loss = pc__score_loss(&test);
    result->test_accuracy = pc__score_accuracy(&test);
    result->test_balanced_accuracy = pc__balanced_accuracy(fit->answers.confusion, fit->answers.classes);
    result->never_named = pc__never_named(fit->answers.confusion, fit->answers.classes);
    return PC_OK;
}

static pc_status end_epoch(pc__fit *fit)
{
    const pc__score *score = &fit->at.score;
    pc_epoch_result result = {.epoch = (int)fit->at.epoch + 1,
                              .epochs = fit->epochs,
                              .loss = pc__score_loss(score),
                              .accuracy = pc__score_accuracy(score),
                              .test_loss = NAN,
                              .test_accuracy = NAN,
                              .test_balanced_accuracy = NAN,
                              .seconds = fit->at.seconds,
                              .has_test = fit->test != NULL,
                              .uneven = fit->uneven,
                              .images_per_second = fit->at.seconds > 0 ? (double)score->seen / fit->at.seconds : NAN};
    if (!isfinite(result.loss))
        pc__log(PC_LOG_WARNING, "the loss of epoch %d is not finite; a smaller learning rate may help", result.epoch);
    PC__TRY(fit->test ? score_test(fit, &result) : PC_OK);
    PC__TRY(pc__best_offer(&fit->best, fit->net, fit->optimizer, &result));
    fit->at = (pc__standing){.epoch = fit->at.epoch + 1};
    fit->last = result;
    PC__TRY(fit->passed ? fit->passed(fit->context, fit, &result) : PC_OK);
    if (fit->callbacks && fit->callbacks->epoch)
        fit->callbacks->epoch(fit->callbacks->context, &result);
    return PC_OK;
}

bool pc__fit_is_over(const pc__fit *fit)
{
    const int best = fit->best.result.epoch;
    return fit->at.epoch >= fit->epochs || (fit->early_stop && best && fit->at.epoch - best >= fit->early_stop);
}

static pc_status run_epochs(pc__fit *fit)
{
    while (!pc__fit_is_over(fit)) {
        PC_TRACE_RANGE("epoch")
            PC__TRY(run_epoch(fit));
        /* A stop on the last batch of an epoch leaves that epoch to be ended on resuming. */
        if (fit->stopped)
            return PC_OK;
        PC__TRY(end_epoch(fit));
    }
    return PC_OK;
}

pc_status pc__fit_run(pc__fit *fit)
{
    pc_module_set_training(fit->net, true);
    fit->tally = (pc__tally){.score = &fit->at.score};
    pc_status status = run_epochs(fit);
    pc__tally_close(&fit->tally);
    end_steps(fit);
    return status;
}
