/* train_checkpoint_load.c: going on from a checkpoint. */
#include "parallel/zero_state.h"
#include "gpt/train.h"
#include "io/safetensors.h"
#include "nn/optimizer.h"
#include "train/metrics_line.h"

#include <paracord/no_grad.h>
#include <paracord/random.h>

#include <math.h>
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

/* In plain numbers. NaN: files of before have no such note. */
static double number_note(const pc_weights *file, const char *key)
{
    const char *text = pc_weights_note(file, key);
    return text ? strtod(text, NULL) : NAN;
}

/* Behind the whole tensor's end a part has zeros. */
static pc_status read_part(const pc_weights *file, const pc__weight *w, const pc__weights_part *part, char *to,
                           int64_t bytes)
{
    for (int64_t done = 0, at, run; done < bytes; done += run) {
        run = pc__runs_next(&part->runs, part->at + done, part->at + bytes, &at);
        if (at < 0)
            memset(to + done, 0, (size_t)run);
        else
            PC__TRY(pc__weights_bytes(file, file->start + w->begin + at, to + done, (size_t)run));
    }
    return PC_OK;
}

static pc_status load_part(const pc_weights *file, const pc_parameter *whole, const pc__weights_part *part)
{
    const pc__weight *w = pc__weights_find(file, whole->name);
    bool fits = w && w->type == pc__weight_type_for(PC_F32) && w->ndim == whole->tensor->ndim;
    for (int i = 0; fits && i < w->ndim; i++)
        fits = w->shape[i] == whole->tensor->shape[i];
    if (!fits)
        return damaged(file->path);
    const int64_t bytes = pc_tensor_count(part->t) * (int64_t)sizeof(float);
    char *numbers = pc__alloc((size_t)bytes);
    pc_status status = numbers ? read_part(file, w, part, numbers, bytes) : PC_ERR_MEMORY;
    PC_SCOPE {
        if (status == PC_OK)
            status =
                pc_copy(part->t, pc_from_data(numbers, pc_tensor_shape(part->t), PC_F32, pc_tensor_device(part->t)));
    }
    pc__free(numbers);
    return status;
}

static pc_status load_tensors(pc__gpt_training *t, const pc_weights *file)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        PC_NO_GRAD {
            pc__gpt_pieces p;
            status = pc__gpt_pieces_find(t, &p);
            for (int i = 0; i < p.part_count && status == PC_OK; i++)
                status = load_part(file, &p.list[p.parts[i].tensor], &p.parts[i]);
            pc__gpt_pieces_free(&p);
        }
    }
    return t->zero && status == PC_OK ? pc__zero_spread(t->zero) : status;
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
    if (!pc_weights_note(file, "paracord gpt") || step < 0 || draws < 0 || !seed || !best || !seconds)
        return damaged(file->path);
    PC__TRY(check_settings(t, file->path, pc_weights_note(file, "settings")));
    if (step > t->o.steps)
        return damaged(file->path);
    PC__TRY(load_tensors(t, file));
    PC__TRY(load_curves(t, file));
    t->at.step = step;
    const pc__plain_numbers plain = pc__plain_numbers_begin();
    t->best = strtod(best, NULL);
    t->before = strtod(seconds, NULL);
    t->run.tokens_per_second = number_note(file, "tokens a second");
    t->run.mfu = number_note(file, "mfu");
    pc__plain_numbers_end(plain);
    pc__optimizer_adopt(t->optimizer, step);
    pc_generator_set((pc_generator){strtoull(seed, NULL, 10), (uint64_t)draws});
    return PC_OK;
}

/* A whole number of the file's settings, of the line that begins so, behind another line's end; -1: there is none. */
static int64_t whole_setting(const pc_weights *file, const char *begin)
{
    const char *settings = pc_weights_note(file, "paracord gpt") ? pc_weights_note(file, "settings") : NULL;
    const char *line = settings ? strstr(settings, begin) : NULL;
    return line ? strtoll(line + strlen(begin), NULL, 10) : -1;
}

/* Where the training of the file stands: after `step` of `steps`. Both -1 where the file does not say so. */
static void find_steps(const pc_weights *file, int64_t *step, int64_t *steps)
{
    *steps = whole_setting(file, "\nsteps=");
    *step = *steps > 0 ? whole_note(file, "step") : -1;
    if (*step < 0 || *step > *steps)
        *step = *steps = -1;
}

/* Damage may be where that is said: only a file whose checksum is right, in the rank that would overwrite it, is believed. */
static pc_status read_steps(const pc__gpt_training *t, const char *path, int64_t *step, int64_t *steps)
{
    pc_weights *file = pc_weights_open(path);
    if (!file)
        return pc_error_last()->status;
    const pc_status status = t->rank ? PC_OK : pc__gpt_checkpoint_check(file);
    if (status == PC_OK)
        find_steps(file, step, steps);
    pc_weights_free(file);
    return status;
}

/* What cannot be read may be all that somebody has of a long training. */
pc_status pc__gpt_checkpoint_spare(const pc__gpt_training *t, const char *path)
{
    int64_t step = -1, steps = -1;
    const pc_status status = read_steps(t, path, &step, &steps);
    if (status == PC_ERR_MEMORY || status == PC_ERR_FILE)
        return status; /* it may be a good one */
    pc_error_clear();
    if (status != PC_OK || steps < 0)
        return pc__fail(PC_ERR_STATE,
                        "%s cannot be read as a checkpoint of a GPT, so that it may be of an unfinished training; "
                        "choose another --out, or delete it",
                        path);
    return step == steps ? PC_OK
                         : pc__fail(PC_ERR_STATE,
                                    "%s holds an unfinished training, of step %lld of %lld; go on with it by --resume, "
                                    "or choose another --out or delete it",
                                    t->o.out, (long long)step, (long long)steps);
}

pc_status pc__gpt_checkpoint_look(const char *path, pc__gpt_standing *at)
{
    pc_weights *file = pc_weights_open(path);
    if (!file)
        return pc_error_last()->status;
    const char *sum = pc_weights_note(file, "checksum");
    *at = (pc__gpt_standing){.there = 1, .step = whole_note(file, "step"), .draws = whole_note(file, "draws")};
    at->batch = whole_setting(file, "\nbatch=");
    at->batch = at->batch > 0 && at->batch <= INT_MAX ? at->batch : 0;
    if (sum)
        memcpy(at->sum, sum, strnlen(sum, sizeof at->sum));
    pc_weights_free(file);
    return PC_OK;
}

pc_status pc__gpt_checkpoint_load(pc__gpt_training *t, const char *path)
{
    pc_weights *file = pc_weights_open(path);
    if (!file)
        return pc_error_last()->status;
    pc_status status = t->rank ? PC_OK : pc__gpt_checkpoint_check(file);
    if (status == PC_OK)
        status = load(t, file);
    pc_weights_free(file);
    return status;
}
