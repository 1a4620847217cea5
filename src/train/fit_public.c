/* fit_public.c: fit.h over the training loop. */
#include "train/checkpoint.h"
#include "train/fit.h"

#include "nn/module.h"
#include "tensor/tensor.h"

#include <math.h>
#include <paracord/fit.h>
#include <paracord/no_grad.h>
#include <unistd.h>

static pc_status passed(void *context, pc__fit *fit, const pc_epoch_result *result)
{
    const pc_fit_options *options = context;
    return result ? pc__checkpoint_save(options->checkpoint, fit, options->settings) : PC_OK;
}

static pc_status check(const pc_fit_options *options)
{
    if (options->epochs < 0 || strlen(options->settings) >= 1024)
        return pc__fail(PC_ERR_ARGUMENT,
                        "pc_fit: %d epochs and settings of %zu bytes: epochs must be at least 0, the settings "
                        "below 1024 bytes",
                        options->epochs, strlen(options->settings));
    if (options->early_stop < 0 || ((options->keep_best || options->early_stop) && !options->test))
        return pc__fail(PC_ERR_ARGUMENT,
                        "pc_fit: keep_best and early_stop (%d) need test pictures to tell which epoch is better",
                        options->early_stop);
    if ((unsigned)options->mixed > PC_MIXED_F16)
        return pc__fail(PC_ERR_ARGUMENT, "pc_fit: mixed precision %d is none of PC_MIXED_NONE to PC_MIXED_F16",
                        (int)options->mixed);
    return PC_OK;
}

static pc_status run(pc__fit *fit, const pc_fit_options *options)
{
    PC__TRY(pc__fit_scaler(fit));
    if (options->class_weights)
        PC__TRY(pc__fit_weigh(fit, options->class_weights, pc_loader_class_count(fit->train)));
    PC__TRY(options->keep_best ? pc__best_open(&fit->best, fit->net, fit->optimizer) : PC_OK);
    if (options->checkpoint && options->resume && access(options->checkpoint, F_OK) == 0)
        PC__TRY(pc__checkpoint_load(options->checkpoint, fit, options->settings));
    PC__TRY(pc__fit_run(fit));
    if (options->keep_best && !fit->stopped && fit->best.result.epoch)
        PC__TRY(pc__best_exchange(&fit->best, fit->net, fit->optimizer));
    return options->checkpoint && fit->stopped ? pc__checkpoint_save(options->checkpoint, fit, options->settings)
                                               : PC_OK;
}

pc_status pc_fit(pc_module *net, pc_optimizer *optimizer, pc_loader *train, pc_fit_options options,
                 pc_epoch_result *last)
{
    PC__NEED(net);
    PC__NEED(optimizer);
    PC__NEED(train);
    options.settings = options.settings ? options.settings : "";
    PC__TRY(check(&options));
    pc__fit fit = {.net = net,
                   .optimizer = optimizer,
                   .mixed = options.mixed,
                   .train = train,
                   .test = options.test,
                   .epochs = options.epochs ? options.epochs : 1,
                   .early_stop = options.early_stop,
                   .callbacks = options.callbacks,
                   .context = &options,
                   .passed = options.checkpoint ? passed : NULL};
    pc_status status = run(&fit, &options);
    pc_scaler_free(fit.scaler);
    pc_tensor_free(fit.class_weights);
    pc__best_close(&fit.best);
    pc__answers_free(&fit.answers);
    if (status == PC_OK && last)
        *last = fit.last;
    return status;
}

pc_status pc_evaluate(pc_module *net, pc_loader *loader, pc_score *score)
{
    PC__NEED(score);
    *score = (pc_score){0};
    PC__NEED(net);
    PC__NEED(loader);
    pc__score sums;
    PC__TRY(pc__score_loader(net, loader, NULL, NULL, &sums));
    *score = (pc_score){pc__score_loss(&sums), pc__score_accuracy(&sums), sums.seen, sums.correct};
    if (isnan(score->loss)) /* whatever a row of NaN counts as */
        score->accuracy = (double)NAN, score->correct = 0;
    return PC_OK;
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
