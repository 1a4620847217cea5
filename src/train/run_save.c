/* run_save.c: a run's checkpoint and its network, and how often they are written. */
#include "train/arch.h"
#include "train/checkpoint.h"
#include "train/run.h"

bool pc__pace_pays(const pc__pace *pace)
{
    double age = pc__seconds_now() - pace->last;
    if (pace->last && age < pace->least)
        return false;
    return !pace->last || age * pace->share >= pace->took || age >= pace->longest;
}

void pc__pace_took(pc__pace *pace, double start)
{
    pace->last = pc__seconds_now();
    pace->took = pace->last - start;
}

pc_status pc__run_save_checkpoint(pc__run *run)
{
    PC__TRY(pc__fit_settle(&run->fit)); /* the work under way is no cost of saving */
    double start = pc__seconds_now();
    PC__TRY(pc__checkpoint_save(run->checkpoint, &run->fit, run->settings));
    pc__pace_took(&run->saving, start);
    return PC_OK;
}

const pc_epoch_result *pc__run_kept(const pc__run *run)
{
    return run->kept ? &run->fit.best.result : &run->fit.last;
}

pc__model_file pc__run_model(const pc__run *run)
{
    int classes = pc_loader_class_count(run->fit.train);
    pc_preparation preparation = pc__preparation_of(pc__preparation_assumed(), pc__run_frame(run));
    preparation.resize = run->resize;
    preparation.no_exif = run->s.no_exif;
    preparation.shorter = run->s.shorter;
    memcpy(preparation.mean, run->mean, sizeof run->mean);
    memcpy(preparation.std, run->std, sizeof run->std);
    pc__model_file file = {.net = run->kept && run->fit.best.result.epoch ? run->kept : run->fit.net,
                           .optimizer = run->fit.optimizer,
                           .lr = run->fit.schedule.steps ? run->s.lr : 0,
                           .head = classes == 2 ? PC_KERAS_SIGMOID : PC_KERAS_SOFTMAX,
                           .preparation = preparation,
                           .class_names = (const char *const *)run->class_names,
                           .class_count = classes};
    file.arch = pc__arch_is_keras(run->arch) ? NULL : run->arch;
    return file;
}

static pc_status write_model(pc__run *run)
{
    double start = pc__seconds_now();
    pc__model_file file = pc__run_model(run);
    PC__TRY(pc__model_save(run->model, &file));
    pc__pace_took(&run->saving_model, start);
    run->model_epoch = pc__run_kept(run)->epoch;
    return PC_OK;
}

pc_status pc__run_offer_model(pc__run *run)
{
    bool newer = run->model_epoch != pc__run_kept(run)->epoch;
    return newer && pc__pace_pays(&run->saving_model) ? write_model(run) : PC_OK;
}

pc_status pc__run_save_model(pc__run *run)
{
    bool within = !run->kept && run->fit.at.batch > 0; /* the last weights are newer than the last epoch's */
    bool there = run->model_epoch && run->model_epoch == pc__run_kept(run)->epoch;
    return there && !within ? PC_OK : write_model(run);
}
