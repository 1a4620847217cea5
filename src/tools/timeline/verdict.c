/* verdict.c: what a program is bound by, in words with the figure behind it. */
#include <math.h>

#include "timeline/causes.h"

#define BUSY 0.80  /* a compute engine that is busy for this share has enough to do */
#define CAUSE 0.15 /* a cause below this share explains nothing */

/* The device that computed most; the one that copied most where none computed; -1 where none did anything. */
static int subject(const pc_timeline *t, const pc_timeline_summary *s)
{
    const pc_timeline_device *best = NULL;
    for (int i = 0; i < s->device_count; i++) {
        const pc_timeline_device *d = &s->devices[i];
        if (d->compute + d->copy > 0 &&
            (!best || d->compute > best->compute || (best->compute == 0 && d->compute == 0 && d->copy > best->copy)))
            best = d;
    }
    for (int r = 0, i = -1; best && r < t->row_count; r++) {
        int process = t->rows[r].process;
        if (t->processes[process].device && (!r || t->rows[r - 1].process != process) && &s->devices[++i] == best)
            return process;
    }
    return -1;
}

static pc_timeline_verdict largest(const pc_timeline_causes *c)
{
    const double shares[] = {c->copying, c->loader, c->synchronising, c->launching, c->host};
    int most = 0;
    for (int i = 1; i < PC__COUNT(shares); i++)
        if (shares[i] > shares[most])
            most = i;
    if (c->compute >= BUSY || shares[most] < CAUSE)
        return PC_TIMELINE_COMPUTE_BOUND;
    return (pc_timeline_verdict)(PC_TIMELINE_COPY_BOUND + most);
}

static const pc_timeline_device *device_of(const pc_timeline_summary *s)
{
    for (int i = 0; i < s->device_count; i++)
        if (s->devices[i].device == s->causes.device)
            return &s->devices[i];
    return NULL;
}

static void say_launch(const pc_timeline_summary *s, pc__text *out)
{
    char kernel[32], gap[32];
    const pc_timeline_device *d = device_of(s);
    pc__text_add(out, "while the host was queuing ops");
    if (d && !isnan(d->median_kernel) && !isnan(d->median_gap))
        pc__text_add(out, "; median kernel %s, median gap %s", pc__timeline_time(d->median_kernel, kernel),
                     pc__timeline_time(d->median_gap, gap));
    pc__text_add(out, ": use larger batches or a graph");
}

static void say_sync(const pc_timeline_summary *s, pc__text *out)
{
    char total[32];
    pc__text_add(out, "because the host waited for it and had queued nothing more");
    if (s->wait_count)
        pc__text_add(out, "; longest in all: %.60s%s%.120s, %lld times, %s", s->waits[0].call,
                     s->waits[0].site[0] ? " at " : "", s->waits[0].site, (long long)s->waits[0].count,
                     pc__timeline_time(s->waits[0].total, total));
    pc__text_add(out, ": wait less often, or read a value one step later");
}

static void say_copy(const pc_timeline_summary *s, pc__text *out)
{
    int64_t bytes = 0;
    double seconds = 0;
    const pc_timeline_device *d = device_of(s);
    for (int i = 0; i < s->op_count; i++)
        if (s->ops[i].bytes > 0) {
            bytes += s->ops[i].bytes;
            seconds += s->ops[i].total / 1e6;
        }
    pc__text_add(out, "while copies ran");
    if (bytes && seconds > 0)
        pc__text_add(out, "; %.3g GB copied at %.3g GB/s", (double)bytes / 1e9, (double)bytes / 1e9 / seconds);
    if (d && !isnan(d->copy_overlapped))
        pc__text_add(out, "; computing went on during %.0f %% of the copying", 100 * d->copy_overlapped);
    pc__text_add(out, ": copy on a stream of its own, from pinned memory, or copy fewer bytes");
}

static void say(const pc_timeline_summary *s, pc__text *out)
{
    const pc_timeline_causes *c = &s->causes;
    const double shares[] = {c->copying, c->loader, c->synchronising, c->launching, c->host};
    pc__text_add(out, "%s: compute on %.80s ", pc_timeline_verdict_name(s->verdict), c->device);
    if (s->verdict == PC_TIMELINE_COMPUTE_BOUND) {
        pc__text_add(out, "was busy %.0f %% of the time", 100 * c->compute);
        if (c->compute < BUSY)
            pc__text_add(out, ", and idle for no single reason");
        return;
    }
    pc__text_add(out, "stood idle %.0f %% of the time ", 100 * shares[s->verdict - PC_TIMELINE_COPY_BOUND]);
    if (s->verdict == PC_TIMELINE_COPY_BOUND)
        say_copy(s, out);
    else if (s->verdict == PC_TIMELINE_LOADER_BOUND)
        pc__text_add(out,
                     "while the host waited for the loader: more threads to decode, more batches ahead, or smaller "
                     "pictures");
    else if (s->verdict == PC_TIMELINE_SYNC_BOUND)
        say_sync(s, out);
    else if (s->verdict == PC_TIMELINE_LAUNCH_BOUND)
        say_launch(s, out);
    else
        pc__text_add(out, "while the host neither queued nor waited: the program's own code takes that time");
}

static void say_no_work(pc_timeline_summary *s, pc__text *out)
{
    char time[32];
    s->verdict = s->events ? PC_TIMELINE_NO_WORK : PC_TIMELINE_EMPTY;
    if (!s->events)
        pc__text_add(out, "empty: the file has no event with a begin and an end");
    else if (s->wall > 0 && s->loader / s->wall >= 0.5) {
        s->verdict = PC_TIMELINE_LOADER_BOUND;
        pc__text_add(out, "loader-bound: the host waited for the loader for %.0f %% of the time; no device worked",
                     100 * PC__MIN(1, s->loader / s->wall));
    } else
        pc__text_add(out, "no-work: no device worked; the host's ops took %s in all",
                     pc__timeline_time(s->queuing, time));
}

static pc_status decide(const pc_timeline *t, pc_timeline_summary *s, int process, const pc__host_spans *host,
                        pc__text *out)
{
    s->loader = pc__spans_total(&host->loader);
    for (int i = 0; i < s->queuing_count; i++)
        s->queuing += s->queuings[i].total;
    if (process < 0) {
        say_no_work(s, out);
        return PC_OK;
    }
    PC__TRY(pc__idle_causes(t, process, host, &s->causes));
    s->verdict = largest(&s->causes);
    say(s, out);
    return PC_OK;
}

pc_status pc__timeline_sum_verdict(const pc_timeline *t, pc_timeline_summary *s)
{
    pc__host_spans host;
    pc__text words = {0};
    const int process = subject(t, s);
    PC__TRY(pc__host_times(t, process < 0 ? -1 : t->processes[process].file, &host));
    pc_status status = decide(t, s, process, &host, &words);
    if (status == PC_OK && words.failed)
        status = PC_ERR_MEMORY;
    if (status == PC_OK)
        snprintf(s->verdict_words, sizeof s->verdict_words, "%s", words.data);
    pc__text_free(&words);
    pc__host_times_free(&host);
    return status;
}
