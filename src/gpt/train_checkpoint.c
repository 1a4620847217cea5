/* train_checkpoint.c: a training between two steps as one safetensors file: weights ("w.NAME"), moments ("m0.NAME",
 * "m1.NAME"), the curves, and what else there is as notes. */
#include "dist/zero_state.h"
#include "gpt/train.h"
#include "io/safetensors.h"
#include "nn/optimizer.h"

#include <paracord/no_grad.h>
#include <paracord/random.h>

#include <math.h>
#include <stdlib.h>

static pc_tensor *curve_tensor(const pc__gpt_training *t)
{
    const pc__curve *c = &t->run.curve;
    double values[2 * PC__CURVE_GROUPS];
    for (int64_t i = 0; i < c->count; i++)
        values[2 * i] = c->groups[i].loss, values[2 * i + 1] = (double)c->groups[i].seen;
    return pc_from_data(values, PC_SHAPE(c->count, 2), PC_F64, PC_DEVICE_CPU);
}

static pc_tensor *tested_tensor(const pc__gpt_training *t)
{
    static const pc__gpt_tested none;
    return pc_from_data(t->run.tested ? t->run.tested : &none, PC_SHAPE(t->run.tested_count, 3), PC_F64, PC_DEVICE_CPU);
}

/* What weights and moments a checkpoint has: those of the optimiser, or, of parts, those of all ranks. */
typedef struct contents {
    int count, slots;
    pc_tensor **state; /* of parts: collected, slots * count, on the CPU; NULL: the optimiser's */
    pc_parameter *list;
} contents;

static void contents_free(contents *c)
{
    for (int i = 0; c->state && i < c->slots * c->count; i++)
        pc_tensor_free(c->state[i]);
    pc__free(c->state);
    pc__free(c->list);
}

static void contents_list(const pc__gpt_training *t, contents *c)
{
    const pc_optimizer *o = t->optimizer;
    pc_tensor **state = t->zero ? c->state : o->state;
    for (int kind = -1; kind < c->slots; kind++)
        for (int i = 0; i < c->count; i++) {
            pc_parameter *entry = &c->list[(kind + 1) * c->count + i];
            const char *name = t->zero ? "" : o->names[i].name;
            pc_tensor *weights = t->zero ? pc__zero_parameter(t->zero, i, &name) : o->parameters[i];
            if (kind < 0)
                snprintf(entry->name, sizeof entry->name, "w.%.80s", name);
            else
                snprintf(entry->name, sizeof entry->name, "m%d.%.80s", kind, name);
            entry->tensor = kind < 0 ? weights : state[kind * c->count + i];
        }
}

/* Room for two tensors more is in the list. `there`: whole moments are the ranks'; else they are yet to be read, as zeros. */
static pc_status contents_make(const pc__gpt_training *t, contents *c, bool there)
{
    const pc_optimizer *o = t->optimizer;
    *c = (contents){.count = t->zero ? pc__zero_parameters(t->zero) : o->count, .slots = o->slots};
    const size_t moments = (size_t)c->count * (size_t)c->slots;
    c->list = pc__calloc((size_t)c->count + moments + 2, sizeof *c->list);
    c->state = t->zero ? pc__calloc(moments, sizeof *c->state) : NULL;
    if (!c->list || (t->zero && !c->state))
        return PC_ERR_MEMORY;
    if (t->zero && there)
        PC__TRY(pc__zero_state_collect(t->zero, o, c->state));
    for (size_t i = 0; t->zero && !there && i < moments; i++)
        PC_SCOPE {
            const char *name;
            const pc_tensor *p = pc__zero_parameter(t->zero, (int)(i % (size_t)c->count), &name);
            c->state[i] = pc_tensor_retain(pc_zeros(pc_tensor_shape(p), PC_F32, PC_DEVICE_CPU));
        }
    for (size_t i = 0; t->zero && i < moments; i++)
        if (!c->state[i])
            return PC_ERR_MEMORY;
    contents_list(t, c);
    return PC_OK;
}

/* The file, of the ranks' first. */
static pc_status write(const pc__gpt_training *t, const contents *c, const char *path)
{
    char step[32], seed[32], draws[32], seconds[40], best[40], width[32];
    const pc_generator generator = pc_generator_get();
    snprintf(step, sizeof step, "%lld", (long long)t->at.step);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)generator.seed);
    snprintf(draws, sizeof draws, "%llu", (unsigned long long)generator.step);
    snprintf(seconds, sizeof seconds, "%.6g", t->run.seconds);
    snprintf(best, sizeof best, "%a", t->best);
    snprintf(width, sizeof width, "%lld", (long long)t->run.curve.width);
    const pc_weights_note_pair notes[] = {{"paracord gpt", "1"}, {"settings", t->settings}, {"step", step},
                                          {"seed", seed},        {"draws", draws},          {"seconds", seconds},
                                          {"best", best},        {"width", width},          {NULL, NULL}};
    pc_status status = PC_OK;
    PC_SCOPE {
        int n = c->count * (1 + c->slots);
        snprintf(c->list[n].name, sizeof c->list[n].name, "curve");
        c->list[n++].tensor = curve_tensor(t);
        snprintf(c->list[n].name, sizeof c->list[n].name, "tested");
        c->list[n++].tensor = tested_tensor(t);
        status =
            c->list[n - 1].tensor && c->list[n - 2].tensor ? pc_weights_write(path, c->list, n, notes) : PC_ERR_MEMORY;
    }
    return status;
}

pc_status pc__gpt_checkpoint_save(pc__gpt_training *t, const char *path)
{
    contents c;
    if (t->rank && !t->zero)
        return PC_OK;
    pc_status status = pc__optimizer_settle(t->optimizer);
    if (status == PC_OK && t->rank)
        return pc__zero_state_collect(t->zero, t->optimizer, NULL);
    if (status != PC_OK)
        return status;
    status = contents_make(t, &c, true);
    if (status == PC_OK)
        status = write(t, &c, path);
    contents_free(&c);
    return status;
}

/* --- read --- */

static pc_status damaged(const char *path)
{
    return pc__fail(PC_ERR_FORMAT, "%s is damaged, or no checkpoint of a GPT", path);
}

/* The first line that differs. */
static pc_status check_settings(const pc__gpt_training *t, const char *path, const char *had)
{
    const char *have = t->settings;
    if (!had)
        return damaged(path);
    if (strcmp(have, had) == 0)
        return PC_OK;
    size_t same = 0, line = 0;
    for (; have[same] && have[same] == had[same]; same++)
        line = have[same] == '\n' ? same + 1 : line;
    return pc__fail(PC_ERR_STATE,
                    "%s is of a training with %.*s, and this one has %.*s; go on with the same settings, or "
                    "begin in another folder",
                    path, (int)strcspn(had + line, "\n"), had + line, (int)strcspn(have + line, "\n"), have + line);
}

static int64_t whole_note(const pc_weights *file, const char *key)
{
    const char *text = pc_weights_note(file, key);
    return text ? strtoll(text, NULL, 10) : -1;
}

static pc_status load_one(const pc_weights *file, const pc_parameter *to)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *t = pc_weights_read(file, to->name, PC_DEVICE_CPU);
        status = t ? PC_OK : pc_error_last()->status;
        if (status == PC_OK && (!pc__same_shape(t, to->tensor) || t->dtype != to->tensor->dtype))
            status = damaged(file->path);
        if (status == PC_OK)
            status = pc_copy(to->tensor, t);
    }
    return status;
}

/* In every rank. */
static pc_status load_tensors(pc__gpt_training *t, const pc_weights *file)
{
    contents c;
    pc_status status = contents_make(t, &c, false);
    PC_NO_GRAD {
        for (int i = 0; i < c.count * (1 + c.slots) && status == PC_OK; i++)
            status = load_one(file, &c.list[i]);
    }
    if (status == PC_OK && t->zero)
        status = pc__zero_state_put(t->zero, t->optimizer, c.state);
    contents_free(&c);
    return status;
}

/* Rows of numbers, from pc__alloc. */
static double *rows(const pc_weights *file, const char *name, int64_t columns, int64_t most, int64_t *count)
{
    double *out = NULL;
    *count = -1;
    PC_SCOPE {
        pc_tensor *t = pc_weights_read(file, name, PC_DEVICE_CPU);
        const bool fits = t && t->ndim == 2 && t->dtype == PC_F64 && t->shape[1] == columns && t->shape[0] <= most;
        out = fits ? pc__alloc((size_t)(t->shape[0] * columns) * sizeof *out) : NULL;
        if (out && pc_read(t, out, (size_t)(t->shape[0] * columns) * sizeof *out) == PC_OK)
            *count = t->shape[0];
    }
    return out;
}

static pc_status load_curves(pc__gpt_training *t, const pc_weights *file)
{
    pc__curve *c = &t->run.curve;
    int64_t count, tested;
    double *groups = rows(file, "curve", 2, PC__CURVE_GROUPS, &count);
    double *tests = rows(file, "tested", 3, INT32_MAX, &tested);
    const bool fine = groups && tests && count >= 0 && tested >= 0 && whole_note(file, "width") >= (count > 0);
    for (int64_t i = 0; fine && i < count; i++)
        c->groups[i] = (pc__curve_group){groups[2 * i], (int64_t)groups[2 * i + 1]};
    if (fine) {
        c->count = count, c->width = whole_note(file, "width");
        t->run.tested = (pc__gpt_tested *)tests;
        t->run.tested_count = t->run.tested_room = (int)tested;
    } else {
        pc__free(tests);
    }
    pc__free(groups);
    return fine ? PC_OK : damaged(file->path);
}

static pc_status load(pc__gpt_training *t, const pc_weights *file)
{
    const int64_t step = whole_note(file, "step"), draws = whole_note(file, "draws");
    const char *seed = pc_weights_note(file, "seed"), *best = pc_weights_note(file, "best");
    const char *seconds = pc_weights_note(file, "seconds");
    if (!pc_weights_note(file, "paracord gpt") || step < 0 || step > t->o.steps || draws < 0 || !seed || !best ||
        !seconds)
        return damaged(file->path);
    PC__TRY(check_settings(t, file->path, pc_weights_note(file, "settings")));
    PC__TRY(pc__gpt_ranks_whole(t, true));
    PC__TRY(load_tensors(t, file));
    PC__TRY(pc__gpt_ranks_whole(t, false));
    PC__TRY(load_curves(t, file));
    t->at.step = step;
    t->best = strtod(best, NULL);
    t->before = strtod(seconds, NULL);
    pc__optimizer_adopt(t->optimizer, step);
    pc_generator_set((pc_generator){strtoull(seed, NULL, 10), (uint64_t)draws});
    return PC_OK;
}

pc_status pc__gpt_checkpoint_load(pc__gpt_training *t, const char *path)
{
    pc_weights *file = pc_weights_open(path);
    if (!file)
        return pc_error_last()->status;
    const pc_status status = load(t, file);
    pc_weights_free(file);
    return status;
}
