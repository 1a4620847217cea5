/* arrows.c: from the two ends of each flow to an arrow between two events. */
#include "timeline/timeline.h"

#include <stdlib.h>

static int by_key(const void *a, const void *b)
{
    const pc__timeline_flow *x = a, *y = b;
    int order = (x->key > y->key) - (x->key < y->key);
    order = order ? order : (int)y->begins - (int)x->begins;
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

/* The last event of the row that begins by `at`, or -1. */
static int last_before(const pc_timeline *t, const pc__timeline_row *row, double at)
{
    int low = row->first, high = row->first + row->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (t->events[middle].start <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low > row->first ? low - 1 : -1;
}

/* The innermost event around the flow's end; where there is none, an arrow leaves the event before and reaches the
 * one after. */
static int event_at(const pc_timeline *t, const pc__timeline_flow *flow)
{
    const pc__timeline_row *row = &t->rows[flow->row];
    double slack = 4e-4; /* us: less than the file's last digit, which tells an end from the next begin */
    int before = last_before(t, row, flow->at + slack);
    for (int i = before; i >= 0; i = t->events[i].parent)
        if (pc__timeline_end(&t->events[i]) + slack >= flow->at)
            return i;
    if (flow->begins)
        return before;
    int after = before < 0 ? row->first : before + 1;
    return after < row->first + row->count ? after : -1;
}

pc_status pc__timeline_arrows(pc_timeline *t)
{
    int from = -1, key = -1;
    if (t->flow_count)
        qsort(t->flows, (size_t)t->flow_count, sizeof *t->flows, by_key);
    for (int i = 0; i < t->flow_count; i++) {
        const pc__timeline_flow *flow = &t->flows[i];
        int event = event_at(t, flow);
        if (flow->begins || flow->key != key) {
            from = flow->begins ? event : -1;
            key = flow->key;
        }
        if (flow->begins || from < 0 || event < 0 || event == from)
            continue;
        PC__TRY(pc__grow((void **)&t->arrows, &t->arrow_room, t->arrow_count, sizeof *t->arrows));
        t->arrows[t->arrow_count++] = (pc__timeline_arrow){from, event};
    }
    return PC_OK;
}
