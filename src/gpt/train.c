/* train.c: the training loop of a GPT. */
#include "gpt/train.h"
#include "text/corpus.h"
#include "train/fit.h"

#include <paracord/no_grad.h>

#include <math.h>

static void tell_progress(pc__gpt_training *t)
{
    const pc_gpt_train_callbacks *c = t->o.callbacks;
    if (c && c->progress && !t->rank)
        c->progress(c->context, &t->at);
}

static bool is_asked_to_stop(const pc__gpt_training *t)
{
    const pc_gpt_train_callbacks *c = t->o.callbacks;
    return c && c->stop && c->stop(c->context);
}

/* Read the sum of the losses since the last time. Waits for the device. */
static pc_status read_loss(pc__gpt_training *t)
{
    float sum;
    if (!t->summed)
        return PC_OK;
    if (t->data)
        PC__TRY(pc_group_all_reduce(t->data, t->loss, PC_GROUP_MEAN));
    PC__TRY(pc_read(t->loss, &sum, sizeof sum));
    PC__TRY(pc_fill(t->loss, 0));
    t->at.loss = sum / (double)t->summed;
    pc__curve_add(&t->run.curve, t->at.step - 1, sum, t->summed);
    t->summed = 0;
    return PC_OK;
}

/* Speed is that of the steps alone, tests and saving aside. */
typedef struct pace {
    double spent; /* seconds in steps */
    int64_t steps;
} pace;

static void note_speed(pc__gpt_training *t, const pace *c)
{
    if (c->steps < 1 || !(c->spent > 0))
        return;
    const double tokens = (double)pc_tensor_count(t->x) * (double)c->steps / c->spent;
    t->at.tokens_per_second = t->run.tokens_per_second = tokens / t->o.batch * t->all;
    t->at.mfu = t->run.mfu = tokens * pc_gpt_flops(t->gpt, t->x->shape[1]) / t->o.tensor_parallel / t->peak;
    t->at.seconds_left = (double)(t->o.steps - t->at.step) * c->spent / (double)c->steps;
}

static pc_status diverged(const pc__gpt_training *t, double loss, const char *of)
{
    return pc__fail(PC_ERR_RANGE, "the loss of %s %lld is %g; a lower rate (lr) or a longer warm-up may help", of,
                    (long long)t->at.step, loss);
}

static pc_status one_step(pc__gpt_training *t, pace *c)
{
    const double start = pc__seconds_now();
    t->at.lr = pc_schedule_lr(&t->schedule, t->at.step);
    pc_optimizer_set_lr(t->optimizer, t->at.lr);
    PC__TRY(pc__corpus_draw_rows(t->corpus, PC_CORPUS_TRAINING, t->o.seed, t->at.step, t->first, t->x, t->y));
    PC__TRY(pc_step_run(t->step));
    t->at.step++, t->summed++;
    const int every = t->device.type == PC_CPU ? 1 : 10;
    if (t->summed >= every) {
        PC__TRY(read_loss(t));
        if (!isfinite(t->at.loss))
            return diverged(t, t->at.loss, "step");
    }
    c->spent += pc__seconds_now() - start;
    c->steps++;
    note_speed(t, c);
    tell_progress(t);
    return PC_OK;
}

/* --- tests --- */

/* The mean over the same stretches each time. */
static pc_status mean_loss(pc__gpt_training *t, pc_corpus_part part, double *mean)
{
    pc_status status = PC_OK;
    double sum = 0;
    for (int i = 0; i < t->o.test_batches && status == PC_OK; i++) {
        status = pc__corpus_draw_rows(t->corpus, part, t->o.seed + 1, i, t->first, t->x, t->y);
        PC_NO_GRAD
            PC_SCOPE {
                PC__EVALUATE
                {
                    pc_tensor *loss =
                        status == PC_OK ? pc_gpt_parallel_loss(t->gpt, pc_forward(t->gpt, t->x), t->y) : NULL;
                    sum += loss ? pc_item(loss) : NAN;
                    status = loss ? PC_OK : pc_error_last()->status;
                }
            }
    }
    *mean = t->weight * sum / t->o.test_batches;
    return status == PC_OK ? pc__gpt_ranks_mean(t, mean) : status;
}

static bool writes_samples(const pc__gpt_training *t)
{
    return t->o.sample >= 0 && t->tokenizer;
}

static pc_status make_sample(pc__gpt_training *t)
{
    if (!writes_samples(t) || t->rank)
        return PC_OK;
    char *sample =
        pc_gpt_write(pc__gpt_ranks_network(t), t->tokenizer, NULL,
                     (pc_gpt_write_options){.tokens = t->o.sample, .temperature = 0.8, .seed = (uint64_t)t->at.step});
    if (!sample)
        return pc_error_last()->status;
    pc__free(t->run.sample);
    t->run.sample = sample;
    return PC_OK;
}

static pc_status note_test(pc__gpt_training *t, const pc_gpt_test *test)
{
    PC__TRY(pc__grow((void **)&t->run.tested, &t->run.tested_room, t->run.tested_count, sizeof *t->run.tested));
    t->run.tested[t->run.tested_count++] = (pc__gpt_tested){(double)test->step, test->loss, test->test_loss};
    return PC_OK;
}

static pc_status write_report(pc__gpt_training *t, bool running)
{
    char path[PATH_MAX], name[PC_DEVICE_NAME_MAX];
    if (!t->o.report)
        return PC_OK;
    PC__TRY(pc__gpt_path(t, "report.html", path));
    t->run.title = t->o.out;
    t->run.device = pc_device_name(t->device, name);
    t->run.settings = t->settings;
    t->run.shared = t->shared;
    t->run.network = t->words;
    t->run.step = t->at.step, t->run.steps = t->o.steps;
    t->run.parameters = pc__gpt_elements(t->gpt);
    t->run.tokens = (int64_t)t->all * t->x->shape[1];
    t->run.running = running;
    return t->o.report(path, &t->run);
}

static pc_status test(pc__gpt_training *t)
{
    const pc_gpt_train_callbacks *c = t->o.callbacks;
    const bool held = pc_corpus_size(t->corpus, PC_CORPUS_TESTING) > 0;
    pc_gpt_test found = {.step = t->at.step, .steps = t->o.steps, .test_loss = NAN};
    PC__TRY(read_loss(t));
    PC__TRY(mean_loss(t, PC_CORPUS_TRAINING, &found.loss));
    if (held)
        PC__TRY(mean_loss(t, PC_CORPUS_TESTING, &found.test_loss));
    if (!isfinite(found.loss) || (held && !isfinite(found.test_loss)))
        return diverged(t, isfinite(found.loss) ? found.test_loss : found.loss, "the test after step");
    found.best = !held || found.test_loss < t->best;
    t->best = held && found.best ? found.test_loss : t->best;
    if (found.best || writes_samples(t))
        PC__TRY(pc__gpt_ranks_whole(t, true));
    PC__TRY(make_sample(t));
    PC__TRY(note_test(t, &found));
    t->run.seconds = found.seconds = t->before + pc__seconds_now() - t->began;
    found.sample = t->run.sample;
    if (found.best && !t->rank)
        PC__TRY(pc_gpt_save(pc__gpt_ranks_network(t), t->o.out));
    PC__TRY(pc__gpt_ranks_whole(t, false));
    if (c && c->tested && !t->rank)
        c->tested(c->context, &found);
    return PC_OK;
}

static pc_status save(pc__gpt_training *t, bool running)
{
    char path[PATH_MAX];
    PC__TRY(read_loss(t));
    t->run.seconds = t->before + pc__seconds_now() - t->began;
    PC__TRY(pc__gpt_path(t, "checkpoint", path));
    PC__TRY(pc__gpt_checkpoint_save(t, path));
    PC__TRY(pc__gpt_folder_saved(t));
    return t->rank ? PC_OK : write_report(t, running);
}

/* A training that was killed between its last checkpoint and its report has nothing left to do but that. */
static pc_status report_again(pc__gpt_training *t)
{
    PC__TRY(pc__gpt_ranks_whole(t, true));
    PC__TRY(make_sample(t));
    PC__TRY(pc__gpt_ranks_whole(t, false));
    t->run.seconds = t->before;
    PC__TRY(pc__gpt_folder_saved(t));
    return t->rank ? PC_OK : write_report(t, false);
}

static pc_status run(pc__gpt_training *t, bool *interrupted)
{
    pace c = {0};
    if (t->o.callbacks && t->o.callbacks->started && !t->rank)
        t->o.callbacks->started(t->o.callbacks->context, t->words);
    t->began = pc__seconds_now();
    *interrupted = false;
    if (t->at.step == t->o.steps)
        return report_again(t);
    while (t->at.step < t->o.steps && !*interrupted) {
        PC__TRY(one_step(t, &c));
        const bool end = t->at.step == t->o.steps;
        if (end || t->at.step % t->o.test_every == 0) {
            PC__TRY(test(t));
            PC__TRY(save(t, !end));
        }
        if (!end)
            PC__TRY(pc__gpt_ranks_stop(t, is_asked_to_stop(t), !t->summed, interrupted));
    }
    if (!*interrupted)
        return PC_OK;
    if (!isfinite(t->best)) { /* before the first test: what there is */
        PC__TRY(pc__gpt_ranks_whole(t, true));
        if (!t->rank)
            PC__TRY(pc_gpt_save(pc__gpt_ranks_network(t), t->o.out));
        PC__TRY(pc__gpt_ranks_whole(t, false));
    }
    return save(t, false);
}

pc_status pc_gpt_train(pc_gpt_train_options options, pc_gpt_train_summary *summary)
{
    PC__NEED(summary);
    PC__NEED(options.data);
    pc__gpt_training *t = pc__calloc(1, sizeof *t);
    if (!t)
        return PC_ERR_MEMORY;
    *summary = (pc_gpt_train_summary){0};
    t->o = options;
    t->lock = -1;
    t->at = (pc_gpt_progress){.loss = NAN, .tokens_per_second = NAN, .mfu = NAN, .seconds_left = -1};
    t->run.tokens_per_second = t->run.mfu = NAN;
    pc_status status = pc__gpt_parts(t);
    t->at.steps = t->o.steps;
    if (status == PC_OK)
        status = run(t, &summary->interrupted);
    pc__gpt_ranks_fail(t, status);
    const pc__gpt_tested *last = t->run.tested_count ? &t->run.tested[t->run.tested_count - 1] : NULL;
    summary->steps_done = t->at.step;
    summary->batch = t->all;
    summary->parameters = t->gpt ? pc__gpt_elements(t->gpt) : 0;
    summary->loss = last ? last->loss : NAN;
    summary->test_loss = last ? last->test_loss : NAN;
    summary->best_test_loss = isfinite(t->best) ? t->best : NAN;
    summary->seconds = t->run.seconds;
    summary->tokens_per_second = t->run.tokens_per_second;
    summary->mfu = t->run.mfu;
    summary->bytes = t->run.bytes;
    pc__gpt_parts_free(t);
    pc__free(t);
    return status;
}
