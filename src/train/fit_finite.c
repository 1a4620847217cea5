/* fit_finite.c: a training whose loss is no number any more: noticed at once, and what made it so. On a device that works
 * later the losses come some batches behind; a guard keeps weights and count of updates from the first bad step on. */
#include "train/fit.h"

#include "data/gather.h"
#include "dist/group.h"
#include "nn/module.h"
#include "nn/optimizer.h"
#include "ops/finite.h"
#include "ops/scale.h"

#include <math.h>
#include <paracord/no_grad.h>

pc_status pc__fit_guard(pc__fit *fit)
{
    fit->generator = pc_generator_get();
    fit->began = fit->at.batch;
    fit->draws = 0;
    if (pc__fit_sees(fit))
        return PC_OK;
    if (fit->guard)
        PC__TRY(pc_fill(fit->guard, 0));
    else
        PC_SCOPE {
            fit->guard =
                pc_tensor_retain(pc_zeros(PC_SHAPE(PC__SCALER_NUMBERS), PC_F32, pc__loader_device(fit->train)));
        }
    fit->updates = fit->optimizer->settings.step; /* the device has counted the same, since all were good so far */
    return fit->guard ? PC_OK : pc_error_last()->status;
}

/* --- what made it --- */

typedef struct looking {
    const char *name; /* of a parameter that is not finite */
    char text[PC__NAME_MAX * 4];
    double number;
} looking;

static pc_status look_at(void *context, const char *name, pc__named *parameter)
{
    looking *l = context;
    int64_t at;
    PC__TRY(l->name ? PC_OK : pc__finite_find(parameter->object, &at, &l->number));
    if (l->name || at < 0)
        return PC_OK;
    snprintf(l->text, sizeof l->text, "%s", name);
    l->name = l->text;
    return PC_OK;
}

static const char *word(double number)
{
    return isnan(number) ? "NaN" : number > 0 ? "infinite" : "-infinite";
}

/* A tensor of the batch that is not finite itself. */
static bool is_batch(const pc_batch *batch, char *what, size_t n)
{
    for (int k = 0; k < batch->tensors; k++) {
        int64_t at = -1, row;
        double number;
        if (pc__finite_find(batch->tensor[k], &at, &number) != PC_OK || at < 0)
            continue;
        row = at / PC__MAX(1, pc_tensor_count(batch->tensor[k]) / PC__MAX(1, batch->n));
        if (batch->sample)
            snprintf(what, n, "its %s is %s, in sample %lld",
                     k == 0   ? "x"
                     : k == 1 ? "y"
                              : "tensor",
                     word(number), (long long)batch->sample[row]);
        else
            snprintf(what, n, "its %s is %s, in row %lld of the batch",
                     k == 0   ? "x"
                     : k == 1 ? "y"
                              : "tensor",
                     word(number), (long long)row);
        return true;
    }
    return false;
}

static bool is_parameter(const pc__fit *fit, bool is_first, char *what, size_t n)
{
    looking l = {NULL, "", 0};
    if (pc__module_visit(fit->net, look_at, &l) != PC_OK || !l.name)
        return false;
    if (is_first)
        snprintf(what, n, "parameter %.80s is %s in the weights that training begins with", l.name, word(l.number));
    else
        snprintf(what, n, "parameter %.80s is %s since the step before: its gradient was too large", l.name,
                 word(l.number));
    return true;
}

static pc_status ask_again(pc__fit *fit, const pc_batch *batch, int i, int parts)
{
    pc_tensor *outputs, *loss;
    pc_batch part;
    PC__TRY(pc__fit_part(batch, i, parts, &part));
    pc__finite_watch(true);
    const pc_status status = pc__fit_ask(fit, &part, &outputs, &loss);
    pc__finite_watch(false);
    return status;
}

/* The step once more, with every result looked at. */
static bool is_op(pc__fit *fit, const pc_batch *batch, int parts, char *what, size_t n)
{
    pc_status status = PC_OK;
    PC_NO_GRAD {
        for (int i = 0; i < parts && status == PC_OK; i++)
            PC_SCOPE {
                status = ask_again(fit, batch, i, parts);
            }
    }
    const pc_error error = pc__error_take();
    if (status == PC_OK)
        snprintf(what, n, "asked once more, the network gave numbers");
    else
        snprintf(what, n, "first, %.240s", error.message);
    return status != PC_OK;
}

/* Batch number `step` as the loader makes it, where that works. */
static bool again(pc__fit *fit, int64_t step, pc_batch *batch)
{
    const pc_generator g = fit->generator;
    pc_generator_set((pc_generator){g.seed, g.step + fit->draws * (uint64_t)(step - fit->began)});
    return pc_loader_seek(fit->train, fit->at.epoch, step) == PC_OK && pc_loader_next(fit->train, batch);
}

/* What can be done about it. Before the first step no rate was at work. */
static const char *way_out(pc__cause cause, bool is_first)
{
    if (cause == PC__CAUSE_BATCH)
        return "; correct that sample, or leave it out";
    if (cause == PC__CAUSE_PARAMETER && is_first)
        return "; begin with other ones";
    return is_first ? "" : "; a smaller rate or clipped gradients may help";
}

/* Of a cut network all parts come to the same, and say the same of it. Where an op has made it, in one part alone, others may
 * wait in the network for what that one did no more: it looks for them so many seconds, and else ends them. */
static pc_status find_cause(pc__fit *fit, const pc_batch *batch, int parts, bool is_first, pc__cause *cause,
                            char what[PC__FIT_WORDS])
{
    enum { SECONDS = 10 };
    *cause = is_batch(batch, what, PC__FIT_WORDS)               ? PC__CAUSE_BATCH
             : is_parameter(fit, is_first, what, PC__FIT_WORDS) ? PC__CAUSE_PARAMETER
                                                                : PC__CAUSE_NONE;
    PC__TRY(pc__fit_parts_words(fit, cause, what));
    fit->parts_agreed = fit->network != NULL;
    if (*cause)
        return PC_OK;
    *cause = is_op(fit, batch, parts, what, PC__FIT_WORDS) ? PC__CAUSE_OP : PC__CAUSE_NONE;
    if (!fit->network)
        return PC_OK;
    const double seconds = fit->network->seconds;
    fit->network->seconds = seconds > 0 ? PC__MIN(seconds, SECONDS) : SECONDS;
    fit->parts_agreed = pc__fit_parts_words(fit, cause, what) == PC_OK;
    fit->network->seconds = seconds;
    return PC_OK;
}

pc_status pc__fit_not_finite(pc__fit *fit, int64_t step, const pc_batch *batch, int parts)
{
    char what[PC__FIT_WORDS] = "";
    pc__cause cause;
    const bool is_first = fit->at.epoch == fit->first_epoch && step == fit->first_batch;
    const pc_error before = pc__error_take(); /* there is none, but that looking may make one */
    if (pc__fit_sees(fit))
        pc_generator_set(fit->generator);
    PC__TRY(find_cause(fit, batch, parts, is_first, &cause, what));
    pc_error_clear();
    (void)(before.status == PC_OK ? PC_OK : pc__error_put(&before));
    PC__TRY(pc__fit_ranks_words(fit, &cause, what));
    return pc__fail(PC_ERR_RANGE, "the loss of epoch %lld, step %lld of %lld is no finite number: %s%s",
                    (long long)fit->at.epoch + 1, (long long)step + 1, (long long)pc_loader_batches(fit->train), what,
                    way_out(cause, is_first));
}

/* How many batches of this run of the epoch had a finite loss, and came before all that had none: those that the guard let
 * through to the optimiser, or, where a scaler leaves some out besides, those that it has counted itself. */
static pc_status count_good(const pc__fit *fit, int64_t *good)
{
    float numbers[PC__SCALER_NUMBERS];
    PC__TRY(pc__optimizer_settle(fit->optimizer));
    *good = fit->optimizer->settings.step - fit->updates;
    if (!fit->scaler || !fit->guard)
        return PC_OK;
    PC__TRY(pc_read(fit->guard, numbers, sizeof numbers));
    *good = (int64_t)numbers[PC__SCALER_CLEAN];
    return PC_OK;
}

/* Of steps that came later. */
static pc_status find_late(pc__fit *fit)
{
    pc_batch batch;
    int64_t good;
    PC__TRY(pc__fit_whole(fit, true)); /* each rank looks on its own */
    PC__TRY(count_good(fit, &good));
    const int64_t step = fit->began + good;
    if (fit->guard && step < fit->at.batch && again(fit, step, &batch))
        return pc__fit_not_finite(fit, step, &batch, pc__fit_parts(fit, batch.whole));
    if ((fit->group || fit->network) && pc_failed()) /* the others wait for what it says */
        return pc_error_last()->status;
    pc_error_clear();
    fit->agreed = fit->parts_agreed = true;
    return pc__fail(PC_ERR_RANGE,
                    "the loss of epoch %lld is no finite number since some step up to %lld of %lld; a smaller rate or "
                    "clipped gradients may help",
                    (long long)fit->at.epoch + 1, (long long)fit->at.batch, (long long)pc_loader_batches(fit->train));
}

pc_status pc__fit_check(pc__fit *fit)
{
    if (isfinite(fit->at.score.loss))
        return PC_OK;
    const pc_sync_policy policy = pc_sync_policy_set(PC_SYNC_ALLOW); /* looking waits, and training has ended */
    const pc_status status = find_late(fit);
    (void)pc_sync_policy_set(policy);
    return status;
}
