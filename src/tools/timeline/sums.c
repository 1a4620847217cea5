/* sums.c: lists of a summary: time by op, by wait, by queued op, and remarks. Each is grouped by a pair of
 * texts, and sorted by time. */
#include "timeline/timeline.h"

#include <math.h>
#include <stdlib.h>

/* What events with the same two texts add up to. */
typedef struct sum {
    int a, b, site;
    int64_t count, bytes;
    double total, longest, copying;
} sum;

typedef struct sums {
    pc__words keys;
    sum *items;
    int count, room;
} sums;

static sum *sum_of(sums *all, int a, int b)
{
    char key[32];
    snprintf(key, sizeof key, "%d %d", a, b);
    int index = pc__words_add(&all->keys, key);
    if (index < 0)
        return NULL;
    if (index == all->count) {
        if (pc__grow((void **)&all->items, &all->room, all->count, sizeof *all->items) != PC_OK)
            return NULL;
        all->items[all->count++] = (sum){.a = a, .b = b};
    }
    return &all->items[index];
}

static pc_status add(sums *all, int a, int b, const pc__timeline_event *event, double duration)
{
    sum *s = sum_of(all, a, b);
    if (!s)
        return PC_ERR_MEMORY;
    if (!s->count++)
        s->site = event->site;
    s->total += duration;
    s->longest = PC__MAX(s->longest, duration);
    if (event->bytes > 0) {
        s->bytes += event->bytes;
        s->copying += duration;
    }
    return PC_OK;
}

static int by_total(const void *a, const void *b)
{
    const sum *x = a, *y = b;
    int order = (x->total < y->total) - (x->total > y->total);
    return order ? order : (x->a != y->a ? x->a - y->a : x->b - y->b);
}

static void sort(sums *all)
{
    if (all->count)
        qsort(all->items, (size_t)all->count, sizeof *all->items, by_total);
}

static void sums_free(sums *all)
{
    pc__words_free(&all->keys);
    pc__free(all->items);
}

static pc_status ops_out(const pc_timeline *t, const sums *all, pc_timeline_summary *s)
{
    double work = 0;
    s->ops = pc__alloc((size_t)PC__MAX(all->count, 1) * sizeof *s->ops);
    if (!s->ops)
        return PC_ERR_MEMORY;
    for (int i = 0; i < all->count; i++)
        work += all->items[i].total;
    for (int i = 0; i < all->count; i++) {
        const sum *from = &all->items[i];
        s->ops[s->op_count++] = (pc_timeline_op){
            .name = pc__timeline_text(t, from->a),
            .count = from->count,
            .bytes = from->bytes,
            .total = from->total,
            .mean = from->total / (double)from->count,
            .share = work > 0 ? from->total / work : (double)NAN,
            .gigabytes_per_second = from->copying > 0 ? (double)from->bytes / from->copying / 1e3 : (double)NAN};
    }
    return PC_OK;
}

pc_status pc__timeline_sum_ops(const pc_timeline *t, pc_timeline_summary *s)
{
    sums all = {0};
    pc_status status = PC_OK;
    for (int i = 0; i < t->event_count && status == PC_OK; i++)
        if (pc__timeline_is_work(t, &t->events[i]))
            status = add(&all, t->events[i].name, 0, &t->events[i], t->events[i].duration);
    sort(&all);
    if (status == PC_OK)
        status = ops_out(t, &all, s);
    sums_free(&all);
    return status;
}

/* A remark stands at the op's queuing, or at its work in two rows: those of the host and of engines count. */
pc_status pc__timeline_sum_notes(const pc_timeline *t, pc_timeline_summary *s)
{
    sums all = {0};
    pc_status status = PC_OK;
    for (int i = 0; i < t->event_count && status == PC_OK; i++) {
        const pc__timeline_event *event = &t->events[i];
        if (event->note && (t->rows[event->row].kind == PC__ROW_HOST || pc__timeline_is_work(t, event)))
            status = add(&all, event->note, event->name, event, event->duration);
    }
    sort(&all);
    s->notes = status == PC_OK ? pc__alloc((size_t)PC__MAX(all.count, 1) * sizeof *s->notes) : NULL;
    for (int i = 0; s->notes && i < all.count; i++) {
        const sum *from = &all.items[i];
        s->notes[s->note_count++] = (pc_timeline_note){pc__timeline_text(t, from->a), pc__timeline_text(t, from->b),
                                                       pc__timeline_text(t, from->site), from->count, from->bytes};
    }
    sums_free(&all);
    return s->notes ? PC_OK : PC_ERR_MEMORY;
}

static bool inside_wait(const pc_timeline *t, const pc__timeline_event *event)
{
    for (int p = event->parent; p >= 0; p = t->events[p].parent)
        if (pc__timeline_host_kind_of(t, &t->events[p]) == PC__HOST_WAIT)
            return true;
    return false;
}

static pc_status waits_out(const pc_timeline *t, const sums *all, pc_timeline_summary *s)
{
    s->waits = pc__alloc((size_t)PC__MAX(all->count, 1) * sizeof *s->waits);
    for (int i = 0; s->waits && i < all->count; i++) {
        const sum *from = &all->items[i];
        s->waits[s->wait_count++] = (pc_timeline_wait){pc__timeline_text(t, from->a), pc__timeline_text(t, from->b),
                                                       from->count, from->total, from->longest};
    }
    return s->waits ? PC_OK : PC_ERR_MEMORY;
}

static pc_status queuings_out(const pc_timeline *t, const sums *all, pc_timeline_summary *s)
{
    s->queuings = pc__alloc((size_t)PC__MAX(all->count, 1) * sizeof *s->queuings);
    for (int i = 0; s->queuings && i < all->count; i++) {
        const sum *from = &all->items[i];
        s->queuings[s->queuing_count++] = (pc_timeline_queuing){pc__timeline_text(t, from->a), from->count, from->total,
                                                                from->total / (double)from->count};
    }
    return s->queuings ? PC_OK : PC_ERR_MEMORY;
}

/* What each event took without the ops and waits right inside it. */
static double *own_times(const pc_timeline *t)
{
    double *own = pc__alloc(((size_t)t->event_count + 1) * sizeof *own);
    for (int i = 0; own && i < t->event_count; i++)
        own[i] = t->events[i].duration;
    for (int i = 0; own && i < t->event_count; i++) {
        const pc__timeline_event *event = &t->events[i];
        pc__timeline_host_kind kind = pc__timeline_host_kind_of(t, event);
        int around = event->parent;
        if (kind != PC__HOST_OP && kind != PC__HOST_WAIT)
            continue;
        while (around >= 0 && pc__timeline_host_kind_of(t, &t->events[around]) != PC__HOST_OP &&
               pc__timeline_host_kind_of(t, &t->events[around]) != PC__HOST_WAIT)
            around = t->events[around].parent;
        if (around >= 0)
            own[around] = PC__MAX(0, own[around] - event->duration);
    }
    return own;
}

/* Per host row the time stood still; the largest share is of the thread that waited longest. */
static void waited(const pc_timeline *t, pc_timeline_summary *s)
{
    double most = 0;
    for (int r = 0; r < t->row_count; r++) {
        const pc__timeline_row *row = &t->rows[r];
        double total = 0;
        for (int i = row->first; row->kind == PC__ROW_HOST && i < row->first + row->count; i++)
            if (pc__timeline_host_kind_of(t, &t->events[i]) == PC__HOST_WAIT && !inside_wait(t, &t->events[i]))
                total += t->events[i].duration;
        s->waited += total;
        most = PC__MAX(most, total);
    }
    s->waited_share = t->wall > 0 ? most / t->wall : (double)NAN;
}

pc_status pc__timeline_sum_host(const pc_timeline *t, pc_timeline_summary *s)
{
    sums waits = {0}, queuings = {0};
    double *own = own_times(t);
    pc_status status = own ? PC_OK : PC_ERR_MEMORY;
    for (int i = 0; i < t->event_count && status == PC_OK; i++) {
        const pc__timeline_event *event = &t->events[i];
        if (t->rows[event->row].kind != PC__ROW_HOST)
            continue;
        pc__timeline_host_kind kind = pc__timeline_host_kind_of(t, event);
        if (kind == PC__HOST_WAIT && !inside_wait(t, event))
            status = add(&waits, event->name, event->site, event, event->duration);
        else if (kind == PC__HOST_OP)
            status = add(&queuings, event->name, 0, event, own[i]);
    }
    sort(&waits);
    sort(&queuings);
    if (status == PC_OK)
        status = waits_out(t, &waits, s);
    if (status == PC_OK)
        status = queuings_out(t, &queuings, s);
    waited(t, s);
    sums_free(&waits);
    sums_free(&queuings);
    pc__free(own);
    return status;
}
