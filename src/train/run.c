/* run.c: pc_train_folder: from settings to a trained network and its files. */
#include "train/run.h"

#include "train/described.h"
#include "train/need.h"

#include <math.h>
#include <paracord/threads.h>

/* What is written while training takes these shares of the time: a small network loses a moment's work to a kill, a
 * large one on a slow disk minutes. A write that took oddly long (a stopped process, a disk that hung) must not put off
 * the next one for hours. */
#define LONGEST 300.0 /* seconds */

static int choice(const char *what, const char *given, const char *const *names, int count)
{
    char list[96] = "";
    for (int i = 0; i < count; i++)
        if (strcmp(given, names[i]) == 0)
            return i;
    for (int i = 0, n = 0; i < count; i++)
        n += snprintf(list + n, sizeof list - (size_t)n, "%s%s", i ? ", " : "", names[i]);
    (void)pc__fail(PC_ERR_ARGUMENT, "there is no %s \"%.40s\"; there are %s", what, given, list);
    return -1;
}

static const char *const optimizers[] = {"adam", "sgd", "adamw", "rmsprop", "lion"}, *const schedules[] = {
                                                                                         "constant", "cosine", "linear",
                                                                                         "one-cycle"};

static pc_status check_numbers(const pc_train_options *s)
{
    const struct {
        const char *name;
        double value, low, high;
    } numbers[] = {{"epochs", s->epochs, 1, 1e6},
                   {"batch", s->batch, 1, 1 << 20},
                   {"height", s->height, 1, 4096},
                   {"width", s->width, 1, 4096},
                   {"lr", s->lr, 1e-30, 1e6},
                   {"momentum", s->momentum, 0, 0.999999},
                   {"shear", s->shear, 0, 89},
                   {"zoom", s->zoom, 0, 0.99},
                   {"rotation", s->rotation, 0, 360},
                   {"val_split", s->val_split, 0, 0.99},
                   {"threads", s->threads, 0, 4096},
                   {"early_stop", s->early_stop, 0, 1e6},
                   {"weight_decay", s->weight_decay, -1, 1e3},
                   {"clip", s->clip, 0, 1e30},
                   {"warmup", s->warmup, 0, 1e9},
                   {"pad", s->pad, 0, 4096},
                   {"shorter", s->shorter, 0, PC__MODEL_SIDE_MAX},
                   {"zero", s->zero, 0, 3},
                   {"accumulate", s->accumulate, 1, 1 << 20},
                   {"crop", s->crop, 0, 1}}; /* of other augmentation the loader says what is wrong */
    for (int i = 0; i < PC__COUNT(numbers); i++)
        if (!(numbers[i].value >= numbers[i].low && numbers[i].value <= numbers[i].high))
            return pc__fail(PC_ERR_ARGUMENT, "%s is %g; it must be %g to %g", numbers[i].name, numbers[i].value,
                            numbers[i].low, numbers[i].high);
    return PC_OK;
}

static pc_status settle_settings(pc__run *run, const pc_train_options *given)
{
    static const char *const resizes[] = {"nearest", "area"}, *const inits[] = {"torch", "glorot", "he"},
                             *const precisions[] = {"float32", "bf16", "f16"}, *const keeps[] = {"best", "last"},
                             *const weights[] = {"none", "balanced"},
                             *const fills[] = {"nearest", "black", "reflect", "wrap"};
    pc_train_options *s = &run->s;
    *s = *given;
    s->arch = s->arch ? s->arch : "article";
    s->optimizer = s->optimizer ? s->optimizer : "adam";
    s->schedule = s->schedule ? s->schedule : "constant";
    s->init = s->init ? s->init : "glorot";
    s->resize = s->resize ? s->resize : "nearest";
    s->device = s->device ? s->device : "auto";
    s->precision = s->precision ? s->precision : "float32";
    s->reduce = s->reduce ? s->reduce : "float32";
    s->keep = s->keep ? s->keep : "best";
    s->class_weights = s->class_weights ? s->class_weights : "none";
    s->fill = s->fill ? s->fill : "nearest";
    s->normalise = s->normalise ? s->normalise : "none";
    s->freeze = s->freeze ? s->freeze : "none";
    s->out = s->out ? s->out : "run";
    s->epochs = s->epochs ? s->epochs : 25;
    s->batch = s->batch ? s->batch : 32;
    s->accumulate = s->accumulate ? s->accumulate : 1;
    s->size = s->size ? s->size : 64;
    if (!s->height != !s->width)
        return pc__fail(PC_ERR_ARGUMENT, "pictures of height %d and width %d: give both, or neither and a size",
                        s->height, s->width);
    s->height = s->height ? s->height : s->size;
    s->width = s->width ? s->width : s->size;
    s->channels = s->channels ? s->channels : 3;
    s->lr = s->lr != 0 ? s->lr : 1e-3;
    PC__TRY(check_numbers(s));
    if (s->weight_decay < 0)
        s->weight_decay = strcmp(s->optimizer, "adamw") == 0 ? -1 : 0; /* of the others 0 is none already */
    PC__TRY(pc__run_check_begin(run));
    if (s->nesterov && (strcmp(s->optimizer, "sgd") != 0 || s->momentum == 0))
        return pc__fail(PC_ERR_ARGUMENT, "nesterov is for \"sgd\" with a momentum, not for \"%.40s\" with %g",
                        s->optimizer, s->momentum);
    if (s->momentum != 0 && strcmp(s->optimizer, "sgd") != 0 && strcmp(s->optimizer, "rmsprop") != 0)
        return pc__fail(PC_ERR_ARGUMENT, "a momentum is for \"sgd\" and \"rmsprop\"; \"%.40s\" has its own",
                        s->optimizer);
    if (s->channels != 1 && s->channels != 3)
        return pc__fail(PC_ERR_ARGUMENT, "pictures of %d channels: use 1 (grey) or 3 (RGB)", s->channels);
    int resize = choice("resize mode", s->resize, resizes, 2), init = choice("initialiser", s->init, inits, 3);
    int precision = choice("precision", s->precision, precisions, 3), fill = choice("fill", s->fill, fills, 4);
    const int reduce = choice("precision of gradients between ranks", s->reduce, precisions, 2);
    if (fill < 0 || resize < 0 || init < 0 || precision < 0 || reduce < 0 ||
        choice("optimiser", s->optimizer, optimizers, PC__COUNT(optimizers)) < 0 ||
        choice("schedule", s->schedule, schedules, PC__COUNT(schedules)) < 0 ||
        choice("way to keep", s->keep, keeps, 2) < 0 ||
        choice("kind of class weights", s->class_weights, weights, 2) < 0)
        return PC_ERR_ARGUMENT;
    run->resize = resize ? PC_RESIZE_AREA : PC_RESIZE_NEAREST;
    run->init = (pc_init_kind)init;
    run->fill = (pc_fill_mode)fill;
    run->fit.mixed = (pc_mixed)precision;
    run->fit.reduce_dtype = reduce ? PC_BF16 : PC_F32;
    PC__TRY(pc__mix_check("pc_train_folder", s->label_smoothing, (double[]){s->mixup, s->cutmix}));
    PC__TRY(pc__run_normal(run));
    return pc_device_parse(s->device, &run->device);
}

/* Keras's numbers where Keras and PyTorch differ: the file goes on there. */
static pc_optimizer *make_optimizer(pc_module *net, const pc_train_options *s)
{
    const pc_adam_options adam = {.lr = s->lr, .epsilon = 1e-7, .weight_decay = PC__MAX(s->weight_decay, 0)};
    switch (choice("optimiser", s->optimizer, optimizers, PC__COUNT(optimizers))) {
    case 0:
        return pc_adam_new(net, adam);
    case 1:
        return pc_sgd(net, .lr = s->lr, .momentum = s->momentum, .nesterov = s->nesterov,
                      .weight_decay = s->weight_decay);
    case 2:
        return s->weight_decay < 0 ? pc_adam_new(net, adam) : pc_adamw_new(net, adam);
    case 3:
        return pc_rmsprop(net, .lr = s->lr, .alpha = 0.9, .epsilon = 1e-7, .momentum = s->momentum,
                          .weight_decay = s->weight_decay);
    default:
        return pc_lion(net, .lr = s->lr, .weight_decay = s->weight_decay);
    }
}

/* What each step does beside the optimiser's rule: its rate, and clipping. */
static pc_status set_steps(pc__run *run)
{
    static const pc_schedule_kind kinds[] = {PC_SCHEDULE_CONSTANT, PC_SCHEDULE_COSINE, PC_SCHEDULE_LINEAR,
                                             PC_SCHEDULE_ONE_CYCLE};
    const pc_train_options *s = &run->s;
    const int kind = choice("schedule", s->schedule, schedules, PC__COUNT(schedules));
    if (s->clip > 0)
        PC__TRY(pc_optimizer_set_clip(run->fit.optimizer, PC_CLIP_NORM, s->clip));
    if (kind == 0 && s->warmup == 0)
        return PC_OK;
    const int64_t batches = pc_loader_batches(run->fit.train), steps = s->epochs * batches;
    if (kind != 0 && s->warmup > steps)
        return pc__fail(
            PC_ERR_ARGUMENT,
            "a warmup of %lld steps is longer than the run, which has %lld (%d epochs of %lld batches): make "
            "it shorter, or take more epochs",
            (long long)s->warmup, (long long)steps, s->epochs, (long long)batches);
    run->fit.schedule = (pc_schedule){.kind = kinds[kind], .lr = s->lr, .warmup = s->warmup, .steps = steps};
    return isnan(pc_schedule_lr(&run->fit.schedule, 0)) ? pc_error_last()->status : PC_OK;
}

static pc_status make_network(pc__run *run)
{
    int classes = pc_loader_class_count(run->fit.train);
    pc_seed(run->s.seed);
    run->fit.net = pc__arch_new(run->arch, pc__run_frame(run), classes == 2 ? 1 : classes, run->init);
    if (!run->fit.net)
        return pc_error_last()->status;
    PC__TRY(pc_module_to(run->fit.net, run->device, PC_F32));
    PC__TRY(pc__run_begin(run));
    PC__TRY(pc__run_share_out(run));
    run->fit.optimizer = make_optimizer(run->zero ? pc_zero_part(run->zero) : run->fit.net, &run->s);
    PC__TRY(run->fit.optimizer ? set_steps(run) : pc_error_last()->status);
    PC__TRY(pc__fit_share_out(&run->fit, "pc_train_folder", run->zero));
    return pc__fit_scaler(&run->fit);
}

/* The network that the model's file is made of. Its first weights are of no account, and must not cost the run random numbers.
 */
static pc_status open_best(pc__run *run)
{
    int classes = pc_loader_class_count(run->fit.train);
    run->fit.early_stop = run->s.early_stop;
    run->fit.best.balanced = strcmp(run->s.class_weights, "balanced") == 0;
    if (run->s.early_stop && !run->fit.test)
        return pc__fail(PC_ERR_ARGUMENT,
                        "--early-stop %d, but there are no test pictures to tell by: give the folder test/, or a "
                        "--val-split above 0",
                        run->s.early_stop);
    if (!run->fit.test || strcmp(run->s.keep, "last") == 0)
        return PC_OK;
    pc_generator before = pc_generator_get();
    run->kept = pc__arch_new(run->arch, pc__run_frame(run), classes == 2 ? 1 : classes, run->init);
    pc_generator_set(before);
    PC__TRY(run->kept ? pc__run_freeze(run, run->kept) : pc_error_last()->status);
    return pc__best_open_in(&run->fit.best, run->kept, run->fit.net, pc__fit_parameters(&run->fit));
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

/* A name, or a file that describes the network. */
static pc_status find_arch(pc__run *run)
{
    const size_t n = strlen(run->s.arch), suffix = strlen(".json");
    if (n > suffix && strcmp(run->s.arch + n - suffix, ".json") == 0)
        PC__TRY(pc__description_read(run->s.arch, &run->description));
    run->arch = run->description ? run->description : run->s.arch;
    return PC_OK;
}

/* A run that is finished has its network; what was trained is kept also where that cannot be written. */
static pc_status finish(pc__run *run)
{
    const bool speaks = pc__fit_speaks(&run->fit);
    pc_status saved = speaks ? pc__run_save_model(run) : PC_OK;
    run->fit.finished = !run->fit.stopped && saved == PC_OK;
    PC__TRY(pc__run_save_checkpoint(run));
    PC__TRY(saved);
    if (!speaks)
        return PC_OK;
    pc__run_warn_of_kept(run);
    run->seconds = pc__seconds_now() - run->start;
    return pc__run_report(run);
}

/* The first rank asks the network alone. */
static pc_status look_again(pc__run *run)
{
    PC__TRY(pc__fit_whole(&run->fit, true));
    PC__TRY(pc__fit_speaks(&run->fit) ? pc__run_look(run) : PC_OK);
    return pc__fit_whole(&run->fit, false);
}

static pc_status run_all(pc__run *run)
{
    run->start = pc__seconds_now();
    PC__TRY(find_arch(run));
    if (run->device.type == PC_CPU) /* others are asked when they are awake */
        PC__TRY(pc__need_check(run, 1));
    run->s.cache = pc__run_cache(run);
    PC__TRY(pc__run_load_data(run));
    PC__TRY(pc__need_check(run, pc_loader_class_count(run->fit.train)));
    PC__TRY(pc__run_count_classes(run));
    PC__TRY(make_network(run));
    PC__TRY(pc__run_weigh_classes(run));
    PC__TRY(pc__mix_open(&run->fit.mix, run->s.label_smoothing, (double[]){run->s.mixup, run->s.cutmix}, run->device));
    PC__TRY(open_best(run));
    PC__TRY(pc__run_open_folder(run)); /* last, so that wrong settings leave no empty folder behind */
    PC__TRY(pc__run_find_start(run));
    PC__TRY(pc__run_begin_late(run));
    PC__TRY(tell_start(run));
    PC__TRY(run->resumed ? look_again(run) : PC_OK);
    PC__TRY(pc__fit_run(&run->fit));
    run->seconds = pc__seconds_now() - run->start;
    PC__TRY(pc__fit_whole(&run->fit, true));
    return finish(run);
}

static void summarise(const pc__run *run, pc_train_summary *summary)
{
    const pc_epoch_result *last = &run->fit.last;
    bool any = run->fit.at.epoch > 0;
    *summary = (pc_train_summary){.epochs_done = (int)run->fit.at.epoch,
                                  .interrupted = run->fit.stopped,
                                  .train_pictures = pc_loader_count(run->fit.train),
                                  .skipped = pc_loader_skipped(run->fit.train),
                                  .damaged = pc_loader_damaged(run->fit.train),
                                  .loss = any ? last->loss : NAN,
                                  .accuracy = any ? last->accuracy : NAN,
                                  .test_loss = NAN,
                                  .test_accuracy = NAN,
                                  .kept = *pc__run_kept(run),
                                  .model = pc__model_name(run->arch),
                                  .stopped_early = !run->fit.stopped && run->fit.at.epoch < run->s.epochs,
                                  .seconds = run->seconds};
    if (run->fit.test) {
        summary->test_pictures = pc_loader_count(run->fit.test);
        summary->skipped += pc_loader_skipped(run->fit.test);
        summary->damaged += pc_loader_damaged(run->fit.test);
        summary->test_loss = any ? last->test_loss : NAN;
        summary->test_accuracy = any ? last->test_accuracy : NAN;
    }
}

static void free_files(pc__run_files *list)
{
    for (int i = 0; i < list->count; i++) {
        pc__free((void *)list->files[i].path);
        pc__free((void *)list->files[i].reason);
    }
    pc__free(list->files);
}

static void release(pc__run *run)
{
    pc_optimizer_free(run->fit.optimizer);
    pc_zero_free(run->zero);
    pc__free(run->fit.parameters);
    pc_scaler_free(run->fit.scaler);
    pc__best_close(&run->fit.best);
    pc__answers_free(&run->fit.answers);
    pc__answers_free(&run->shown);
    pc_tensor_free(run->fit.class_weights);
    pc__mix_close(&run->fit.mix);
    pc__free(run->counts);
    pc__free(run->network);
    pc__free(run->begun);
    pc__free(run->description);
    pc_module_free(run->kept);
    pc_module_free(run->fit.net);
    pc_loader_free(run->fit.train);
    pc_loader_free(run->fit.test);
    free_files(&run->skipped);
    free_files(&run->damaged);
    pc__free(run->class_names);
    pc__history_free(&run->history);
    pc__free(run->settings);
    pc__free(run->about);
    pc__free(run->train_folder);
    pc__free(run->test_folder);
    pc__run_close_folder(run);
}

pc_status pc_train_folder(pc_train_options options, pc_train_summary *summary)
{
    PC__NEED(summary);
    *summary = (pc_train_summary){0};
    pc__run run = {.lock = -1,
                   .saving = {.share = 0.02, .longest = LONGEST},
                   .saving_model = {.share = 0.01, .longest = LONGEST},
                   .saving_report = {.share = 0.01, .longest = LONGEST, .least = 2}};
    pc_generator before = pc_generator_get();
    int threads = pc_threads_get();
    pc_status status = settle_settings(&run, &options);
    pc__run_in_ranks(&run);
    const bool sets = pc__run_sets_threads(&run);
    if (status == PC_OK) {
        if (sets)
            pc_threads_set(run.s.threads);
        run.fit.epochs = run.s.epochs;
        run.fit.accumulate = run.s.accumulate;
        run.fit.callbacks = run.s.callbacks;
        run.fit.passed = pc__run_passed;
        run.fit.context = &run;
        status = run_all(&run);
    }
    if (status == PC_ERR_MEMORY && run.fit.net)
        status = pc__need_explain(&run);
    status = pc__fit_ranks_end(&run.fit, status);
    if (status == PC_OK)
        summarise(&run, summary);
    release(&run);
    if (sets)
        pc_threads_set(threads);
    pc_generator_set(before);
    return status;
}
