/* fit_step.c: one step of a training: recorded where the device works later, else plain calls. */
#include "train/fit.h"

#include "base/base.h"
#include "data/gather.h"
#include "nn/step.h"

#include <paracord/autograd.h>
#include <paracord/no_grad.h>

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

static pc_status learn(void *context)
{
    pc__learning *l = context;
    const pc_batch batch = as_batch(l);
    pc_status status = PC_OK;
    PC_SCOPE {
        status = pc__fit_learn(l->fit, &batch);
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

static pc_status learn_short(pc__fit *fit, const pc_batch *batch)
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
    const uint64_t before = pc_generator_get().step;
    fit->sample = batch->sample;
    PC__TRY(suits_recording(fit, batch) ? learn_whole(fit, batch) : learn_short(fit, batch));
    fit->draws = PC__MAX(fit->draws, pc_generator_get().step - before);
    return pc__tally_passed(&fit->tally, batch->whole);
}

void pc__fit_end_steps(pc__fit *fit)
{
    pc_step_free(fit->step);
    drop(&fit->fixed.now);
    drop(&fit->fixed.next);
    fit->step = NULL;
}
