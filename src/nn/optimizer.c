/* optimizer.c: a step is one call for all parameters. */
#include "nn/optimizer.h"

#include "device/graph.h"
#include "ops/scale.h"
#include "tensor/overlap.h"

#include <paracord/autograd.h>
#include <paracord/no_grad.h>

static void note_cut(pc_optimizer *o, int i, const pc__named *parameter)
{
    if (!parameter->apart)
        return;
    o->cut[i] = *parameter->cut;
    o->some_apart = true;
}

/* A tensor that the module has under two names is updated once. Two that share memory would be updated at once, by the
 * same kernel. */
static pc_status take(void *context, const char *name, pc__named *parameter)
{
    pc_optimizer *o = context;
    for (int i = 0; i < o->count; i++) {
        if (o->parameters[i] == parameter->object) {
            note_cut(o, i, parameter);
            return PC_OK;
        }
        if (pc__overlap(o->parameters[i], parameter->object) != PC__APART)
            return pc__fail(PC_ERR_ARGUMENT,
                            "pc_%s: the parameters \"%s\" and \"%s\" are two tensors that share memory; register one "
                            "tensor under both names, or a pc_clone",
                            o->name, o->names[i].name, name);
    }
    snprintf(o->names[o->count].name, sizeof o->names[o->count].name, "%s", name);
    note_cut(o, o->count, parameter);
    o->parameters[o->count++] = pc_tensor_retain(parameter->object);
    return PC_OK;
}

pc_optimizer *pc__optimizer_new(pc_module *module, const char *name, int slots, const pc__step_attributes *settings)
{
    const int count = pc_module_parameter_list(module, NULL, 0);
    pc_optimizer *o = count < 0 ? NULL : pc__calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->name = name;
    o->settings = *settings;
    o->given_lr = settings->lr;
    o->slots = slots;
    o->is_part = module->is_part;
    o->hosted = module->hosted;
    const size_t n = (size_t)count;
    o->parameters = pc__calloc(n, sizeof *o->parameters);
    o->names = pc__calloc(n, sizeof *o->names);
    o->cut = pc__calloc(n, sizeof *o->cut);
    o->group = pc__calloc(n, sizeof *o->group);
    o->lined = pc__calloc(n, sizeof *o->lined);
    o->state = pc__calloc(n * (size_t)slots, sizeof *o->state);
    o->work = pc__calloc(n * (size_t)(2 + slots) + PC__STEP_EXTRAS, sizeof *o->work);
    if (o->parameters && o->names && o->cut && o->group && o->lined && o->state && o->work &&
        pc__module_visit(module, take, o) == PC_OK && pc__optimizer_make_state(o) == PC_OK)
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
    pc_tensor_free(o->rate);
    pc_tensor_free(o->clip);
    pc__free(o->parameters);
    pc__free(o->names);
    pc__free(o->cut);
    pc__free(o->group);
    pc__free(o->lined);
    pc__free(o->state);
    pc__free(o->work);
    pc__free(o);
}

pc_status pc__optimizer_counter(pc_optimizer *o)
{
    if (pc__optimizer_number_lost(o->one))
        PC__TRY(pc__optimizer_number(o, &o->one, 1, PC_I64));
    if (pc__optimizer_number_lost(o->counter) || o->counted != o->settings.step)
        PC__TRY(pc__optimizer_number(o, &o->counter, (double)o->settings.step, PC_I64));
    o->counted = o->settings.step;
    return PC_OK;
}

pc_status pc__optimizer_rate(pc_optimizer *o)
{
    if (pc__optimizer_number_lost(o->rate) || !(o->rated == o->settings.lr))
        PC__TRY(pc__optimizer_number(o, &o->rate, o->settings.lr, PC_F64));
    o->rated = o->settings.lr;
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

pc_status pc__optimizer_allows(const char *who, const char *what)
{
    return recorded ? pc__graph_allows_host(who, what) : PC_OK;
}

/* The norm of what this rank counts of the gradients lined up. */
static pc_status measure_part(pc_optimizer *o, int used)
{
    if (!o->elsewhere)
        return used ? pc__gradient_norm(o->clip, o->work + used, used, o->clip_norm) : pc_fill(o->clip, 0);
    pc_tensor **counted = pc__alloc((size_t)PC__MAX(used, 1) * sizeof *counted);
    if (!counted)
        return PC_ERR_MEMORY;
    int n = 0;
    for (int k = 0; k < used; k++)
        if (!o->elsewhere[o->lined[k]])
            counted[n++] = o->work[used + k];
    const pc_status status = n ? pc__gradient_norm(o->clip, counted, n, o->clip_norm) : pc_fill(o->clip, 0);
    pc__free(counted);
    return status;
}

pc_status pc__optimizer_clips_whole(const pc_optimizer *o)
{
    if (!o->some_apart || o->whole_norm || !(o->clip_norm > 0))
        return PC_OK;
    return pc__fail(PC_ERR_STATE,
                    "pc_optimizer_step: the network is cut up among ranks, each of which would clip by its own part's "
                    "norm; pc_tensor_parallel_clip in the place of pc_optimizer_set_clip clips by the whole one's");
}

/* The norm of all gradients, in front of the step that takes them times its factor. */
static pc_status measure_norm(pc_optimizer *o, int used)
{
    PC__TRY(pc__optimizer_clips_whole(o));
    if (pc__optimizer_number_lost(o->clip)) {
        const pc_device device = o->count ? pc_tensor_device(o->parameters[0]) : pc_device_current();
        pc_tensor_free(o->clip);
        PC_SCOPE {
            o->clip = pc_tensor_retain(pc_zeros(PC_SHAPE(2), PC_F64, device));
        }
        if (!o->clip)
            return pc_error_last()->status;
    }
    PC__TRY(measure_part(o, used));
    return o->whole_norm ? o->whole_norm(o) : PC_OK;
}

/* The call with what the attributes ask for behind its n lists of tensors. */
static pc_status call_step(pc_optimizer *o, int n, pc_tensor *numbers, pc__step_attributes *a)
{
    const int used = a->count;
    a->clipped = o->clip_norm > 0;
    if (a->clipped)
        PC__TRY(measure_norm(o, used));
    a->guarded = numbers != NULL;
    pc_tensor *const extra[PC__STEP_EXTRAS] = {numbers, o->counter, o->rate, o->clip};
    for (int i = 0; i < PC__STEP_EXTRAS; i++)
        if (pc__step_has(a, (pc__step_extra)i))
            o->work[n++] = extra[i];
    return o->step(o->work, n, a);
}

/* In a recording the device counts the steps and knows the rate. */
static pc_status record_update(pc_optimizer *o, int n)
{
    pc__step_attributes settings = o->settings;
    settings.step = 0;
    settings.rated = true;
    PC__TRY(call_step(o, n, NULL, &settings));
    o->raises++;
    return PC_OK;
}

/* The device counts by itself, unless a gradient is infinite. */
static pc_status guarded_update(pc_optimizer *o, int n, pc_tensor *numbers)
{
    pc__step_attributes settings = o->settings;
    settings.step = 0;
    settings.rated = recorded == o;
    if (recorded != o)
        PC__TRY(pc__optimizer_counter(o));
    o->guarded = true;
    PC__TRY(call_step(o, n, numbers, &settings));
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
    if (recorded != o && stream)
        PC__TRY(pc__graph_allows(stream, "pc_optimizer_step", "a step whose rate and number the host knows"));
    if (numbers)
        return guarded_update(o, n, numbers);
    PC__TRY(pc__optimizer_settle(o));
    pc__step_attributes settings = o->settings;
    settings.step++;
    PC__TRY(call_step(o, n, NULL, &settings));
    o->settings.step++;
    return PC_OK;
}

pc_status pc_optimizer_step(pc_optimizer *optimizer)
{
    PC__NEED(optimizer);
    if (optimizer->is_part)
        return pc__fail(PC_ERR_STATE, "pc_optimizer_step: the optimiser is for a rank's part of the weights, which the "
                                      "other ranks would not see change; pc_zero_step does its step");
    return pc__optimizer_step(optimizer, NULL);
}

/* Parameters with a gradient, those of a group side by side, behind each other with gradients and slots. */
static int line_up(pc_optimizer *o)
{
    int used = 0, k = 0;
    for (int i = 0; i < o->count; i++)
        used += pc_grad(o->parameters[i]) != NULL;
    for (int g = 0; g < o->settings.groups; g++) {
        for (int i = 0; i < o->count; i++) {
            if (o->group[i] != g || !pc_grad(o->parameters[i]))
                continue;
            o->lined[k] = i;
            o->work[k] = o->parameters[i];
            o->work[used + k] = pc_grad(o->parameters[i]);
            for (int s = 0; s < o->slots; s++)
                o->work[(2 + s) * used + k] = o->state[s * o->count + i];
            k++;
        }
        o->settings.group[g].end = k;
    }
    return used;
}

static pc_status update_lacking(pc_optimizer *o, int used, pc_tensor *numbers, pc_tensor **kept)
{
    PC__TRY(pc__optimizer_line_up_copies(o, used, kept));
    PC__TRY(update(o, (2 + o->slots) * used, numbers));
    return pc__optimizer_choose(o, used, kept);
}

static pc_status update_all(pc_optimizer *o, int used, pc_tensor *numbers)
{
    if (!pc__optimizer_lacks(o, used))
        return update(o, (2 + o->slots) * used, numbers);
    pc_tensor **kept = pc__calloc((size_t)((1 + o->slots) * used), sizeof(pc_tensor *));
    pc_status status = kept ? PC_OK : PC_ERR_MEMORY;
    PC_SCOPE {
        PC_NO_GRAD {
            if (status == PC_OK)
                status = update_lacking(o, used, numbers, kept);
        }
    }
    pc__free(kept);
    return status;
}

pc_status pc__optimizer_step(pc_optimizer *o, pc_tensor *numbers)
{
    PC__TRY(pc__optimizer_in_place(o));
    const int used = line_up(o);
    if (!used) /* others with gradients wait for this part of the norm */
        return o->whole_norm && o->clip_norm > 0 ? measure_norm(o, 0) : PC_OK;
    PC__TRY(pc__optimizer_sound(o));
    PC__TRY(count_changes(o));
    o->settings.count = used;
    PC__TRY(update_all(o, used, numbers));
    for (int i = 0; i < o->count; i++)
        pc_zero_grad(o->parameters[i]);
    return PC_OK;
}
