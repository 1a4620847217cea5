/* ranks.c: the summary of calls between ranks: time in them, waiting, who the others wait for, what goes on beside them. */
#include "timeline/timeline.h"

#include <math.h>
#include <stdlib.h>

#define OFTEN 0.6    /* of the calls to which one rank comes last: it does so for a reason of its own */
#define MUCH 0.5     /* of all waiting that one rank causes: it is the one to look at */
#define NOTICED 0.01 /* of the time of all ranks: less waiting is none */

/* Where the rank's devices computed, calls of ranks left out. */
static void computing(const pc_timeline *t, const pc__timeline_call *of, pc__spans *spans, bool *device)
{
    char name[256];
    const char *plain = pc__timeline_text(t, of->device);
    snprintf(name, sizeof name, "rank %d %.200s", t->files[of->file].rank, plain);
    for (int r = 0; r < t->row_count; r++) {
        const pc__timeline_row *row = &t->rows[r];
        const pc__timeline_process *process = &t->processes[row->process];
        const char *is = pc__timeline_text(t, process->name);
        if (!process->device || process->file != of->file || (strcmp(is, plain) != 0 && strcmp(is, name) != 0))
            continue;
        *device = true;
        for (int i = row->first; i < row->first + row->count; i++) {
            const pc__timeline_event *event = &t->events[i];
            if (!event->collective && pc__timeline_is_work(t, event) &&
                pc__timeline_engine_of(t, event) == PC__ENGINE_COMPUTE)
                pc__spans_add(spans, event->start, pc__timeline_end(event));
        }
    }
    pc__spans_unite(spans);
}

/* What the rank's device did beside its calls. A rank's calls on one device stand for it. */
static pc_status overlap(const pc_timeline *t, pc_timeline_rank *rank)
{
    pc__spans calls = {0}, compute = {0}, both = {0};
    const pc__timeline_call *one = NULL;
    bool device = false;
    for (int i = 0; i < t->call_count; i++) {
        const pc__timeline_call *c = &t->calls[i];
        if (c->who != rank->rank || isnan(c->start) || (one && c->device != one->device))
            continue;
        one = one ? one : c;
        pc__spans_add(&calls, c->start, c->end);
    }
    pc__spans_unite(&calls);
    if (one)
        computing(t, one, &compute, &device);
    pc__spans_both(&both, &calls, &compute);
    const double all = pc__spans_total(&calls);
    rank->overlapped = device && all > 0 ? pc__spans_total(&both) / all : (double)NAN;
    const bool failed = calls.failed || compute.failed || both.failed;
    pc__spans_free(&calls);
    pc__spans_free(&compute);
    pc__spans_free(&both);
    return failed ? PC_ERR_MEMORY : PC_OK;
}

static int rank_count(const pc_timeline *t)
{
    int most = -1;
    for (int i = 0; i < t->call_count; i++)
        most = PC__MAX(most, t->calls[i].who);
    return most + 1;
}

static pc_status sum_calls(const pc_timeline *t, pc_timeline_summary *s)
{
    pc_timeline_rank *all = pc__calloc((size_t)rank_count(t) + 1, sizeof *all);
    if (!all)
        return PC_ERR_MEMORY;
    for (int i = 0; i < t->call_count; i++) {
        const pc__timeline_call *c = &t->calls[i];
        all[c->who].calls++;
        all[c->who].in_calls += isnan(c->start) ? 0 : c->end - c->start;
        if (c->last >= 0)
            all[c->who].waited += PC__MIN(c->waited, c->end - c->start);
        else if (!c->pair)
            s->unmatched++;
    }
    s->ranks = all;
    for (int r = 0, n = rank_count(t); r < n; r++)
        if (all[r].calls) {
            all[s->rank_count] = all[r];
            all[s->rank_count++].rank = r;
        }
    return PC_OK;
}

static pc_timeline_rank *rank_of(const pc_timeline_summary *s, int who)
{
    for (int i = 0; i < s->rank_count; i++)
        if (s->ranks[i].rank == who)
            return &s->ranks[i];
    return NULL;
}

static int by_start(const void *a, const void *b)
{
    const pc__timeline_call *x = *(pc__timeline_call *const *)a, *y = *(pc__timeline_call *const *)b;
    return (x->start > y->start) - (x->start < y->start);
}

static int by_waiting(const void *a, const void *b)
{
    const pc_timeline_collective *x = a, *y = b;
    const int order = (x->waited < y->waited) - (x->waited > y->waited);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

/* One call of n ranks, sorted by when they came. */
static pc_status add_one(const pc_timeline *t, pc_timeline_summary *s, int *room, pc__timeline_call **ranks, int n)
{
    const pc__timeline_call *first = ranks[0], *last = ranks[n - 1];
    pc_timeline_rank *blamed = rank_of(s, last->who);
    pc_timeline_collective c = {.name = pc__timeline_text(t, first->name),
                                .group = pc__timeline_text(t, first->group),
                                .number = first->number,
                                .bytes = PC__MAX(first->bytes, 0),
                                .at = first->start,
                                .spread = last->start - first->start,
                                .first = first->who,
                                .last = last->who};
    for (int i = 0; i < n; i++) {
        c.took = PC__MAX(c.took, ranks[i]->end - first->start);
        c.waited += last->start - ranks[i]->start;
    }
    if (blamed && c.spread > 0) {
        blamed->last++;
        blamed->caused += (n - 1) * (last->start - ranks[n - 2]->start);
    }
    PC__TRY(pc__grow((void **)&s->collectives, room, s->collective_count, sizeof c));
    s->collectives[s->collective_count++] = c;
    return PC_OK;
}

/* Calls that are one lie behind each other in t->order. */
static pc_status sum_collectives(const pc_timeline *t, pc_timeline_summary *s)
{
    int room = 0;
    pc_status status = PC_OK;
    pc__timeline_call **ranks = pc__alloc(((size_t)t->call_count + 1) * sizeof(pc__timeline_call *));
    if (!ranks)
        return PC_ERR_MEMORY;
    for (int i = 0, n; i < t->call_count && status == PC_OK; i += n) {
        for (n = 0; i + n < t->call_count && t->calls[t->order[i + n]].one == t->calls[t->order[i]].one; n++)
            ranks[n] = &t->calls[t->order[i + n]];
        if (ranks[0]->last < 0)
            continue;
        qsort(ranks, (size_t)n, sizeof *ranks, by_start);
        status = add_one(t, s, &room, ranks, n);
    }
    pc__free(ranks);
    if (s->collective_count)
        qsort(s->collectives, (size_t)s->collective_count, sizeof *s->collectives, by_waiting);
    return status;
}

static void say(pc_timeline_summary *s)
{
    char time[32], most_time[32];
    double waited = 0, in_calls = 0;
    const pc_timeline_rank *worst = NULL;
    for (int i = 0; i < s->rank_count; i++) {
        const pc_timeline_rank *r = &s->ranks[i];
        waited += r->waited;
        in_calls += r->in_calls;
        worst = !worst || r->caused > worst->caused ? r : worst;
    }
    if (!worst)
        return;
    const bool often = (double)worst->last >= OFTEN * s->collective_count;
    if (!s->collective_count)
        snprintf(s->rank_words, sizeof s->rank_words,
                 "no call of all ranks of a group: nobody is seen to wait for others");
    else if (waited < NOTICED * s->wall * s->rank_count)
        snprintf(s->rank_words, sizeof s->rank_words,
                 "ranks hardly wait for each other: %s of %s in calls, all ranks together",
                 pc__timeline_time(waited, time), pc__timeline_time(in_calls, most_time));
    else if (s->rank_count > 1 && worst->caused >= MUCH * waited)
        snprintf(s->rank_words, sizeof s->rank_words,
                 "%s%d%s: it came last to %lld of %d calls, and the others waited %s for it in sum, %.0f %% of all "
                 "waiting",
                 often ? "rank " : "most waiting is for rank ", worst->rank, often ? " is the straggler" : "",
                 (long long)worst->last, s->collective_count, pc__timeline_time(worst->caused, time),
                 100 * worst->caused / waited);
    else
        snprintf(s->rank_words, sizeof s->rank_words,
                 "no rank stands out: ranks waited %s for each other in sum, the largest part (%s) for rank %d, which "
                 "came last to %lld of %d calls",
                 pc__timeline_time(waited, time), pc__timeline_time(worst->caused, most_time), worst->rank,
                 (long long)worst->last, s->collective_count);
}

/* Ranks of the job without a file. */
static void name_absent(const pc_timeline *t, pc_timeline_summary *s)
{
    size_t at = 0;
    const int size = t->file_count > 1 ? t->files[0].size : 0;
    for (int rank = 0; rank < size && at + 24 < sizeof s->absent; rank++) {
        bool there = false;
        for (int i = 0; i < t->file_count && !there; i++)
            there = t->files[i].rank == rank;
        if (!there)
            at += (size_t)snprintf(s->absent + at, sizeof s->absent - at, "%s%d", at ? ", " : "rank ", rank);
    }
}

pc_status pc__timeline_sum_ranks(const pc_timeline *t, pc_timeline_summary *s)
{
    name_absent(t, s);
    for (int i = 0; i < t->file_count && t->file_count > 1 && !s->cut_file; i++)
        s->cut_file = t->files[i].cut ? pc__timeline_text(t, t->files[i].name) : NULL;
    for (int i = 0; i < t->file_count && t->file_count > 1; i++)
        s->clock_error = PC__MAX(s->clock_error, t->files[i].error / 1e3);
    if (!t->call_count)
        return PC_OK;
    PC__TRY(sum_calls(t, s));
    PC__TRY(sum_collectives(t, s));
    for (int i = 0; i < s->rank_count; i++)
        PC__TRY(overlap(t, &s->ranks[i]));
    say(s);
    return PC_OK;
}
