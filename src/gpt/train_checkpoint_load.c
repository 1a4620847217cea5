/* train_checkpoint_load.c: going on from a checkpoint. */
#include "dist/zero_state.h"
#include "gpt/train.h"
#include "io/safetensors.h"
#include "nn/optimizer.h"

#include <paracord/no_grad.h>
#include <paracord/random.h>

#include <stdlib.h>

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

/* Elements from `begin` on of the tensor that `whole` is the shape of. */
static pc_status load_piece(const pc_weights *file, const pc_parameter *whole, int64_t begin, pc_tensor *to)
{
    const pc__weight *w = pc__weights_find(file, whole->name);
    bool fits = w && w->type == pc__weight_type_for(PC_F32) && w->ndim == whole->tensor->ndim;
    for (int i = 0; fits && i < w->ndim; i++)
        fits = w->shape[i] == whole->tensor->shape[i];
    if (!fits)
        return damaged(file->path);
    const size_t bytes = (size_t)pc_tensor_count(to) * sizeof(float);
    float *numbers = pc__alloc(bytes);
    pc_status status =
        numbers ? pc__weights_bytes(file, file->start + w->begin + begin * (int64_t)sizeof(float), numbers, bytes)
                : PC_ERR_MEMORY;
    PC_SCOPE {
        if (status == PC_OK)
            status = pc_copy(to, pc_from_data(numbers, pc_tensor_shape(to), PC_F32, pc_tensor_device(to)));
    }
    pc__free(numbers);
    return status;
}

static pc_status load_pieces(pc__gpt_training *t, const pc_weights *file, const pc_parameter *list)
{
    const pc_optimizer *o = t->optimizer;
    const pc__piece *pieces;
    const int count = pc__zero_pieces(t->zero, &pieces), whole = pc__zero_parameters(t->zero);
    for (int kind = -1; kind < o->slots; kind++)
        for (int i = 0; i < count; i++)
            PC__TRY(load_piece(file, &list[(kind + 1) * whole + pieces[i].parameter], pieces[i].begin,
                               kind < 0 ? pieces[i].weights : o->state[kind * count + i]));
    return pc__zero_spread(t->zero);
}

static pc_status load_tensors(pc__gpt_training *t, const pc_weights *file)
{
    int n;
    pc_parameter *list = pc__gpt_checkpoint_list(t, &n);
    if (!list)
        return PC_ERR_MEMORY;
    pc_status status = PC_OK;
    PC_NO_GRAD {
        for (int i = 0; i < n && !t->zero && status == PC_OK; i++)
            status = load_one(file, &list[i]);
        if (t->zero)
            status = load_pieces(t, file, list);
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
