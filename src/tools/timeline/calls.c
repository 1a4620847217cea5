/* calls.c: collectives of all ranks side by side: clocks, queued work that is a call, who waited for whom. */
#include "timeline/timeline.h"

#include <math.h>
#include <stdlib.h>

/* What the job's clock shows more than the file's at that time of the file's, in nanoseconds. */
static double offset_at(const pc__timeline_file *f, double time)
{
    if (f->looks < 2 || !(f->at[1] > f->at[0]))
        return f->looks ? f->offset[0] : 0;
    const double share = PC__MIN(PC__MAX((time - f->at[0]) / (f->at[1] - f->at[0]), 0), 1);
    return f->offset[0] + share * (f->offset[1] - f->offset[0]);
}

static double aligned(const pc__timeline_file *f, double us)
{
    const double time = f->origin + 1e3 * us;
    return (time + offset_at(f, time)) / 1e3;
}

void pc__timeline_align(pc_timeline *t, int event, int mark, int flow, int call)
{
    const pc__timeline_file *f = &t->files[t->file_count - 1];
    for (; event < t->event_count; event++) {
        const double end = aligned(f, pc__timeline_end(&t->events[event]));
        t->events[event].start = aligned(f, t->events[event].start);
        t->events[event].duration = PC__MAX(end - t->events[event].start, 0);
    }
    for (; mark < t->mark_count; mark++)
        t->marks[mark].at = aligned(f, t->marks[mark].at);
    for (; flow < t->flow_count; flow++)
        t->flows[flow].at = aligned(f, t->flows[flow].at);
    for (; call < t->call_count; call++) {
        t->calls[call].start = aligned(f, t->calls[call].start);
        t->calls[call].end = aligned(f, t->calls[call].end);
    }
}

pc_status pc__timeline_name_process(pc_timeline *t, pc__timeline_process *process)
{
    char text[256];
    if (t->file_count == 1 || process->collectives)
        return PC_OK;
    snprintf(text, sizeof text, "rank %d %.200s", t->files[process->file].rank, pc__timeline_text(t, process->name));
    process->name = pc__words_add(&t->texts, text);
    return process->name < 0 ? PC_ERR_MEMORY : PC_OK;
}

static int by_work(const void *a, const void *b)
{
    const pc__timeline_call *x = *(pc__timeline_call *const *)a, *y = *(pc__timeline_call *const *)b;
    int order = x->file - y->file;
    order = order ? order : x->device - y->device;
    order = order ? order : x->stream - y->stream;
    return order ? order : (x->ticket > y->ticket) - (x->ticket < y->ticket);
}

/* The call that a piece of a device's work is, or NULL. */
static pc__timeline_call *call_of(const pc_timeline *t, pc__timeline_call **queued, int n,
                                  const pc__timeline_event *event)
{
    const pc__timeline_process *process = &t->processes[t->rows[event->row].process];
    pc__timeline_call wanted = {
        .file = process->file, .device = process->name, .stream = event->stream, .ticket = event->ticket};
    pc__timeline_call *key = &wanted, **found;
    if (!process->device || event->ticket < 0)
        return NULL;
    found = bsearch(&key, queued, (size_t)n, sizeof *queued, by_work);
    return found ? *found : NULL;
}

/* Calls in a queue were done when the device did that work; it is drawn in the rank's row, too. */
static pc_status find_queued(pc_timeline *t)
{
    int n = 0;
    const int events = t->event_count;
    pc_status status = PC_OK;
    pc__timeline_call **queued = pc__alloc(((size_t)t->call_count + 1) * sizeof(pc__timeline_call *));
    if (!queued)
        return PC_ERR_MEMORY;
    for (int i = 0; i < t->call_count; i++)
        if (t->calls[i].ticket >= 0)
            queued[n++] = &t->calls[i];
    qsort(queued, (size_t)n, sizeof *queued, by_work);
    for (int i = 0; i < events && n && status == PC_OK; i++) {
        pc__timeline_call *c = call_of(t, queued, n, &t->events[i]);
        if (!c)
            continue;
        t->events[i].collective = true;
        if (!isnan(c->start))
            continue;
        c->start = t->events[i].start;
        c->end = pc__timeline_end(&t->events[i]);
        const pc__timeline_event bar = {.start = c->start,
                                        .duration = c->end - c->start,
                                        .queued = NAN,
                                        .bytes = -1,
                                        .ticket = -1,
                                        .stream = -1,
                                        .row = c->row,
                                        .parent = -1,
                                        .name = c->name,
                                        .category = t->collective};
        status = pc__grow((void **)&t->events, &t->event_room, t->event_count, sizeof bar);
        if (status == PC_OK)
            t->events[t->event_count++] = bar;
    }
    pc__free(queued);
    return status;
}

static int by_call(const void *a, const void *b, void *context)
{
    const pc_timeline *t = context;
    const pc__timeline_call *x = &t->calls[*(const int *)a], *y = &t->calls[*(const int *)b];
    const char *p = pc__timeline_text(t, x->device), *q = pc__timeline_text(t, y->device);
    int order = x->pair - y->pair;
    order = order ? order : x->group - y->group;
    order = order ? order : strncmp(p, q, PC__MAX(strcspn(p, ":"), strcspn(q, ":")));
    order = order ? order : (x->number > y->number) - (x->number < y->number);
    return order ? order : x->rank - y->rank;
}

static bool same_call(const pc_timeline *t, const pc__timeline_call *x, const pc__timeline_call *y)
{
    const char *p = pc__timeline_text(t, x->device), *q = pc__timeline_text(t, y->device);
    return !x->pair && !y->pair && x->group == y->group && x->number == y->number && x->of == y->of &&
           x->name == y->name && !strncmp(p, q, PC__MAX(strcspn(p, ":"), strcspn(q, ":")));
}

static pc_status draw_wait(pc_timeline *t, const pc__timeline_call *c)
{
    char text[48];
    snprintf(text, sizeof text, "waits for rank %d", c->last);
    const int name = pc__words_add(&t->texts, text);
    const pc__timeline_event wait = {.start = c->start,
                                     .duration = PC__MIN(c->waited, c->end - c->start),
                                     .queued = NAN,
                                     .bytes = -1,
                                     .ticket = -1,
                                     .stream = -1,
                                     .row = c->row,
                                     .parent = -1,
                                     .name = name,
                                     .category = t->waiting};
    if (name < 0)
        return PC_ERR_MEMORY;
    PC__TRY(pc__grow((void **)&t->events, &t->event_room, t->event_count, sizeof wait));
    t->events[t->event_count++] = wait;
    return PC_OK;
}

/* Calls first to end of `order` are one of all ranks of a group. */
static pc_status measure(pc_timeline *t, const int *order, int n)
{
    const pc__timeline_call *last = &t->calls[order[0]];
    for (int i = 0; i < n; i++)
        if (isnan(t->calls[order[i]].start))
            return PC_OK;
        else if (t->calls[order[i]].start > last->start)
            last = &t->calls[order[i]];
    for (int i = 0; i < n; i++) {
        pc__timeline_call *c = &t->calls[order[i]];
        c->last = last->who;
        c->waited = last->start - c->start;
        if (c->waited > 0)
            PC__TRY(draw_wait(t, c));
    }
    return PC_OK;
}

/* How many calls from that place on are one, each of another rank. */
static int count_same(pc_timeline *t, int place)
{
    int n = 0;
    const pc__timeline_call *first = &t->calls[t->order[place]];
    for (; place + n < t->call_count; n++) {
        pc__timeline_call *c = &t->calls[t->order[place + n]];
        if (n && (!same_call(t, first, c) || c->rank == t->calls[t->order[place + n - 1]].rank))
            break;
        c->one = place;
    }
    return n;
}

/* One process has the rows of all ranks. */
static void gather_rows(pc_timeline *t)
{
    int first = -1;
    for (int i = 0; i < t->process_count && first < 0; i++)
        first = t->processes[i].collectives ? i : -1;
    for (int r = 0; r < t->row_count; r++)
        if (t->processes[t->rows[r].process].collectives)
            t->rows[r].process = first;
}

pc_status pc__timeline_calls(pc_timeline *t)
{
    t->collective = pc__words_add(&t->texts, "collective");
    t->waiting = pc__words_add(&t->texts, "waiting");
    if (t->collective < 0 || t->waiting < 0)
        return PC_ERR_MEMORY;
    if (!t->call_count)
        return PC_OK;
    for (int i = 0; i < t->call_count; i++)
        t->calls[i].who = t->file_count > 1 ? t->files[t->calls[i].file].rank : t->calls[i].member;
    PC__TRY(find_queued(t));
    t->order = pc__alloc((size_t)t->call_count * sizeof *t->order);
    if (!t->order)
        return PC_ERR_MEMORY;
    for (int i = 0; i < t->call_count; i++)
        t->order[i] = i;
    qsort_r(t->order, (size_t)t->call_count, sizeof *t->order, by_call, t);
    for (int i = 0, n; i < t->call_count; i += n) {
        n = count_same(t, i);
        if (n == t->calls[t->order[i]].of && n > 1)
            PC__TRY(measure(t, t->order + i, n));
    }
    gather_rows(t);
    return PC_OK;
}
