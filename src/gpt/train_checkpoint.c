/* train_checkpoint.c: a training between two steps as one safetensors file: weights ("w.NAME"), moments ("m0.NAME",
 * "m1.NAME"), the curves, and what else there is as notes. */
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

/* Weights and moments; room for 3 x count + 2. */
static int list_tensors(const pc__gpt_training *t, pc_parameter *list)
{
    const pc_optimizer *o = t->optimizer;
    int n = 0;
    for (int kind = -1; kind < o->slots; kind++)
        for (int i = 0; i < o->count; i++, n++) {
            if (kind < 0)
                snprintf(list[n].name, sizeof list[n].name, "w.%.80s", o->names[i].name);
            else
                snprintf(list[n].name, sizeof list[n].name, "m%d.%.80s", kind, o->names[i].name);
            list[n].tensor = kind < 0 ? o->parameters[i] : o->state[kind * o->count + i];
        }
    return n;
}

static pc_parameter *make_list(const pc__gpt_training *t)
{
    return pc__calloc((size_t)t->optimizer->count * (size_t)(1 + t->optimizer->slots) + 2, sizeof(pc_parameter));
}

pc_status pc__gpt_checkpoint_save(pc__gpt_training *t, const char *path)
{
    char step[32], seed[32], draws[32], seconds[40], best[40], width[32];
    PC__TRY(pc__optimizer_settle(t->optimizer));
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
    pc_parameter *list = make_list(t);
    pc_status status = list ? PC_OK : PC_ERR_MEMORY;
    PC_SCOPE {
        if (status != PC_OK)
            break;
        int n = list_tensors(t, list);
        snprintf(list[n].name, sizeof list[n].name, "curve");
        list[n++].tensor = curve_tensor(t);
        snprintf(list[n].name, sizeof list[n].name, "tested");
        list[n++].tensor = tested_tensor(t);
        status = list[n - 1].tensor && list[n - 2].tensor ? pc_weights_write(path, list, n, notes) : PC_ERR_MEMORY;
    }
    pc__free(list);
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

static pc_status load_tensors(pc__gpt_training *t, const pc_weights *file)
{
    pc_parameter *list = make_list(t);
    if (!list)
        return PC_ERR_MEMORY;
    pc_status status = PC_OK;
    const int n = list_tensors(t, list);
    PC_NO_GRAD {
        for (int i = 0; i < n && status == PC_OK; i++)
            status = load_one(file, &list[i]);
    }
    pc__free(list);
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
    PC__TRY(load_tensors(t, file));
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
