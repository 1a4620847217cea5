/* ranks.c: which devices, and a thread for each; or this process's rank. */
#include "ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <paracord/device.h>
#include <paracord/dist.h>

#include "text.h"

static bool add(const cli_command *command, cli_ranks *r, const char *name)
{
    pc_device device;
    if (r->count == CLI_RANKS) {
        cli_error(command, "--devices: more than %d", CLI_RANKS);
        return false;
    }
    if (pc_device_parse(name, &device) != PC_OK) {
        char why[CLI_FAILURE_MAX];
        cli_error(command, "--devices: %s", cli_failure(why));
        pc_error_clear();
        return false;
    }
    pc_device_name(device, r->device[r->count]);
    for (int i = 0; i < r->count && device.type != PC_CPU; i++)
        if (strcmp(r->device[i], r->device[r->count]) == 0) {
            cli_error(command, "--devices: %s is there twice", r->device[i]);
            return false;
        }
    r->count++;
    return true;
}

static bool add_all(const cli_command *command, cli_ranks *r)
{
    char why[256], name[PC_DEVICE_NAME_MAX + 8];
    const int n = pc_device_count(PC_CUDA, why, sizeof why);
    if (!n)
        cli_error(command, "--devices all: there is no GPU: %s", why);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "cuda:%d", i);
        if (!add(command, r, name))
            return false;
    }
    return n > 0;
}

static bool add_words(const cli_command *command, cli_ranks *r, const char *words)
{
    while (*words) {
        const size_t length = strcspn(words, ",");
        char name[PC_DEVICE_NAME_MAX + 8];
        const bool number = length && strspn(words, "0123456789") >= length;
        snprintf(name, sizeof name, "%s%.*s", number ? "cuda:" : "", (int)(length < 16 ? length : 16), words);
        if (!add(command, r, name))
            return false;
        words += length + (words[length] == ',');
    }
    if (!r->count)
        cli_error(command, "--devices: names none; all, 0,1 or cuda:0,cuda:1");
    return r->count;
}

/* A launched process: number local rank of the kind, unless one is named. */
static void take_own(cli_ranks *r, const char *device)
{
    const bool numbered = strchr(device, ':') || strcmp(device, "cpu") == 0;
    const char *kind = strcmp(device, "auto") ? device : pc_device_available(PC_CUDA) ? "cuda" : "cpu";
    r->count = 1;
    r->is_other = pc_dist_rank() > 0;
    if (numbered || strcmp(kind, "cpu") == 0)
        snprintf(r->device[0], sizeof r->device[0], "%s", kind);
    else
        snprintf(r->device[0], sizeof r->device[0], "%.8s:%d", kind, pc_dist_local_rank());
}

bool cli_ranks_take(const cli_command *command, cli_ranks *ranks, const char *devices, const char *device)
{
    if (pc_dist_init((pc_dist_options){.timeout_seconds = 0}) != PC_OK) {
        (void)cli_failed(command);
        pc_error_clear();
        return false;
    }
    if (pc_dist_size() > 1 && devices) {
        cli_error(command, "--devices: this process is rank %d of %d, which has one device (--device)", pc_dist_rank(),
                  pc_dist_size());
        return false;
    }
    if (devices)
        return strcmp(devices, "all") == 0 ? add_all(command, ranks) : add_words(command, ranks, devices);
    if (pc_dist_size() > 1) {
        take_own(ranks, device);
        return true;
    }
    ranks->count = 1;
    snprintf(ranks->device[0], sizeof ranks->device[0], "%s", device);
    return true;
}

/* All begin when all are there, or none does. */
typedef struct start {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int verdict; /* 1: go; -1: do not */
} start;

typedef struct member {
    const cli_ranks *ranks;
    start *start;
    pc_group *group;
    int number;
    pc_error error;
} member;

static bool may_begin(start *s)
{
    pthread_mutex_lock(&s->lock);
    while (!s->verdict)
        pthread_cond_wait(&s->changed, &s->lock);
    const bool go = s->verdict > 0;
    pthread_mutex_unlock(&s->lock);
    return go;
}

static void say(start *s, int verdict)
{
    pthread_mutex_lock(&s->lock);
    s->verdict = verdict;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void *work(void *context)
{
    member *m = context;
    const cli_ranks *r = m->ranks;
    if (!may_begin(m->start))
        return NULL;
    if (r->work(r->context, m->group, r->device[m->number], m->number == 0 && !r->is_other) != PC_OK)
        m->error = *pc_error_last();
    pc_error_clear();
    return NULL;
}

/* The error of the rank that failed by itself: others only heard of it. */
static pc_status tell(const member *members, int count)
{
    const member *failed = NULL;
    for (int i = 0; i < count; i++)
        if (members[i].error.status != PC_OK && (!failed || strncmp(failed->error.message, "rank ", 5) == 0))
            failed = &members[i];
    return failed ? pc_fail(failed->error.status, "%s%s%s", failed->error.message, failed->error.cause[0] ? ": " : "",
                            failed->error.cause)
                  : PC_OK;
}

static pc_status run_threads(cli_ranks *r)
{
    member members[CLI_RANKS] = {{0}};
    pc_group *groups[CLI_RANKS];
    pthread_t threads[CLI_RANKS];
    start begin = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    int started = 0;
    if (pc_group_threads(r->count, groups) != PC_OK)
        return pc_error_last()->status;
    for (; started < r->count; started++) {
        members[started] = (member){.ranks = r, .start = &begin, .group = groups[started], .number = started};
        if (pthread_create(&threads[started], NULL, work, &members[started]) != 0)
            break;
    }
    say(&begin, started == r->count ? 1 : -1);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < r->count; i++)
        pc_group_free(groups[i]);
    if (started < r->count)
        return pc_fail(PC_ERR_MEMORY, "the system gives no threads for %d devices", r->count);
    return tell(members, started);
}

pc_status cli_ranks_run(cli_ranks *ranks)
{
    if (ranks->count > 1)
        return run_threads(ranks);
    pc_group *world = pc_dist_size() > 1 ? pc_group_world() : NULL;
    if (pc_dist_size() > 1 && !world)
        return pc_error_last()->status;
    const pc_status status = ranks->work(ranks->context, world, ranks->device[0], !ranks->is_other);
    pc_group_free(world);
    if (status == PC_OK)
        return pc_dist_end();
    return status;
}
