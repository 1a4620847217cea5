/* checkpoint_settings.c: the settings that a checkpoint was made with, beside those of the run that is to go on. */
#include "data/gather.h"
#include "nn/module.h"
#include "nn/optimizer.h"
#include "ops/scale.h"
#include "train/checkpoint_form.h"

#include <stdlib.h>

/* Of a line of settings: its option, or what stands in front of its last word. */
static size_t key_of(const char *line)
{
    size_t n = strcspn(line, "\n");
    if (line[0] == '-')
        return strcspn(line, " \n");
    while (n && line[n] != ' ')
        n--;
    return n;
}

/* --flip and --no-flip are one option. */
static bool same_key(const char *a, const char *b)
{
    static const char no[] = "--no-";
    const size_t off = strlen(no);
    size_t n = key_of(a), m = key_of(b);
    if (strncmp(a, no, off) == 0 && strncmp(b, no, off) != 0)
        return m > 2 && n - off == m - 2 && memcmp(a + off, b + 2, m - 2) == 0;
    if (strncmp(b, no, off) == 0 && strncmp(a, no, off) != 0)
        return same_key(b, a);
    return n == m && memcmp(a, b, n) == 0;
}

static bool has_key(const char *settings, const char *line)
{
    for (; *settings; settings += strcspn(settings, "\n"), settings += *settings == '\n')
        if (same_key(settings, line))
            return true;
    return false;
}

/* A line as one would write it: numbers are kept so that they come back to the same bits, 20 as 2e+01. */
static const char *words_of(const char *line, char words[128])
{
    const int n = (int)strcspn(line, "\n"), key = (int)key_of(line);
    snprintf(words, 128, "%.*s", n, line);
    char *value = words + PC__MIN(key + 1, n), *end;
    if (line[0] != '-' || n > 100 || !strpbrk(value, ".e"))
        return words;
    const double number = strtod(value, &end);
    if (end != value && !*end)
        snprintf(value, 24, "%.10g", number);
    return words;
}

static pc_status settings_differ(const char *path, const char *was, const char *now, const char *all_was)
{
    char a[128], b[128];
    const bool both = same_key(was, now);
    const bool new = key_of(now) && !both && !has_key(all_was, now);
    if (new)
        snprintf(a, sizeof a, "without %.*s", (int)key_of(now), now);
    else
        snprintf(a, sizeof a, "with %.100s", words_of(was, b));
    return pc__fail(PC_ERR_STATE,
                    "%s was made %s, and this run has %s; resume with the same settings or choose another --out", path,
                    a, new || both ? words_of(now, b) : "none");
}

/* Of text that says what it likes: the line as it is, where there is one. */
static pc_status own_differ(const char *path, const char *was, const char *now)
{
    char had[128], has[128];
    snprintf(had, sizeof had, "%.*s", (int)PC__MIN(strcspn(was, "\n"), 100), was);
    snprintf(has, sizeof has, "%.*s", (int)PC__MIN(strcspn(now, "\n"), 100), now);
    const char *const way = "resume with the same .settings, or choose another .checkpoint";
    if (!*had)
        return pc__fail(PC_ERR_STATE, "%s was made without the settings %s, which this run has; %s", path, has, way);
    if (!*has)
        return pc__fail(PC_ERR_STATE, "%s was made with the settings %s, which this run lacks; %s", path, had, way);
    return pc__fail(PC_ERR_STATE, "%s was made with the settings %s, and this run has %s; %s", path, had, has, way);
}

/* Files of before there was that line go on without it. */
static const char *behind_unknown(const char *all_was, const char *now)
{
    static const char key[] = PC__TEST_PICTURES " ";
    if (strncmp(now, key, sizeof key - 1) != 0 || has_key(all_was, now))
        return now;
    now += strcspn(now, "\n");
    return now + (*now == '\n');
}

pc_status pc__checkpoint_check_settings(const char *path, const char *was, const char *now, bool own)
{
    const char *const all_was = was;
    while (*was || *now) {
        now = own ? now : behind_unknown(all_was, now);
        const size_t a = strcspn(was, "\n"), b = strcspn(now, "\n");
        if (a != b || memcmp(was, now, a) != 0)
            return own ? own_differ(path, was, now) : settings_differ(path, was, now, all_was);
        was += a + (was[a] == '\n');
        now += b + (now[b] == '\n');
    }
    return PC_OK;
}

/* What one optimiser keeps means something else to another one. */
static pc_status check_optimizer(const char *path, const pc__checkpoint_header *h, const pc__fit *fit)
{
    const size_t behind = strlen(h->settings) + 1;
    const char *was = behind < sizeof h->settings ? h->settings + behind : "";
    return !*was || strcmp(was, fit->optimizer->name) == 0
               ? PC_OK
               : pc__fail(PC_ERR_STATE,
                          "%s has the state of the optimiser %.20s, and this run has %s; resume with that one, or load "
                          "the weights and begin anew",
                          path, was, fit->optimizer->name);
}

/* Inside an epoch the place is a number of batches: of other ones it is another place. */
static pc_status check_place(const char *path, const pc__checkpoint_header *h, const pc__fit *fit)
{
    if (h->batch == 0)
        return PC_OK;
    const int64_t batch = pc__loader_batch(fit->train), given = pc__loader_given(fit->train);
    return h->batch <= pc_loader_batches(fit->train) && h->seen == PC__MIN(h->batch * batch, given)
               ? PC_OK
               : pc__fail(PC_ERR_STATE,
                          "%s was made behind %lld batches and %lld samples of an epoch, and this run has batches of "
                          "%lld of %lld; resume with the same loader",
                          path, (long long)h->batch, (long long)h->seen, (long long)batch, (long long)given);
}

/* The loss scaler's numbers are behind what the optimiser keeps, where there are some. */
static bool has_scaler(const pc__checkpoint_file *file, pc__parameters p, int64_t stepped)
{
    size_t at = 0;
    pc__checkpoint_tensor is;
    bool there = true;
    for (int64_t i = 0; i < stepped && there; i++)
        there = pc__checkpoint_next(file, &at, pc_tensor_dtype(p.tensor[i % p.count]), &is);
    return there && pc__checkpoint_next(file, &at, PC_F32, &is) && is.count == PC__SCALER_NUMBERS;
}

static pc_status other_mixed(const char *path, bool was)
{
    return pc__fail(PC_ERR_STATE,
                    "%s was made with%s .mixed = PC_MIXED_F16, and this run has %s; resume with the same .mixed", path,
                    was ? "" : "out", was ? "another .mixed" : "that");
}

/* Parameters and what is kept of them, and buffers. */
static pc_status check_tensors(const char *path, const pc__checkpoint_file *file, const pc__fit *fit)
{
    const pc__checkpoint_header *h = &file->header;
    const pc__parameters p = pc__fit_parameters(fit);
    const int64_t parameters = p.count, buffers = pc__module_buffer_count(fit->net);
    const int64_t stepped = parameters * (1 + fit->optimizer->slots), scaler = fit->scaler != NULL;
    const int64_t more = h->tensors - (stepped + scaler + buffers);
    if (h->parameters != parameters)
        return pc__fail(
            PC_ERR_STATE,
            "%s is of another network: that has %lld parameters to train, and this one %lld; resume with the "
            "same network and the same frozen part of it, or choose another file",
            path, (long long)h->parameters, (long long)parameters);
    if (more == 1 && !scaler && has_scaler(file, p, stepped))
        return other_mixed(path, true);
    if (more == -1 && scaler)
        return other_mixed(path, false);
    if (more && parameters && more % parameters == 0)
        return pc__fail(
            PC_ERR_STATE,
            "%s has %lld tensors of the optimiser %s for each parameter, and this run's keeps %d: it had other "
            "settings, such as a momentum; resume with the same ones",
            path, (long long)(fit->optimizer->slots + more / parameters), fit->optimizer->name, fit->optimizer->slots);
    return !more ? PC_OK
                 : pc__fail(PC_ERR_STATE,
                            "%s is of another network: that has %lld buffers, such as running statistics, and this one "
                            "%lld; resume with the same network, or choose another file",
                            path, (long long)(buffers + more), (long long)buffers);
}

/* Who keeps none drops what is there. */
static pc_status check_kept(const char *path, const pc__checkpoint_header *h, const pc__fit *fit)
{
    if (!fit->best.count || !h->best.epoch || h->kept == fit->best.count)
        return PC_OK;
    if (h->kept == 0)
        return pc__fail(PC_ERR_STATE,
                        "%s was made without keep_best, so that it lacks the weights of its best epoch, %lld; resume "
                        "without keep_best",
                        path, (long long)h->best.epoch);
    return pc__fail(PC_ERR_STATE,
                    "%s is of another network: of its best epoch it has %lld tensors, and this one has %d; resume with "
                    "the same network, or choose another file",
                    path, (long long)h->kept, fit->best.count);
}

pc_status pc__checkpoint_check_fit(const char *path, const pc__checkpoint_file *file, const pc__fit *fit)
{
    PC__TRY(check_optimizer(path, &file->header, fit));
    PC__TRY(check_place(path, &file->header, fit));
    PC__TRY(check_tensors(path, file, fit));
    return check_kept(path, &file->header, fit);
}
