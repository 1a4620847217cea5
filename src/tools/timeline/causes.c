/* causes.c: why a device's compute engine stood idle. The rules are in <paracord-tools/timeline.h>. */
#include "timeline/causes.h"

#include <math.h>

#define STRETCH 100.0 /* us: ops that are closer are queued in one stretch */
#define SLACK 0.01    /* us: rounding */

static bool is_host(const pc_timeline *t, int row, int file)
{
    const pc__timeline_process *process = &t->processes[t->rows[row].process];
    return t->rows[row].kind == PC__ROW_HOST && !process->collectives && (file < 0 || process->file == file);
}

bool *pc__timeline_drivers(const pc_timeline *t, int file)
{
    bool *drivers = pc__calloc((size_t)t->row_count + 1, sizeof *drivers);
    static const pc__timeline_host_kind marks[] = {PC__HOST_STEP, PC__HOST_OP};
    bool any = false;
    for (int m = 0; drivers && m < 2 && !any; m++)
        for (int i = 0; i < t->event_count; i++)
            if (is_host(t, t->events[i].row, file) && pc__timeline_host_kind_of(t, &t->events[i]) == marks[m])
                any = drivers[t->events[i].row] = true;
    for (int r = 0; drivers && !any && r < t->row_count; r++)
        drivers[r] = is_host(t, r, file);
    return drivers;
}

/* Spans of a driver's ops, from one op to the next where that one comes soon and nothing else lies between. */
static void add_queuing(const pc_timeline *t, const pc__timeline_row *row, pc__spans *spans)
{
    double end = -INFINITY;
    for (int i = row->first; i < row->first + row->count; i++) {
        const pc__timeline_event *event = &t->events[i];
        pc__timeline_host_kind kind = pc__timeline_host_kind_of(t, event);
        if (kind == PC__HOST_WAIT || kind == PC__HOST_LOADER)
            end = -INFINITY;
        if (kind != PC__HOST_OP)
            continue;
        pc__spans_add(spans, event->start - end < STRETCH ? PC__MIN(end, event->start) : event->start,
                      pc__timeline_end(event));
        end = PC__MAX(end, pc__timeline_end(event));
    }
}

static void add_host(const pc_timeline *t, const pc__timeline_row *row, pc__timeline_host_kind wanted, pc__spans *spans)
{
    for (int i = row->first; i < row->first + row->count; i++)
        if (pc__timeline_host_kind_of(t, &t->events[i]) == wanted)
            pc__spans_add(spans, t->events[i].start, pc__timeline_end(&t->events[i]));
}

pc_status pc__host_times(const pc_timeline *t, int file, pc__host_spans *host)
{
    *host = (pc__host_spans){0};
    bool *drivers = pc__timeline_drivers(t, file);
    for (int r = 0; drivers && r < t->row_count; r++) {
        if (!drivers[r])
            continue;
        add_queuing(t, &t->rows[r], &host->queuing);
        add_host(t, &t->rows[r], PC__HOST_WAIT, &host->waiting);
        add_host(t, &t->rows[r], PC__HOST_LOADER, &host->loader);
    }
    bool fine = drivers && !host->queuing.failed && !host->waiting.failed && !host->loader.failed;
    pc__free(drivers);
    pc__spans_unite(&host->queuing);
    pc__spans_unite(&host->waiting);
    pc__spans_unite(&host->loader);
    if (!fine)
        pc__host_times_free(host);
    return fine ? PC_OK : PC_ERR_MEMORY;
}

void pc__host_times_free(pc__host_spans *host)
{
    pc__spans_free(&host->queuing);
    pc__spans_free(&host->waiting);
    pc__spans_free(&host->loader);
}

/* The gaps that begin while the host waits: the queue ran dry. */
static void add_dry(const pc__spans *idle, const pc__spans *waiting, pc__spans *dry)
{
    for (int i = 0, j = 0; i < idle->count; i++) {
        double at = idle->items[i].begin;
        while (j < waiting->count && waiting->items[j].end < at - SLACK)
            j++;
        if (j < waiting->count && waiting->items[j].begin <= at)
            pc__spans_add(dry, at, idle->items[i].end);
    }
}

/* Take what `cause` explains out of `left`; what it was. */
static double take(pc__spans *left, const pc__spans *cause)
{
    pc__spans both = {0}, rest = {0};
    pc__spans_both(&both, left, cause);
    pc__spans_without(&rest, left, cause);
    double total = pc__spans_total(&both);
    rest.failed |= both.failed;
    pc__spans_free(&both);
    pc__spans_free(left);
    *left = rest;
    return total;
}

pc_status pc__idle_causes(const pc_timeline *t, int process, const pc__host_spans *host, pc_timeline_causes *causes)
{
    pc__spans compute = {0}, copy = {0}, window = {0}, left = {0}, dry = {0};
    pc__timeline_busy(t, process, false, &compute);
    pc__timeline_busy(t, process, true, &copy);
    double begin = INFINITY, end = -INFINITY;
    for (int pass = 0; pass < 2; pass++) {
        const pc__spans *spans = pass ? &copy : &compute;
        if (spans->count) {
            begin = PC__MIN(begin, spans->items[0].begin);
            end = PC__MAX(end, spans->items[spans->count - 1].end);
        }
    }
    pc__spans_add(&window, begin, end);
    pc__spans_without(&left, &window, &compute);
    add_dry(&left, &host->waiting, &dry);
    double whole = pc__spans_total(&window);
    *causes = (pc_timeline_causes){.device = pc__timeline_text(t, t->processes[process].name), .window = whole};
    causes->compute = pc__spans_total(&compute) / whole;
    causes->copying = take(&left, &copy) / whole;
    causes->loader = take(&left, &host->loader) / whole;
    causes->synchronising = (take(&left, &dry) + take(&left, &host->waiting)) / whole;
    causes->launching = take(&left, &host->queuing) / whole;
    causes->host = pc__spans_total(&left) / whole;
    bool failed = compute.failed || copy.failed || window.failed || left.failed || dry.failed;
    pc__spans_free(&compute);
    pc__spans_free(&copy);
    pc__spans_free(&window);
    pc__spans_free(&left);
    pc__spans_free(&dry);
    return failed ? PC_ERR_MEMORY : PC_OK;
}
