/* fit_public.c: fit.h over the training loop. */
#include "train/checkpoint_cut.h"
#include "train/fit.h"

#include "data/gather.h"
#include "nn/module.h"
#include "nn/optimizer.h"
#include "tensor/tensor.h"

#include <math.h>
#include <paracord/fit.h>
#include <paracord/no_grad.h>
#include <unistd.h>

/* What the epoch's callback has changed, such as the rate, is a part of where training stands. */
static pc_status told(void *context, pc__fit *fit)
{
    const pc_fit_options *options = context;
    return pc__checkpoint_save(options->checkpoint, fit, options->settings);
}

static pc_status check(const pc_fit_options *options)
{
    if (options->epochs < 0 || strlen(options->settings) >= PC__SETTINGS_MOST)
        return pc__fail(PC_ERR_ARGUMENT,
                        "pc_fit: %d epochs and settings of %zu bytes: epochs must be at least 0, the settings "
                        "below 1024 bytes",
                        options->epochs, strlen(options->settings));
    if (options->early_stop < 0 || ((options->keep_best || options->early_stop) && !options->test))
        return pc__fail(PC_ERR_ARGUMENT,
                        "pc_fit: keep_best and early_stop (%d) need .test, to tell which epoch is better",
                        options->early_stop);
    if (!(options->least_gain >= 0))
        return pc__fail(PC_ERR_ARGUMENT, "pc_fit: least_gain %g is below 0", options->least_gain);
    if (options->accumulate < 0)
        return pc__fail(PC_ERR_ARGUMENT, "pc_fit: accumulate %d: a batch has 1 part or more (0: 1)",
                        options->accumulate);
    if ((unsigned)options->mixed > PC_MIXED_F16)
        return pc__fail(PC_ERR_ARGUMENT, "pc_fit: mixed precision %d is none of PC_MIXED_NONE to PC_MIXED_F16",
                        (int)options->mixed);
    return PC_OK;
}

/* Functions of one's own may bring other networks. */
static pc_status check_optimizer(const pc__fit *fit, const pc_fit_options *options)
{
    const pc_optimizer *o = fit->optimizer;
    const int count = pc_module_parameter_list(fit->net, NULL, 0);
    if (count < 0)
        return pc_error_last()->status;
    if (options->forward || options->loss || options->zero || !count)
        return PC_OK;
    pc_parameter *list = pc__alloc((size_t)count * sizeof *list);
    if (!list)
        return PC_ERR_MEMORY;
    (void)pc_module_parameter_list(fit->net, list, count);
    bool found = false;
    for (int i = 0; i < o->count && !found; i++)
        for (int k = 0; k < count && !found; k++)
            found = o->parameters[i] == list[k].tensor;
    pc__free(list);
    return found ? PC_OK
                 : pc__fail(PC_ERR_ARGUMENT, "pc_fit: the optimiser has no parameter of the network, and would train "
                                             "nothing; make it for this one, behind pc_module_to");
}

/* A label stands for the same in both: a test set that lacks a class would count by other ones. */
static pc_status check_classes(const pc__fit *fit, const pc_fit_options *options)
{
    const int count = pc_loader_class_count(fit->train), tested = fit->test ? pc_loader_class_count(fit->test) : 0;
    for (int i = 0; !options->loss && count && i < tested; i++) {
        const char *name = i < count ? pc_loader_class_name(fit->train, i) : NULL,
                   *other = pc_loader_class_name(fit->test, i);
        if (!name || strcmp(name, other) != 0)
            return pc__fail(PC_ERR_ARGUMENT,
                            "pc_fit: label %d is \"%.60s\" in .test, and %s%.60s%s in what is learnt from; give both "
                            "loaders the same class_names",
                            i, other, name ? "\"" : "", name ? name : "no class", name ? "\"" : "");
    }
    return PC_OK;
}

/* Label smoothing and mixup, of batches that have one x and one y. */
static pc_status set_mix(pc__fit *fit, const pc_fit_options *o)
{
    pc_field fields[PC_FIELDS_MAX];
    const double alpha[PC__MIXES] = {[PC__MIXUP] = o->mixup, [PC__CUTMIX] = o->cutmix};
    PC__TRY(pc__mix_check("pc_fit", o->label_smoothing, alpha));
    if (o->label_smoothing == 0 && o->mixup == 0 && o->cutmix == 0)
        return PC_OK;
    const int count = pc_loader_fields(fit->train, fields, PC_FIELDS_MAX);
    if (o->loss || o->forward || count != 2 || !pc__is_float(fields[0].dtype))
        return pc__fail(PC_ERR_ARGUMENT,
                        "pc_fit: label_smoothing, mixup and cutmix are for batches of a floating x and one y, without "
                        "loss and forward of your own");
    if (o->label_smoothing > 0 && !pc__judge_may_count(&fit->judge, fit->train))
        return pc__fail(PC_ERR_ARGUMENT, "pc_fit: label_smoothing, and y is no labels but %s",
                        pc_dtype_name(fields[1].dtype));
    return pc__mix_open(&fit->mix, o->label_smoothing, alpha, pc__loader_device(fit->train));
}

/* How the better epoch is known. */
static pc_status set_watch(pc__best *best, const pc__fit *fit, const pc_fit_options *o)
{
    const bool counts = pc__judge_may_count(&fit->judge, fit->train);
    const char *watch = o->watch ? o->watch : counts ? "accuracy" : "loss";
    best->watch = watch;
    best->least_gain = o->least_gain;
    best->by_loss = strcmp(watch, "loss") == 0;
    for (int i = 0; i < fit->judge.metric_count && !best->by_loss; i++)
        if (strcmp(watch, o->metrics[i].name) == 0) {
            best->metric = i + 1;
            best->greater = o->metrics[i].greater;
        }
    return best->by_loss || best->metric || strcmp(watch, "accuracy") == 0
               ? PC_OK
               : pc__fail(PC_ERR_NOT_FOUND,
                          "pc_fit: there is no \"%.60s\" to watch; there are loss, accuracy and the "
                          "names of .metrics",
                          watch);
}

/* What it leaves open: all steps, and the rate that the program gave the optimiser, which a schedule may have changed. */
static pc_status set_schedule(pc__fit *fit, const pc_fit_options *o)
{
    if (o->schedule.kind == PC_SCHEDULE_CONSTANT && o->schedule.warmup == 0)
        return PC_OK;
    fit->schedule = o->schedule;
    if (fit->schedule.steps == 0)
        fit->schedule.steps = fit->epochs * pc_loader_batches(fit->train);
    if (fit->schedule.lr == 0)
        fit->schedule.lr = fit->optimizer->given_lr;
    return isnan(pc_schedule_lr(&fit->schedule, 0)) ? pc_error_last()->status : PC_OK;
}

/* What all ranks have kept is the same. */
static pc_status take_best(pc__fit *fit)
{
    PC__TRY(pc__fit_whole(fit, true));
    PC__TRY(pc__best_exchange(&fit->best, fit->net, pc__fit_parameters(fit)));
    return pc__fit_whole(fit, false);
}

/* Nothing here waits for other ranks. */
static pc_status prepare(pc__fit *fit, const pc_fit_options *options)
{
    PC__TRY(check(options));
    PC__TRY(check_optimizer(fit, options));
    PC__TRY(check_classes(fit, options));
    PC__TRY(pc__fit_share_out(fit, "pc_fit", options->zero));
    PC__TRY(pc__judge_check("pc_fit", &fit->judge));
    PC__TRY(set_watch(&fit->best, fit, options));
    PC__TRY(set_schedule(fit, options));
    PC__TRY(set_mix(fit, options));
    PC__TRY(pc__fit_scaler(fit));
    if (options->class_weights && pc_loader_class_count(fit->train) == 0)
        return pc__fail(PC_ERR_ARGUMENT, "pc_fit: class_weights, and the loader names no classes");
    if (options->class_weights)
        PC__TRY(pc__fit_weigh(fit, options->class_weights, pc_loader_class_count(fit->train)));
    return options->keep_best ? pc__best_open(&fit->best, fit->net, pc__fit_parameters(fit)) : PC_OK;
}

static pc_status run(pc__fit *fit, const pc_fit_options *options)
{
    PC__TRY(pc__fit_parts_agree(fit, prepare(fit, options)));
    bool resumes = options->checkpoint && options->resume && access(options->checkpoint, F_OK) == 0;
    PC__TRY(pc__fit_parts_first(fit, &resumes, sizeof resumes));
    if (resumes)
        PC__TRY(pc__checkpoint_load(options->checkpoint, fit, options->settings));
    PC__TRY(pc__fit_run(fit));
    if (options->keep_best && !fit->stopped && fit->best.result.epoch)
        PC__TRY(take_best(fit));
    const bool saves = options->checkpoint && fit->stopped;
    return saves ? pc__checkpoint_save(options->checkpoint, fit, options->settings) : PC_OK;
}

pc_status pc_fit(pc_module *net, pc_optimizer *optimizer, pc_loader *train, pc_fit_options options,
                 pc_epoch_result *last)
{
    PC__NEED(net);
    PC__NEED(optimizer);
    PC__NEED(train);
    options.settings = options.settings ? options.settings : "";
    pc__fit fit = {.net = net,
                   .optimizer = optimizer,
                   .mixed = options.mixed,
                   .train = train,
                   .test = options.test,
                   .judge = pc__judge_of(train, &options),
                   .epochs = options.epochs ? options.epochs : 1,
                   .early_stop = options.early_stop,
                   .callbacks = options.callbacks,
                   .context = &options,
                   .told = options.checkpoint ? told : NULL,
                   .accumulate = options.accumulate,
                   .group = options.group && pc_group_size(options.group) > 1 ? options.group : NULL,
                   .network = pc__checkpoint_network(net, optimizer, options.zero),
                   .reduce_dtype = options.reduce_dtype};
    pc_status status = pc__fit_ranks_end(&fit, run(&fit, &options));
    pc_scaler_free(fit.scaler);
    pc_tensor_free(fit.class_weights);
    pc__mix_close(&fit.mix);
    pc__best_close(&fit.best);
    pc__answers_free(&fit.answers);
    pc__free(fit.parameters);
    if (status == PC_OK && last)
        *last = fit.last;
    return status;
}

/* A folder's answers are added up on the way that trainings take. */
static pc_status evaluate_folder(pc_module *net, pc_loader *loader, pc_score *score)
{
    pc__score sums;
    PC__TRY(pc__score_loader(net, loader, NULL, NULL, &sums));
    *score = (pc_score){pc__score_loss(&sums), pc__score_accuracy(&sums), pc__score_counted(&sums), sums.correct, {0}};
    for (int i = 0; i < PC_METRICS_MAX; i++)
        score->metric[i] = (double)NAN;
    return PC_OK;
}

pc_status pc_evaluate_by(pc_module *net, pc_loader *loader, pc_fit_options options, pc_score *score)
{
    PC__NEED(score);
    *score = (pc_score){0};
    PC__NEED(net);
    PC__NEED(loader);
    const pc__judge judge = pc__judge_of(loader, &options);
    PC__TRY(pc__judge_check("pc_evaluate_by", &judge));
    const bool plain = judge.named && !judge.loss && !judge.forward && !judge.metric_count;
    PC__TRY(plain ? evaluate_folder(net, loader, score) : pc__judge_loader(&judge, net, loader, score));
    if (isnan(score->loss)) /* whatever a row of NaN counts as */
        score->accuracy = (double)NAN, score->correct = 0;
    return PC_OK;
}

pc_status pc_evaluate(pc_module *net, pc_loader *loader, pc_score *score)
{
    return pc_evaluate_by(net, loader, (pc_fit_options){0}, score);
}

pc_tensor *pc_predict(pc_module *net, pc_tensor *x)
{
    PC__NEED_OR(NULL, net);
    PC__NEED_OR(NULL, x);
    pc_tensor *result = NULL;
    PC__EVALUATE
    {
        PC_NO_GRAD {
            PC_SCOPE {
                pc_tensor *logits = pc_forward(net, x);
                if (logits)
                    result = pc_keep(pc_tensor_size(logits, -1) == 1 ? pc_sigmoid(logits) : pc_softmax(logits, -1));
            }
        }
    }
    return result;
}
