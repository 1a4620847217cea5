/* fit.c: the training loop. */
#include "train/fit.h"

#include "base/base.h"
#include "data/gather.h"
#include "device/trace.h"
#include "nn/optimizer.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/trace.h>

double pc__seconds_now(void)
{
    return (double)pc__now() * 1e-9;
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

/* What has come since the last time goes into the curve. */
static void draw(pc__fit *fit)
{
    const pc__score *now = &fit->at.score;
    const int64_t counted = pc__score_counted(now) - pc__score_counted(&fit->drawn);
    if (counted <= 0)
        return;
    int64_t passed = fit->at.epoch * pc_loader_batches(fit->train) + fit->at.batch;
    pc__curve_add(&fit->curve, PC__MAX(passed - 1, 0), now->loss - fit->drawn.loss, counted);
    fit->drawn = *now;
}

pc_status pc__fit_settle(pc__fit *fit)
{
    PC__TRY(pc__tally_settle(&fit->tally));
    PC__TRY(pc__fit_check(fit));
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
    if (!fit->callbacks || !fit->callbacks->progress || !pc__fit_speaks(fit))
        return;
    const pc__score *score = &fit->at.score;
    int64_t total = pc__loader_given(fit->train);
    pc_progress progress = {.epoch = (int)fit->at.epoch + 1,
                            .epochs = fit->epochs,
                            .done = done,
                            .total = total,
                            .loss = pc__score_loss(score),
                            .accuracy = fit->counts ? pc__score_accuracy(score) : NAN,
                            .images_per_second = fit->at.seconds > 0 ? (double)done / fit->at.seconds : 0,
                            .seconds_left = seconds_left(fit, (double)done, (double)total)};
    fit->callbacks->progress(fit->callbacks->context, &progress);
}

static bool wants_stop(pc__fit *fit)
{
    const pc_train_callbacks *c = fit->callbacks;
    return pc__tally_grants(&fit->tally, PC__WISH_STOP, c && c->stop && c->stop(c->context));
}

static pc_status set_rate(pc__fit *fit)
{
    if (fit->schedule.steps == 0)
        return PC_OK;
    const int64_t step = fit->at.epoch * pc_loader_batches(fit->train) + fit->at.batch;
    const double rate = pc_schedule_lr(&fit->schedule, step);
    if (isnan(rate))
        return pc_error_last()->status;
    const double given = fit->optimizer->given_lr;
    pc_optimizer_set_lr(fit->optimizer, rate);
    fit->optimizer->given_lr = given;
    return PC_OK;
}

/* The rest of the epoch under way. */
static pc_status run_epoch(pc__fit *fit)
{
    bool gathers = pc__loader_gathers(fit->train);
    PC__TRY(pc_loader_seek(fit->train, fit->at.epoch, fit->at.batch));
    fit->ahead = false;
    fit->drawn = fit->at.score;
    PC__TRY(pc__tally_begin(&fit->tally, pc__loader_device(fit->train)));
    PC__TRY(pc__fit_guard(fit));
    pc_batch batch;
    double start = pc__seconds_now();
    while (gathers ? pc__loader_pass(fit->train, &batch) : pc_loader_next(fit->train, &batch)) {
        int64_t done = batch.first + batch.whole;
        PC__TRY(set_rate(fit));
        PC__TRY(pc__fit_step(fit, &batch));
        if (fit->at.batch + 1 == pc_loader_batches(fit->train))
            PC__TRY(pc__tally_settle(&fit->tally)); /* here, so that the epoch's seconds have all of its work */
        double now = pc__seconds_now();
        fit->at.seconds += now - start;
        start = now;
        fit->at.batch++;
        PC__TRY(pc__fit_check(fit));
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

/* A folder's pictures, by their labels: each picture's answer is kept. */
static pc_status score_answers(pc__fit *fit, pc_epoch_result *result)
{
    pc__score test;
    PC__TRY(pc__answers_collect(&fit->answers, fit->net, fit->test, &test));
    result->test_loss = pc__score_loss(&test);
    result->test_accuracy = pc__score_accuracy(&test);
    result->test_balanced_accuracy = pc__balanced_accuracy(fit->answers.confusion, fit->answers.classes);
    result->never_named = pc__never_named(fit->answers.confusion, fit->answers.classes);
    return PC_OK;
}

static pc_status score_test(pc__fit *fit, pc_epoch_result *result)
{
    pc__judge judge = fit->judge;
    pc_score test;
    judge.named = pc__loader_names_classes(fit->test);
    if (judge.named && !judge.loss && !judge.forward && !judge.metric_count)
        return score_answers(fit, result);
    PC__TRY(pc__judge_loader(&judge, fit->net, fit->test, &test));
    result->test_loss = test.loss;
    result->test_accuracy = test.accuracy;
    result->metrics = judge.metric_count;
    memcpy(result->metric, test.metric, sizeof result->metric);
    return PC_OK;
}

static pc_status end_epoch(pc__fit *fit)
{
    const pc__score *score = &fit->at.score;
    pc_epoch_result result = {.epoch = (int)fit->at.epoch + 1,
                              .epochs = fit->epochs,
                              .loss = pc__score_loss(score),
                              .accuracy = fit->counts ? pc__score_accuracy(score) : NAN,
                              .test_loss = NAN,
                              .test_accuracy = NAN,
                              .test_balanced_accuracy = NAN,
                              .seconds = fit->at.seconds,
                              .has_test = fit->test != NULL,
                              .uneven = fit->uneven,
                              .images_per_second = fit->at.seconds > 0 ? (double)score->seen / fit->at.seconds : NAN};
    PC__TRY(pc__fit_ranks_buffers(fit));
    PC__TRY(fit->test ? score_test(fit, &result) : PC_OK);
    PC__TRY(pc__fit_ranks_first(fit, &result, sizeof result)); /* what is decided by it is the same in all */
    PC__TRY(pc__fit_whole(fit, true));
    PC__TRY(pc__best_offer(&fit->best, fit->net, pc__fit_parameters(fit), &result));
    fit->at = (pc__standing){.epoch = fit->at.epoch + 1};
    fit->last = result;
    PC__TRY(fit->passed ? fit->passed(fit->context, fit, &result) : PC_OK);
    if (fit->callbacks && fit->callbacks->epoch && pc__fit_speaks(fit))
        fit->callbacks->epoch(fit->callbacks->context, &result);
    PC__TRY(pc__fit_ranks_rate(fit)); /* the callback may have set another one */
    PC__TRY(fit->told ? fit->told(fit->context, fit) : PC_OK);
    return pc__fit_whole(fit, false);
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

void pc__fit_set_training(const pc__fit *fit)
{
    pc_module_set_training(fit->net, !fit->trained);
    if (fit->trained)
        pc_module_set_training(fit->trained, true);
}

pc_status pc__fit_run(pc__fit *fit)
{
    pc__fit_set_training(fit);
    fit->first_epoch = fit->at.epoch;
    fit->first_batch = fit->at.batch;
    fit->tally = (pc__tally){.score = &fit->at.score, .network = fit->network};
    fit->judge.named = pc__loader_names_classes(fit->train);
    fit->counts = pc__judge_may_count(&fit->judge, fit->train);
    pc_status status = pc__fit_ranks_join(fit);
    if (status == PC_OK)
        status = run_epochs(fit);
    if (status == PC_OK && fit->stopped)
        status = pc__fit_ranks_buffers(fit); /* in the middle of an epoch, whose end shares them */
    if (status != PC_OK)                     /* before anything waits for what others no longer do */
        status = pc__fit_ranks_end(fit, status);
    pc__tally_close(&fit->tally);
    pc_tensor_free(fit->guard);
    fit->guard = NULL;
    pc__fit_end_steps(fit);
    pc__fit_ranks_leave(fit);
    return status;
}
