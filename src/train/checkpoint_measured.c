/* checkpoint_measured.c: names of what is measured, as strings with their ends, one behind the other: the first says that they
 * are such, the second what is watched, the others are the metrics'. */
#include "train/checkpoint_measured.h"

#include <math.h>

static const char first[] = "measured";

static void put(pc__text *out, const char *name)
{
    pc__text_append(out, name, strlen(name) + 1);
}

void pc__checkpoint_put_measured(pc__text *out, const pc__fit *fit)
{
    if (!fit->best.watch)
        return;
    put(out, first);
    put(out, fit->best.watch);
    for (int i = 0; i < fit->judge.metric_count; i++)
        put(out, fit->judge.metrics[i].name);
}

bool pc__checkpoint_has_measured(const pc__checkpoint_file *file)
{
    const size_t n = (size_t)file->header.about;
    return n >= sizeof first && memcmp(file->about, first, sizeof first) == 0 && file->about[n - 1] == 0;
}

/* Name number i; NULL: there are not so many. */
static const char *name_at(const pc__checkpoint_file *file, int i)
{
    const char *at = file->about, *const end = at + file->header.about;
    if (!pc__checkpoint_has_measured(file))
        return NULL;
    for (; i && at < end; i--)
        at += strlen(at) + 1;
    return at < end ? at : NULL;
}

static const char *watched(const pc__checkpoint_file *file)
{
    return name_at(file, 1);
}

static const char *metric_name(const pc__checkpoint_file *file, int i)
{
    return name_at(file, 2 + i);
}

pc_status pc__checkpoint_check_measured(const char *path, const pc__checkpoint_file *file, const pc__fit *fit)
{
    const char *was = watched(file), *now = fit->best.watch;
    return !was || !now || !file->header.best.epoch || strcmp(was, now) == 0
               ? PC_OK
               : pc__fail(PC_ERR_STATE,
                          "%s has the best epoch by \"%.60s\", %lld, and this run watches \"%.60s\"; resume with the "
                          "same .watch",
                          path, was, (long long)file->header.best.epoch, now);
}

/* Of several with one name the one at the same place. */
static double find(const pc__checkpoint_file *file, const pc_epoch_result *r, const char *name, int place)
{
    const char *here = metric_name(file, place);
    if (place < r->metrics && here && strcmp(here, name) == 0)
        return r->metric[place];
    for (int k = 0; k < r->metrics && (here = metric_name(file, k)); k++)
        if (strcmp(here, name) == 0)
            return r->metric[k];
    return (double)NAN;
}

void pc__checkpoint_order_measured(const pc__checkpoint_file *file, const pc__fit *fit, pc_epoch_result *result)
{
    const pc_epoch_result was = *result;
    if (!watched(file) || !result->has_test)
        return;
    for (int i = 0; i < PC_METRICS_MAX; i++)
        result->metric[i] = i < fit->judge.metric_count ? find(file, &was, fit->judge.metrics[i].name, i) : (double)NAN;
    result->metrics = fit->judge.metric_count;
}
