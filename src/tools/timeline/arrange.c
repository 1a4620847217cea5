/* arrange.c: rows in the order of the page, each with its events by start, and how these enclose each other.
 */
#include "timeline/timeline.h"

#include <math.h>
#include <stdlib.h>

#define ROUNDING 1.5e-3 /* us: files have three digits, so an event may seem to end after the next began */
#define DEPTH_MAX 64

static int compare(double a, double b)
{
    a = isnan(a) ? 0 : a;
    b = isnan(b) ? 0 : b;
    return (a > b) - (a < b);
}

/* Calls of all ranks first, then rank by rank: the host first, then by the file's wish, then as they come; in a device, streams before engines, by number. */
static int by_place(const void *a, const void *b, void *context)
{
    const pc_timeline *t = context;
    const pc__timeline_row *x = &t->rows[*(const int *)a], *y = &t->rows[*(const int *)b];
    const pc__timeline_process *p = &t->processes[x->process], *q = &t->processes[y->process];
    int order = (int)q->collectives - (int)p->collectives;
    order = order ? order : t->files[p->file].rank - t->files[q->file].rank;
    order = order ? order : p->device - q->device;
    order = order ? order : compare(p->sort, q->sort);
    order = order ? order : p->order - q->order;
    order = order ? order : compare(x->sort, y->sort);
    order = order ? order : (int)x->kind - (int)y->kind;
    order = order || !p->device ? order : strverscmp(pc__timeline_text(t, x->name), pc__timeline_text(t, y->name));
    return order ? order : x->order - y->order;
}

static int by_start(const void *a, const void *b)
{
    const pc__timeline_event *x = a, *y = b;
    int order = (x->row > y->row) - (x->row < y->row);
    order = order ? order : compare(x->start, y->start);
    return order ? order : compare(y->duration, x->duration);
}

/* Sort the rows: places[old] becomes the new index. */
static pc_status sort_rows(pc_timeline *t, int *places)
{
    int n = t->row_count;
    int *order = pc__alloc((size_t)PC__MAX(n, 1) * sizeof *order);
    pc__timeline_row *sorted = pc__alloc((size_t)PC__MAX(n, 1) * sizeof *sorted);
    if (order && sorted && n) {
        for (int i = 0; i < n; i++)
            order[i] = i;
        qsort_r(order, (size_t)n, sizeof *order, by_place, t);
        for (int i = 0; i < n; i++) {
            sorted[i] = t->rows[order[i]];
            places[order[i]] = i;
        }
        memcpy(t->rows, sorted, (size_t)n * sizeof *sorted);
    }
    bool fine = order && sorted;
    pc__free(order);
    pc__free(sorted);
    return fine ? PC_OK : PC_ERR_MEMORY;
}

/* Time counts from the first event. */
static void rebase(pc_timeline *t)
{
    double first = INFINITY, last = -INFINITY;
    for (int i = 0; i < t->event_count; i++) {
        first = PC__MIN(first, t->events[i].start);
        last = PC__MAX(last, pc__timeline_end(&t->events[i]));
    }
    if (!t->event_count)
        first = last = 0;
    t->base = first;
    t->wall = last - first;
    for (int i = 0; i < t->event_count; i++)
        t->events[i].start -= first;
    for (int i = 0; i < t->mark_count; i++)
        t->marks[i].at -= first;
    for (int i = 0; i < t->flow_count; i++)
        t->flows[i].at -= first;
    for (int i = 0; i < t->call_count; i++) {
        t->calls[i].start -= first;
        t->calls[i].end -= first;
    }
}

static void nest(pc_timeline *t, pc__timeline_row *row)
{
    int open[DEPTH_MAX], depth = 0;
    for (int i = row->first; i < row->first + row->count; i++) {
        pc__timeline_event *event = &t->events[i];
        while (depth && pc__timeline_end(&t->events[open[depth - 1]]) <= event->start + ROUNDING)
            depth--;
        event->depth = depth;
        event->parent = depth ? open[depth - 1] : -1;
        row->depths = PC__MAX(row->depths, depth + 1);
        if (depth < DEPTH_MAX)
            open[depth++] = i;
    }
}

/* Rows without events or marks are not shown. places[old]: the new index, or -1. */
static void drop_empty_rows(pc_timeline *t, int *places)
{
    for (int r = 0; r < t->row_count; r++)
        places[r] = -1;
    for (int i = 0; i < t->event_count; i++)
        places[t->events[i].row] = 0;
    for (int i = 0; i < t->mark_count; i++)
        places[t->marks[i].row] = 0;
    int kept = 0;
    for (int r = 0; r < t->row_count; r++)
        if (places[r] == 0) {
            t->rows[kept] = t->rows[r];
            places[r] = kept++;
        }
    t->row_count = kept;
    for (int i = 0; i < t->event_count; i++)
        t->events[i].row = places[t->events[i].row];
    for (int i = 0; i < t->mark_count; i++)
        t->marks[i].row = places[t->marks[i].row];
    int flows = 0;
    for (int i = 0; i < t->flow_count; i++)
        if ((t->flows[i].row = places[t->flows[i].row]) >= 0)
            t->flows[flows++] = t->flows[i];
    t->flow_count = flows;
}

/* Of a key "FILE OUTER NAME". */
static const char *name_in(const char *key)
{
    return strchr(strchr(key, ' ') + 1, ' ') + 1;
}

/* What has no name is called by its number; devices of other programs by the label that tells them apart. */
static pc_status name_all(pc_timeline *t)
{
    char text[200];
    for (int i = 0; i < t->process_count; i++) {
        pc__timeline_process *process = &t->processes[i];
        if (process->device && process->label)
            process->name = process->label;
        snprintf(text, sizeof text, "process %s", name_in(t->pids.items[i]));
        if (!process->name && (process->name = pc__words_add(&t->texts, text)) < 0)
            return PC_ERR_MEMORY;
        PC__TRY(pc__timeline_name_process(t, process));
    }
    for (int r = 0; r < t->row_count; r++) {
        pc__timeline_row *row = &t->rows[r];
        snprintf(text, sizeof text, "thread %s", name_in(t->tids.items[row->order]));
        if (!row->name && (row->name = pc__words_add(&t->texts, text)) < 0)
            return PC_ERR_MEMORY;
    }
    return PC_OK;
}

pc_status pc__timeline_arrange(pc_timeline *t)
{
    PC__TRY(name_all(t));
    int *places = pc__alloc((size_t)PC__MAX(t->row_count, 1) * sizeof *places);
    if (!places)
        return PC_ERR_MEMORY;
    drop_empty_rows(t, places);
    pc_status status = sort_rows(t, places);
    for (int i = 0; status == PC_OK && i < t->event_count; i++)
        t->events[i].row = places[t->events[i].row];
    for (int i = 0; status == PC_OK && i < t->mark_count; i++)
        t->marks[i].row = places[t->marks[i].row];
    for (int i = 0; status == PC_OK && i < t->flow_count; i++)
        t->flows[i].row = places[t->flows[i].row];
    pc__free(places);
    PC__TRY(status);
    rebase(t);
    if (t->event_count)
        qsort(t->events, (size_t)t->event_count, sizeof *t->events, by_start);
    for (int i = 0; i < t->event_count; i++) {
        pc__timeline_row *row = &t->rows[t->events[i].row];
        if (!row->count++)
            row->first = i;
    }
    for (int i = 0; i < t->row_count; i++)
        nest(t, &t->rows[i]);
    return PC_OK;
}
