/* run_passed.c: what a run leaves behind batches and epochs. */
#include "train/run.h"

static pc_status append_metrics(pc__run *run, const pc__epoch_record *record)
{
    const pc__answers *a = &run->fit.answers;
    double *recall = run->fit.test ? pc__alloc((size_t)a->classes * sizeof *recall) : NULL;
    if (run->fit.test && !recall)
        return PC_ERR_MEMORY;
    for (int k = 0; recall && k < a->classes; k++)
        recall[k] = pc__class_recall(a->confusion, a->classes, k);
    pc_status status = pc__metrics_append(run->metrics, record, recall, recall ? a->classes : 0);
    pc__free(recall);
    return status;
}

/* An epoch's line goes to metrics.jsonl before the checkpoint that counts it: resuming cuts lines of epochs that will
 * be done again. */
static pc_status note_epoch(pc__run *run, pc__fit *fit, const pc_epoch_result *result)
{
    pc__epoch_record record = {.epoch = result->epoch,
                               .loss = result->loss,
                               .accuracy = result->accuracy,
                               .test_loss = result->test_loss,
                               .test_accuracy = result->test_accuracy,
                               .test_balanced_accuracy = result->test_balanced_accuracy,
                               .seconds = result->seconds,
                               .images_per_second = result->images_per_second,
                               .lr = pc_optimizer_lr(fit->optimizer)};
    pc__run_watch_classes(run, result);
    PC__TRY(append_metrics(run, &record));
    PC__TRY(pc__history_add(&run->history, &record));
    if (fit->test && pc__run_kept(run)->epoch == result->epoch) { /* what is kept is what is shown */
        pc__answers before = run->shown;
        run->shown = fit->answers;
        run->shown_epoch = result->epoch;
        fit->answers = before;
    }
    if (pc__fit_is_over(fit)) /* the end of the run writes them all */
        return PC_OK;
    PC__TRY(pc__run_offer_model(run));
    pc__run_offer_report(run);
    return PC_OK;
}

pc_status pc__run_passed(void *context, pc__fit *fit, const pc_epoch_result *result)
{
    pc__run *run = context;
    const bool speaks = pc__fit_speaks(fit);
    if (!result) {
        const bool pays = speaks && pc__pace_pays(&run->saving);
        const bool granted = pc__tally_grants(&fit->tally, PC__WISH_SAVE, pays);
        return granted ? pc__run_save_checkpoint(run) : PC_OK;
    }
    PC__TRY(speaks ? note_epoch(run, fit, result) : PC_OK);
    bool saves = speaks && !pc__fit_is_over(fit) && pc__pace_pays(&run->saving);
    PC__TRY(fit->zero ? pc__fit_ranks_first(fit, &saves, sizeof saves) : PC_OK);
    return saves ? pc__run_save_checkpoint(run) : PC_OK;
}
