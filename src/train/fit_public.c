/* fit_public.c: fit.h over the training loop. */
#include "train/checkpoint.h"
#include "train/fit.h"

#include "tensor/tensor.h"

#include <paracord/fit.h>
#include <paracord/no_grad.h>
#include <unistd.h>

static pc_status passed(void *context, pc__fit *fit, const pc_epoch_result *result)
{
    const pc_fit_options *options = context;
    return result ? pc__checkpoint_save(options->checkpoint, fit, options->settings) : PC_OK;
}

static pc_status check(const pc_module *net, const pc_optimizer *optimizer, const pc_loader *train,
                       const pc_fit_options *options)
{
    if (!net || !optimizer || !train)
        return pc_failed() ? pc_error_last()->status
                           : pc__fail(PC_ERR_ARGUMENT, "pc_fit: the network, the optimiser or the loader is NULL");
    if (options->epochs < 0 || strlen(options->settings) >= 1024)
        return pc__fail(PC_ERR_ARGUMENT,
                        "pc_fit: %d epochs and settings of %zu bytes: epochs must be at least 0, the settings "
                        "below 1024 bytes",
                        options->epochs, strlen(options->settings));
    if ((unsigned)options->mixed > PC_MIXED_F16)
        return pc__fail(PC_ERR_ARGUMENT, "pc_fit: mixed precision %d is none of PC_MIXED_NONE to PC_MIXED_F16",
                        (int)options->mixed);
    return PC_OK;
}

static pc_status run(pc__fit *fit, const pc_fit_options *options)
{
    PC__TRY(pc__fit_scaler(fit));
    if (options->checkpoint && options->resume && access(options->checkpoint, F_OK) == 0)
        PC__TRY(pc__checkpoint_load(options->checkpoint, fit, options->settings));
    PC__TRY(pc__fit_run(fit));
    return options->checkpoint && fit->stopped ? pc__checkpoint_save(options->checkpoint, fit, options->settings)
                                               : PC_OK;
}

pc_status pc_fit(pc_module *net, pc_optimizer *optimizer, pc_loader *train, pc_fit_options options,
                 pc_epoch_result *last)
{
    options.settings = options.settings ? options.settings : "";
    PC__TRY(check(net, optimizer, train, &options));
    pc__fit fit = {.net = net,
                   .optimizer = optimizer,
                   .mixed = options.mixed,
                   .train = train,
                   .test = options.test,
                   .epochs = options.epochs ? options.epochs : 1,
                   .callbacks = options.callbacks,
                   .context = &options,
                   .passed = options.checkpoint ? passed : NULL};
    pc_status status = run(&fit, &options);
    pc_scaler_free(fit.scaler);
    if (status == PC_OK && last)
        *last = fit.last;
    return status;
}

pc_status pc_evaluate(pc_module *net, pc_loader *loader, pc_score *score)
{
    *score = (pc_score){0};
    if (!net || !loader)
        return pc_failed() ? pc_error_last()->status
                           : pc__fail(PC_ERR_ARGUMENT, "pc_evaluate: the network or the loader is NULL");
    pc__score sums;
    PC__TRY(pc__score_loader(net, loader, NULL, NULL, &sums));
    *score = (pc_score){pc__score_loss(&sums), pc__score_accuracy(&sums), sums.seen, sums.correct};
    return PC_OK;
}

pc_tensor *pc_predict(pc_module *net, pc_tensor *x)
{
    bool was_training = pc_module_is_training(net);
    pc_tensor *result = NULL;
    pc_module_train(net, false);
    PC_NO_GRAD {
        PC_SCOPE {
            pc_tensor *logits = pc_forward(net, x);
            if (logits)
                result = pc_keep(pc_tensor_size(logits, -1) == 1 ? pc_sigmoid(logits) : pc_softmax(logits, -1));
        }
    }
    pc_module_train(net, was_training);
    return result;
}
