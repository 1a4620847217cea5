/* need.c: the memory of a training, estimated and compared. */
#include "train/need.h"

#include "train/arch.h"

#include <math.h>
#include <paracord/group.h>
#include <paracord/memory.h>

enum { FLOAT = 4, INPUTS = 3 /* being trained on, and made ahead */, CACHE_SHARE = 2 };

/* Numbers that a rank keeps of each parameter. Weights are whole in all of them at the ends of epochs. */
static double shares_of(const pc__run *run, int slots)
{
    const double n = run->fit.group ? pc_group_size(run->fit.group) : 1;
    const int stage = run->fit.group ? run->s.zero : 0;
    const double gradients = stage >= 2 ? 1 / n : stage == 1 ? 1 + 1 / n : 1;
    return 1 + gradients + (stage ? slots / n : slots);
}

pc_status pc__need_of(const pc__run *run, int outputs, pc__need *need)
{
    const pc_train_options *s = &run->s;
    const pc__frame frame = {s->height, s->width, s->channels};
    pc__arch_size size;
    PC__TRY(pc__arch_measure(run->arch, frame, outputs, &size));
    const int slots = strncmp(s->optimizer, "adam", 4) == 0  ? 2
                      : strcmp(s->optimizer, "rmsprop") == 0 ? 1 + (s->momentum > 0)
                                                             : strcmp(s->optimizer, "lion") == 0 || s->momentum > 0;
    const int host = run->device.type == PC_CPU ? 1 + slots + (strcmp(s->keep, "last") != 0) : 0;
    const double at_once = (double)pc__run_at_once(run) / pc__run_part(run);
    const double input = INPUTS * FLOAT * (double)pc__frame_bytes(frame), kept = FLOAT * size.activations;
    *need = (pc__need){.network = size.parameters * FLOAT * (shares_of(run, slots) + host),
                       .picture = input + kept * at_once,
                       .input = input,
                       .kept = kept,
                       .parameters = size.parameters};
    return PC_OK;
}

/* Bytes that the device has left; infinite where nothing says. */
static double left_on(pc_device device)
{
    pc_memory_stats stats;
    if (device.type == PC_CPU) {
        const int64_t left = pc_memory_left();
        return left == INT64_MAX ? HUGE_VAL : (double)left;
    }
    if (pc_memory_query(device, &stats) == PC_OK)
        return stats.total > 0 ? (double)(stats.free + stats.cached) : HUGE_VAL;
    pc_error_clear();
    return HUGE_VAL;
}

typedef struct words {
    char s[512];
} words;

/* "training takes 9.0 GB of memory at least: 8.5 GB for ..., 0.5 GB for ...; --batch 8 helps" */
static words words_of(const pc__run *run, const pc__need *need, double left)
{
    const pc_train_options *s = &run->s;
    const int part = pc__run_part(run);
    const double batch = need->picture * part, room = left - need->network;
    const int fits = need->picture * 1.0 <= room ? (int)fmin(room / need->picture, part) : 0;
    const bool large = !strcmp(s->arch, "two-conv") || !strcmp(s->arch, "mlp");
    words w;
    int n = snprintf(w.s, sizeof w.s,
                     "training takes %.2g GB of memory at least: %.2g GB for the %.3g million weights of %s on %d x %d "
                     "pixels with gradients, %s and checkpoint, %.2g GB for batches of %d pictures; ",
                     (need->network + batch) * 1e-9, need->network * 1e-9, need->parameters * 1e-6, s->arch, s->height,
                     s->width, s->optimizer, batch * 1e-9, part);
    const double at_once = floor((room - need->input * part) / need->kept); /* pictures that there is room for */
    if (fits && fits < part && at_once >= 1)
        snprintf(w.s + n, sizeof w.s - (size_t)n, "--batch %d helps, or --accumulate %d, or a smaller --size",
                 fits * (s->batch / part), (int)ceil(part / at_once));
    else if (fits && fits < part)
        snprintf(w.s + n, sizeof w.s - (size_t)n, "--batch %d helps, or a smaller --size", fits * (s->batch / part));
    else
        snprintf(w.s + n, sizeof w.s - (size_t)n, "a smaller --size helps%s%s", large ? ", or --arch article" : "",
                 batch > need->network ? ", or a smaller --batch" : "");
    return w;
}

pc_status pc__need_check(const pc__run *run, int outputs)
{
    pc__need need;
    PC__TRY(pc__need_of(run, outputs, &need));
    const double left = left_on(run->device), wanted = need.network + need.picture * pc__run_part(run);
    if (wanted <= left)
        return PC_OK;
    char name[PC_DEVICE_NAME_MAX];
    return pc__fail(PC_ERR_MEMORY, "out of memory before it began: %s has %.2g GB left; %s",
                    pc_device_name(run->device, name), left * 1e-9, words_of(run, &need, left).s);
}

int64_t pc__need_cache(const pc__run *run)
{
    pc__need need;
    const int64_t left = pc_memory_left();
    if (run->s.cache || run->device.type != PC_CPU || left == INT64_MAX)
        return run->s.cache;
    if (pc__need_of(run, 1, &need) != PC_OK) {
        pc_error_clear(); /* whoever makes the network says so */
        return 0;
    }
    const double beside = (double)left - 1.5 * (need.network + need.picture * pc__run_part(run));
    return beside >= (double)left / CACHE_SHARE ? 0 : beside >= 1 ? (int64_t)beside : -1;
}

pc_status pc__need_explain(const pc__run *run)
{
    pc__need need;
    const pc_error error = pc__error_take();
    if (pc__need_of(run, 1, &need) != PC_OK) {
        pc_error_clear();
        return pc__error_put(&error);
    }
    return pc__fail_cause(PC_ERR_MEMORY, error.cause, "%.160s; %.300s", error.message, words_of(run, &need, 0).s);
}
