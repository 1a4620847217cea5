/* optimizer_rules.c: the optimisers that there are, each a rule (ops/step.h) with its settings checked. */
#include "nn/optimizer.h"

#include <math.h>

bool pc__optimizer_is_rate(double x)
{
    return x > 0 && isfinite((float)x);
}

bool pc__optimizer_is_decay(double x)
{
    return x >= 0 && isfinite((float)x);
}

static bool is_share(double x)
{
    return x > 0 && x < 1;
}

static bool is_momentum(double x)
{
    return x >= 0 && x < 1;
}

static double or_else(double x, double usual)
{
    return x != 0 ? x : usual;
}

/* One group, of all parameters. */
static pc__step_attributes settings_of(double lr, double weight_decay)
{
    return (pc__step_attributes){.lr = lr, .groups = 1, .group = {{.lr_scale = 1, .weight_decay = weight_decay}}};
}

static pc_optimizer *make(pc_module *module, const char *name, int slots, const pc__step_attributes *settings,
                          pc_status (*step)(pc_tensor **tensors, int n, const pc__step_attributes *attributes))
{
    pc_optimizer *o = pc__optimizer_new(module, name, slots, settings);
    if (o)
        o->step = step;
    return o;
}

pc_optimizer *pc_sgd_new(pc_module *module, pc_sgd_options options)
{
    PC__NEED_OR(NULL, module);
    pc__step_attributes a = settings_of(or_else(options.lr, 0.01), options.weight_decay);
    a.momentum = options.momentum;
    a.nesterov = options.nesterov;
    if (!pc__optimizer_is_rate(a.lr) || !is_momentum(a.momentum) || !pc__optimizer_is_decay(options.weight_decay) ||
        (options.nesterov && a.momentum == 0))
        return pc__null(PC_ERR_ARGUMENT,
                        "pc_sgd: lr %g must be above 0 and finite, momentum %g in [0, 1) (above 0 for nesterov), "
                        "weight decay %g at least 0 and finite",
                        a.lr, a.momentum, options.weight_decay);
    return make(module, "sgd", a.momentum > 0, &a, pc__sgd_step);
}

static pc_optimizer *adam(pc_module *module, const char *name, const pc_adam_options *options, double weight_decay,
                          bool decoupled)
{
    pc__step_attributes a = settings_of(or_else(options->lr, 1e-3), weight_decay);
    a.beta1 = or_else(options->beta1, 0.9);
    a.beta2 = or_else(options->beta2, 0.999);
    a.epsilon = or_else(options->epsilon, 1e-8);
    a.decoupled = decoupled;
    if (!pc__optimizer_is_rate(a.lr) || !is_share(a.beta1) || !is_share(a.beta2) || !pc__optimizer_is_rate(a.epsilon) ||
        !pc__optimizer_is_decay(weight_decay))
        return pc__null(PC_ERR_ARGUMENT,
                        "pc_%s: lr %g and epsilon %g must be above 0 and finite, beta1 %g and beta2 %g inside (0, 1), "
                        "weight decay %g at least 0 and finite",
                        name, a.lr, a.epsilon, a.beta1, a.beta2, weight_decay);
    return make(module, name, 2, &a, pc__adam_step);
}

pc_optimizer *pc_adam_new(pc_module *module, pc_adam_options options)
{
    PC__NEED_OR(NULL, module);
    return adam(module, "adam", &options, options.weight_decay, false);
}

pc_optimizer *pc_adamw_new(pc_module *module, pc_adam_options options)
{
    PC__NEED_OR(NULL, module);
    return adam(module, "adamw", &options, or_else(options.weight_decay, 0.01), true);
}

pc_optimizer *pc_rmsprop_new(pc_module *module, pc_rmsprop_options options)
{
    PC__NEED_OR(NULL, module);
    pc__step_attributes a = settings_of(or_else(options.lr, 0.01), options.weight_decay);
    a.beta2 = or_else(options.alpha, 0.99);
    a.epsilon = or_else(options.epsilon, 1e-8);
    a.momentum = options.momentum;
    if (!pc__optimizer_is_rate(a.lr) || !is_share(a.beta2) || !pc__optimizer_is_rate(a.epsilon) ||
        !is_momentum(a.momentum) || !pc__optimizer_is_decay(options.weight_decay))
        return pc__null(PC_ERR_ARGUMENT,
                        "pc_rmsprop: lr %g and epsilon %g must be above 0 and finite, alpha %g inside (0, 1), momentum "
                        "%g in [0, 1), "
                        "weight decay %g at least 0 and finite",
                        a.lr, a.epsilon, a.beta2, a.momentum, options.weight_decay);
    return make(module, "rmsprop", 1 + (a.momentum > 0), &a, pc__rmsprop_step);
}

pc_optimizer *pc_lion_new(pc_module *module, pc_lion_options options)
{
    PC__NEED_OR(NULL, module);
    pc__step_attributes a = settings_of(or_else(options.lr, 1e-4), options.weight_decay);
    a.beta1 = or_else(options.beta1, 0.9);
    a.beta2 = or_else(options.beta2, 0.99);
    a.decoupled = true;
    if (!pc__optimizer_is_rate(a.lr) || !is_share(a.beta1) || !is_share(a.beta2) ||
        !pc__optimizer_is_decay(options.weight_decay))
        return pc__null(
            PC_ERR_ARGUMENT,
            "pc_lion: lr %g must be above 0 and finite, beta1 %g and beta2 %g inside (0, 1), weight decay %g "
            "at least 0 and finite",
            a.lr, a.beta1, a.beta2, options.weight_decay);
    return make(module, "lion", 1, &a, pc__lion_step);
}
