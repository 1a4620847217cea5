/* run.c: pc_train_folder: from settings to a trained network and its files. */
#include "train/run.h"

#include "train/arch.h"
#include "train/checkpoint.h"

#include <math.h>
#include <paracord/threads.h>

/* Checkpoints are written as often as this share of the time pays for, by what the last one took: a small network loses
 * a moment's work to a kill, a large one on a slow disk minutes. One that took oddly long (a stopped process, a disk
 * that hung) must not put off the next one for hours. */
#define SAVE_SHARE 0.02
#define SAVE_SECONDS_MOST 300.0

static int choice(const char *what, const char *given, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(given, names[i]) == 0)
            return i;
    (void)pc__fail(PC_ERR_ARGUMENT, "there is no %s \"%.40s\"; there are %s, %s%s%s", what, given, names[0], names[1],
                   count > 2 ? ", " : "", count > 2 ? names[2] : "");
    return -1;
}

static pc_status check_numbers(const pc_train_settings *s)
{
    const struct {
        const char *name;
        double value, low, high;
    } numbers[] = {
        {"epochs", s->epochs, 1, 1e6},   {"batch", s->batch, 1, 1 << 20},        {"size", s->size, 1, 4096},
        {"lr", s->lr, 1e-30, 1e6},       {"momentum", s->momentum, 0, 0.999999}, {"shear", s->shear, 0, 89},
        {"zoom", s->zoom, 0, 0.99},      {"rotation", s->rotation, 0, 360},      {"val_split", s->val_split, 0, 0.99},
        {"threads", s->threads, 0, 4096}};
    for (int i = 0; i < PC__COUNT(numbers); i++)
        if (!(numbers[i].value >= numbers[i].low && numbers[i].value <= numbers[i].high))
            return pc__fail(PC_ERR_ARGUMENT, "%s is %g; it must be %g to %g", numbers[i].name, numbers[i].value,
                            numbers[i].low, numbers[i].high);
    return PC_OK;
}

static pc_status settle_settings(pc__run *run, const pc_train_settings *given)
{
    static const char *const resizes[] = {"nearest", "area"}, *const inits[] = {"torch", "glorot", "he"},
                             *const optimizers[] = {"adam", "sgd"}, *const precisions[] = {"float32", "bf16", "f16"};
    pc_train_settings *s = &run->s;
    *s = *given;
    s->arch = s->arch ? s->arch : "article";
    s->optimizer = s->optimizer ? s->optimizer : "adam";
    s->init = s->init ? s->init : "glorot";
    s->resize = s->resize ? s->resize : "nearest";
    s->device = s->device ? s->device : "auto";
    s->precision = s->precision ? s->precision : "float32";
    s->out = s->out ? s->out : "run";
    s->epochs = s->epochs ? s->epochs : 25;
    s->batch = s->batch ? s->batch : 32;
    s->size = s->size ? s->size : 64;
    s->lr = s->lr != 0 ? s->lr : 1e-3;
    PC__TRY(check_numbers(s));
    int resize = choice("resize mode", s->resize, resizes, 2), init = choice("initialiser", s->init, inits, 3);
    int precision = choice("precision", s->precision, precisions, 3);
    if (resize < 0 || init < 0 || precision < 0 || choice("optimiser", s->optimizer, optimizers, 2) < 0)
        return PC_ERR_ARGUMENT;
    run->resize = resize ? PC_RESIZE_AREA : PC_RESIZE_NEAREST;
    run->init = (pc_init_kind)init;
    run->fit.mixed = (pc_mixed)precision;
    return pc_device_parse(s->device, &run->device);
}

static pc_status make_network(pc__run *run)
{
    int classes = pc_loader_class_count(run->fit.train);
    pc_seed(run->s.seed);
    run->fit.net = pc__arch_new(run->s.arch, run->s.size, classes == 2 ? 1 : classes, run->init);
    if (!run->fit.net)
        return pc_error_last()->status;
    PC__TRY(pc_module_to(run->fit.net, run->device, PC_F32));
    run->fit.optimizer = strcmp(run->s.optimizer, "adam") == 0
                             ? pc_adam(run->fit.net, .lr = run->s.lr, .epsilon = 1e-7) /* Keras's */
                             : pc_sgd(run->fit.net, .lr = run->s.lr, .momentum = run->s.momentum);
    return run->fit.optimizer ? pc__fit_scaler(&run->fit) : pc_error_last()->status;
}

static pc_status save_checkpoint(pc__run *run, pc__fit *fit)
{
    PC__TRY(pc__fit_settle(fit)); /* the work under way is no cost of saving */
    double start = pc__seconds_now();
    PC__TRY(pc__checkpoint_save(run->checkpoint, fit, run->settings));
    run->last_save = pc__seconds_now();
    run->save_seconds = run->last_save - start;
    return PC_OK;
}

/* The first batch of a run is always saved: a run that is killed again and again still goes on. */
static bool save_pays(const pc__run *run)
{
    double age = pc__seconds_now() - run->last_save;
    return age * SAVE_SHARE >= run->save_seconds || age >= SAVE_SECONDS_MOST;
}

/* An epoch's line goes to metrics.jsonl before the checkpoint that counts it: resuming cuts lines of epochs that will
 * be done again. */
static pc_status passed(void *context, pc__fit *fit, const pc_epoch_result *result)
{
    pc__run *run = context;
    if (!result)
        return save_pays(run) ? save_checkpoint(run, fit) : PC_OK;
    pc__epoch_record record = {.epoch = result->epoch,
                               .loss = result->loss,
                               .accuracy = result->accuracy,
                               .test_loss = result->test_loss,
                               .test_accuracy = result->test_accuracy,
                               .seconds = result->seconds,
                               .images_per_second = result->images_per_second,
                               .lr = pc_optimizer_lr(fit->optimizer)};
    PC__TRY(pc__metrics_append(run->metrics, &record));
    PC__TRY(pc__history_add(&run->history, &record));
    return result->epoch < result->epochs && save_pays(run) ? save_checkpoint(run, fit) : PC_OK;
}

static pc_status save_model(const pc__run *run)
{
    int classes = pc_loader_class_count(run->fit.train);
    pc__model_file file = {.net = run->fit.net,
                           .optimizer = run->fit.optimizer,
                           .head = classes == 2 ? PC_KERAS_SIGMOID : PC_KERAS_SOFTMAX,
                           .size = run->s.size,
                           .resize = run->resize,
                           .rescale = 1 / 255.0,
                           .class_names = (const char *const *)run->class_names,
                           .class_count = classes};
    return pc__model_save(run->model, &file);
}

static pc_status tell_start(const pc__run *run)
{
    const pc_train_callbacks *callbacks = run->s.callbacks;
    if (!callbacks || !callbacks->started)
        return PC_OK;
    char *text = pc__run_describe(run);
    if (!text)
        return PC_ERR_MEMORY;
    callbacks->started(callbacks->context, text);
    pc__free(text);
    return PC_OK;
}

static pc_status run_all(pc__run *run)
{
    double start = pc__seconds_now();
    PC__TRY(pc__run_load_data(run));
    PC__TRY(make_network(run));
    PC__TRY(pc__run_open_folder(run)); /* last, so that wrong settings leave no empty folder behind */
    PC__TRY(pc__run_find_start(run));
    PC__TRY(tell_start(run));
    PC__TRY(pc__fit_run(&run->fit));
    PC__TRY(save_checkpoint(run, &run->fit));
    run->seconds = pc__seconds_now() - start;
    if (run->fit.stopped)
        return PC_OK;
    PC__TRY(save_model(run));
    return pc__run_report(run);
}

static void summarise(const pc__run *run, pc_train_summary *summary)
{
    const pc_epoch_result *last = &run->fit.last;
    bool any = run->fit.at.epoch > 0;
    *summary = (pc_train_summary){.epochs_done = (int)run->fit.at.epoch,
                                  .interrupted = run->fit.stopped,
                                  .train_pictures = pc_loader_count(run->fit.train),
                                  .skipped = pc_loader_skipped(run->fit.train),
                                  .loss = any ? last->loss : NAN,
                                  .accuracy = any ? last->accuracy : NAN,
                                  .test_loss = NAN,
                                  .test_accuracy = NAN,
                                  .seconds = run->seconds};
    if (run->fit.test) {
        summary->test_pictures = pc_loader_count(run->fit.test);
        summary->skipped += pc_loader_skipped(run->fit.test);
        summary->test_loss = any ? last->test_loss : NAN;
        summary->test_accuracy = any ? last->test_accuracy : NAN;
    }
}

static void release(pc__run *run)
{
    pc_optimizer_free(run->fit.optimizer);
    pc_scaler_free(run->fit.scaler);
    pc_module_free(run->fit.net);
    pc_loader_free(run->fit.train);
    pc_loader_free(run->fit.test);
    for (int i = 0; i < run->skipped_count; i++) {
        pc__free((void *)run->skipped[i].path);
        pc__free((void *)run->skipped[i].reason);
    }
    pc__free(run->skipped);
    pc__free(run->class_names);
    pc__history_free(&run->history);
    pc__free(run->settings);
    pc__free(run->train_folder);
    pc__free(run->test_folder);
    pc__run_close_folder(run);
}

pc_status pc_train_folder(const pc_train_settings *settings, pc_train_summary *summary)
{
    pc__run run = {.lock = -1};
    pc_generator before = pc_generator_get();
    int threads = pc_get_threads();
    *summary = (pc_train_summary){0};
    pc_status status = settle_settings(&run, settings);
    if (status == PC_OK) {
        if (run.s.threads)
            pc_set_threads(run.s.threads);
        run.fit.epochs = run.s.epochs;
        run.fit.callbacks = run.s.callbacks;
        run.fit.passed = passed;
        run.fit.context = &run;
        status = run_all(&run);
    }
    if (status == PC_OK)
        summarise(&run, summary);
    release(&run);
    if (run.s.threads)
        pc_set_threads(threads);
    pc_generator_set(before);
    return status;
}
