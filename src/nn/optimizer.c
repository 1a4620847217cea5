/* optimizer.c: SGD with momentum, and Adam; every step one call for all parameters. */
#include "nn/optimizer.h"

#include "device/graph.h"
#include "ops/scale.h"
#include "tensor/overlap.h"

#include <math.h>
#include <paracord/autograd.h>

typedef struct taker {
    pc_optimizer *optimizer;
    pc_parameter *names; /* as many as parameters have been taken */
} taker;

/* A tensor that the module has under two names is updated once. Two that share memory would be updated at once, by the
 * same kernel. */
static pc_status take(void *context, const char *name, pc__named *parameter)
{
    taker *taking = context;
    pc_optimizer *o = taking->optimizer;
    for (int i = 0; i < o->count; i++) {
        if (o->parameters[i] == parameter->object)
            return PC_OK;
        if (pc__overlap(o->parameters[i], parameter->object) != PC__APART)
            return pc__fail(PC_ERR_ARGUMENT,
                            "pc_%s: the parameters \"%s\" and \"%s\" are two tensors that share memory; register one "
                            "tensor under both names, or a pc_clone",
                            o->name, taking->names[i].name, name);
    }
    snprintf(taking->names[o->count].name, sizeof taking->names[o->count].name, "%s", name);
    o->parameters[o->count++] = pc_tensor_retain(parameter->object);
    return PC_OK;
}

static pc_status take_all(pc_optimizer *o, pc_module *module, size_t n)
{
    taker taking = {o, pc__calloc(n, sizeof *taking.names)};
    pc_status status = taking.names ? pc__module_visit(module, take, &taking) : PC_ERR_MEMORY;
    pc__free(taking.names);
    return status;
}

static pc_optimizer *make(pc_module *module, const char *name, int slots, const pc__step_attributes *settings)
{
    pc_optimizer *o = pc__calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->name = name;
    o->settings = *settings;
    o->slots = slots;
    size_t n = (size_t)pc_module_parameter_list(module, NULL, 0);
    o->parameters = pc__calloc(n, sizeof *o->parameters);
    o->state = pc__calloc(n * (size_t)slots, sizeof *o->state);
    o->work = pc__calloc(n * (size_t)(2 + slots) + 2, sizeof *o->work);
    if (o->parameters && o->state && o->work && take_all(o, module, n) == PC_OK && pc__optimizer_make_state(o) == PC_OK)
        return o;
    pc_optimizer_free(o);
    return NULL;
}

void pc_optimizer_free(pc_optimizer *o)
{
    if (!o)
        return;
    pc__graph_lost(o);
    for (int i = 0; o->parameters && i < o->count; i++)
        pc_tensor_free(o->parameters[i]);
    for (int i = 0; o->state && i < o->count * o->slots; i++)
        pc_tensor_free(o->state[i]);
    pc_tensor_free(o->counter);
    pc_tensor_free(o->one);
    pc__free(o->parameters);
    pc__free(o->state);
    pc__free(o->work);
    pc__free(o);
}

/* A number above 0 that kernels, which compute in float32, can hold. */
static bool is_rate(double x)
{
    return x > 0 && isfinite((float)x);
}

static bool is_decay(double x)
{
    return x >= 0 && isfinite((float)x);
}

pc_optimizer *pc_sgd_new(pc_module *module, pc_sgd_options options)
{
    PC__NEED_OR(NULL, module);
    pc__step_attributes settings = {.lr = options.lr != 0 ? options.lr : 0.01,
                                    .momentum = options.momentum,
                                    .nesterov = options.nesterov,
                                    .weight_decay = options.weight_decay};
    if (!is_rate(settings.lr) || !(settings.momentum >= 0 && settings.momentum < 1) ||
        !is_decay(settings.weight_decay) || (options.nesterov && settings.momentum == 0))
        return pc__null(PC_ERR_ARGUMENT,
                        "pc_sgd: lr %g must be above 0 and finite, momentum %g in [0, 1) (above 0 for nesterov), "
                        "weight decay %g at least 0 and finite",
                        settings.lr, settings.momentum, settings.weight_decay);
    pc_optimizer *o = make(module, "sgd", settings.momentum > 0, &settings);
    if (o)
        o->step = pc__sgd_step;
    return o;
}

pc_optimizer *pc_adam_new(pc_module *module, pc_adam_options options)
{
    PC__NEED_OR(NULL, module);
    pc__step_attributes settings = {.lr = options.lr != 0 ? options.lr : 1e-3,
                                    .beta1 = options.beta1 != 0 ? options.beta1 : 0.9,
                                    .beta2 = options.beta2 != 0 ? options.beta2 : 0.999,
                                    .epsilon = options.epsilon != 0 ? options.epsilon : 1e-8,
                                    .weight_decay = options.weight_decay};
    if (!is_rate(settings.lr) || !(settings.beta1 > 0 && settings.beta1 < 1) ||
        !(settings.beta2 > 0 && settings.beta2 < 1) || !is_rate(settings.epsilon) || !is_decay(settings.weight_decay))
        return pc__null(
            PC_ERR_ARGUMENT,
            "pc_adam: lr %g and epsilon %g must be above 0 and finite, beta1 %g and beta2 %g inside (0, 1), "
            "weight decay %g at least 0 and finite",
            settings.lr, settings.epsilon, settings.beta1, settings.beta2, settings.weight_decay);
    pc_optimizer *o = make(module, "adam", 2, &settings);
    if (o)
        o->step = pc__adam_step;
    return o;
}

pc_status pc__optimizer_counter(pc_optimizer *o)
{
    if (pc__optimizer_number_lost(o->one))
        PC__TRY(pc__optimizer_number(o, &o->one, 1));
    if (pc__optimizer_number_lost(o->counter) || o->counted != o->settings.step)
        PC__TRY(pc__optimizer_number(o, &o->counter, o->settings.step));
    o->counted = o->settings.step;
    return PC_OK;
}

/* In a recording the device counts the steps. */
static pc_status record_update(pc_optimizer *o, int n)
{
    pc__step_attributes settings = o->settings;
    settings.step = 0;
    o->work[n] = o->counter;
    PC__TRY(o->step(o->work, n + 1, &settings));
    o->raises++;
    return PC_OK;
}

typedef struct count {
    int64_t step, counted;
    bool guarded;
} count;

static void end_change(void *optimizer, void *before, bool put_back)
{
    pc_optimizer *o = optimizer;
    const count *c = before;
    if (put_back) {
        o->settings.step = c->step;
        o->counted = c->counted;
        o->guarded = c->guarded;
    }
    pc__free(before);
}

/* In front of a step, whose count a recording may have to put back. */
static pc_status count_changes(pc_optimizer *o)
{
    pc_graph *graph = pc__graph_here(pc_tensor_device(o->parameters[0]));
    if (!graph)
        return PC_OK;
    count *before = pc__alloc(sizeof *before);
    if (!before)
        return PC_ERR_MEMORY;
    *before = (count){o->settings.step, o->counted, o->guarded};
    const pc_status status = pc__graph_changes(graph, o, before, end_change);
    if (status != PC_OK)
        pc__free(before);
    return status;
}

static _Thread_local pc_optimizer *recorded;

void pc__optimizer_record(pc_optimizer *o)
{
    recorded = o;
    if (o)
        o->raises = 0;
}

/* The device counts by itself, unless a gradient is infinite. */
static pc_status guarded_update(pc_optimizer *o, int n, pc_tensor *numbers)
{
    pc__step_attributes settings = o->settings;
    settings.step = 0;
    settings.guarded = true;
    if (recorded != o)
        PC__TRY(pc__optimizer_counter(o));
    o->guarded = true;
    o->work[n] = numbers;
    o->work[n + 1] = o->counter;
    PC__TRY(o->step(o->work, n + 2, &settings));
    if (recorded == o) {
        o->raises++;
    } else {
        o->settings.step++;
        o->counted++;
    }
    return PC_OK;
}

pc_status pc__optimizer_updates(const pc_optimizer *o, int64_t *updates)
{
    *updates = o->settings.step;
    return o->guarded ? pc_read(o->counter, updates, sizeof *updates) : PC_OK;
}

pc_status pc__optimizer_settle(pc_optimizer *o)
{
    if (!o->guarded)
        return PC_OK;
    PC__TRY(pc__optimizer_updates(o, &o->settings.step));
    o->counted = o->settings.step;
    o->guarded = false;
    return PC_OK;
}

void pc__optimizer_adopt(pc_optimizer *o, int64_t updates)
{
    o->settings.step = updates;
    o->guarded = false;
    o->counted = -1;
}

static pc_status update(pc_optimizer *o, int n, pc_tensor *numbers)
{
    pc_stream *stream = recorded ? pc_stream_current(pc_tensor_device(o->work[0])) : NULL;
    if (recorded == o && !numbers)
        return record_update(o, n);
    if (recorded != o && (o->slots || numbers) && stream)
        PC__TRY(pc__graph_allows(stream, "pc_optimizer_step", "a step whose number the host counts"));
    if (numbers)
        return guarded_update(o, n, numbers);
    PC__TRY(pc__optimizer_settle(o));
    o->settings.step++;
    pc_status status = o->step(o->work, n, &o->settings);
    o->settings.step -= status != PC_OK;
    return status;
}

pc_status pc_optimizer_step(pc_optimizer *optimizer)
{
    PC__NEED(optimizer);
    return pc__optimizer_step(optimizer, NULL);
}

pc_status pc__optimizer_step(pc_optimizer *o, pc_tensor *numbers)
{
    int used = 0;
    for (int i = 0; i < o->count; i++)
        used += pc_grad(o->parameters[i]) != NULL;
    for (int i = 0, k = 0; i < o->count; i++) {
        if (!pc_grad(o->parameters[i]))
            continue;
        o->work[k] = o->parameters[i];
        o->work[used + k] = pc_grad(o->parameters[i]);
        for (int s = 0; s < o->slots; s++)
            o->work[(2 + s) * used + k] = o->state[s * o->count + i];
        k++;
    }
    if (!used)
        return PC_OK;
    PC__TRY(pc__optimizer_sound(o));
    PC__TRY(count_changes(o));
    o->settings.count = used;
    PC__TRY(update(o, (2 + o->slots) * used, numbers));
    for (int i = 0; i < o->count; i++)
        pc_zero_grad(o->parameters[i]);
    return PC_OK;
}

double pc_optimizer_lr(const pc_optimizer *optimizer)
{
    PC__NEED_OR((double)NAN, optimizer);
    return optimizer->settings.lr;
}

void pc_optimizer_set_lr(pc_optimizer *optimizer, double lr)
{
    PC__NEED_OR(, optimizer);
    if (!is_decay(lr))
        (void)pc__fail(PC_ERR_ARGUMENT, "pc_optimizer_set_lr: lr %g must be at least 0 and finite; it stays %g", lr,
                       optimizer->settings.lr);
    else
        optimizer->settings.lr = lr;
}
