/* busy.c: how busy engines and devices were. */
#include "timeline/timeline.h"

#include <math.h>

#define NAMES_MAX 32 /* engines of a device */

void pc__timeline_busy(const pc_timeline *t, int process, bool copies, pc__spans *spans)
{
    for (int r = 0; r < t->row_count; r++) {
        const pc__timeline_row *row = &t->rows[r];
        for (int i = row->first; row->process == process && i < row->first + row->count; i++) {
            const pc__timeline_event *event = &t->events[i];
            pc__timeline_engine engine = pc__timeline_engine_of(t, event);
            if (pc__timeline_is_work(t, event) &&
                (copies ? pc__timeline_engine_copies(engine) : engine == PC__ENGINE_COMPUTE))
                pc__spans_add(spans, event->start, pc__timeline_end(event));
        }
    }
    pc__spans_unite(spans);
}

/* The work of one engine: in one row of the device, or in all of them (row -1). */
static pc_status add_engine(const pc_timeline *t, pc_timeline_summary *s, int *room, int process, int name, int row)
{
    pc__spans spans = {0};
    int64_t count = 0;
    for (int i = 0; i < t->event_count; i++) {
        const pc__timeline_event *event = &t->events[i];
        if (t->rows[event->row].process != process || (row >= 0 && event->row != row) ||
            !pc__timeline_is_work(t, event) || pc__timeline_engine_name(t, event) != name)
            continue;
        pc__spans_add(&spans, event->start, pc__timeline_end(event));
        count++;
    }
    pc__spans_unite(&spans);
    double busy = pc__spans_total(&spans);
    bool failed = spans.failed;
    pc__spans_free(&spans);
    if (failed)
        return PC_ERR_MEMORY;
    PC__TRY(pc__grow((void **)&s->engines, room, s->engine_count, sizeof *s->engines));
    s->engines[s->engine_count++] = (pc_timeline_engine){.device = pc__timeline_text(t, t->processes[process].name),
                                                         .engine = pc__timeline_text(t, name),
                                                         .lane = row < 0 ? -1 : t->rows[row].lane,
                                                         .count = count,
                                                         .busy = busy,
                                                         .share = t->wall > 0 ? busy / t->wall : (double)NAN};
    return PC_OK;
}

static pc_status add_lanes(const pc_timeline *t, pc_timeline_summary *s, int *room, int process, int name)
{
    int lanes = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int r = 0; r < t->row_count; r++) {
            const pc__timeline_row *row = &t->rows[r];
            if (row->process != process || row->kind != PC__ROW_ENGINE || row->engine_name != name)
                continue;
            if (pass == 0)
                lanes++;
            else if (lanes > 1)
                PC__TRY(add_engine(t, s, room, process, name, r));
        }
    return PC_OK;
}

static int engines_of(const pc_timeline *t, int process, int names[NAMES_MAX])
{
    int count = 0;
    for (int i = 0; i < t->event_count; i++) {
        const pc__timeline_event *event = &t->events[i];
        if (t->rows[event->row].process != process || !pc__timeline_is_work(t, event))
            continue;
        int name = pc__timeline_engine_name(t, event), k = 0;
        while (k < count && names[k] != name)
            k++;
        if (k == count && count < NAMES_MAX)
            names[count++] = name;
    }
    return count;
}

/* Devices in the order of the page, compute before the rest. */
pc_status pc__timeline_sum_engines(const pc_timeline *t, pc_timeline_summary *s)
{
    int room = 0, names[NAMES_MAX];
    for (int r = 0; r < t->row_count; r++) {
        int process = t->rows[r].process, compute = t->engine_names[PC__ENGINE_COMPUTE];
        if (!t->processes[process].device || (r && t->rows[r - 1].process == process))
            continue;
        int count = engines_of(t, process, names);
        for (int pass = 0; pass < 2; pass++)
            for (int k = 0; k < count; k++)
                if ((names[k] == compute) == (pass == 0)) {
                    PC__TRY(add_engine(t, s, &room, process, names[k], -1));
                    PC__TRY(add_lanes(t, s, &room, process, names[k]));
                }
    }
    return PC_OK;
}

/* Medians of what each kernel took, of the gaps between computing, and of how long work stood in its queue. */
static pc_status medians(const pc_timeline *t, int process, const pc__spans *compute, pc_timeline_device *device)
{
    int n = 0;
    double *numbers = pc__alloc(((size_t)t->event_count + 1) * sizeof *numbers);
    if (!numbers)
        return PC_ERR_MEMORY;
    for (int pass = 0; pass < 2; pass++, n = 0) {
        for (int i = 0; i < t->event_count; i++) {
            const pc__timeline_event *event = &t->events[i];
            if (t->rows[event->row].process != process || !pc__timeline_is_work(t, event))
                continue;
            if (pass == 0 && pc__timeline_engine_of(t, event) == PC__ENGINE_COMPUTE)
                numbers[n++] = event->duration;
            else if (pass == 1 && !isnan(event->queued))
                numbers[n++] = event->queued;
        }
        *(pass == 0 ? &device->median_kernel : &device->median_queue_wait) = pc__median(numbers, n);
    }
    for (int i = 1; i < compute->count; i++)
        numbers[n++] = compute->items[i].begin - compute->items[i - 1].end;
    device->median_gap = pc__median(numbers, n);
    pc__free(numbers);
    return PC_OK;
}

static pc_status one_device(const pc_timeline *t, int process, pc_timeline_device *device)
{
    pc__spans compute = {0}, copy = {0}, both = {0};
    pc__timeline_busy(t, process, false, &compute);
    pc__timeline_busy(t, process, true, &copy);
    pc__spans_both(&both, &compute, &copy);
    *device = (pc_timeline_device){.device = pc__timeline_text(t, t->processes[process].name),
                                   .compute = pc__spans_total(&compute),
                                   .copy = pc__spans_total(&copy),
                                   .both = pc__spans_total(&both)};
    device->copy_overlapped = device->copy > 0 ? device->both / device->copy : (double)NAN;
    device->compute_overlapped = device->compute > 0 ? device->both / device->compute : (double)NAN;
    pc_status status = both.failed ? PC_ERR_MEMORY : medians(t, process, &compute, device);
    pc__spans_free(&compute);
    pc__spans_free(&copy);
    pc__spans_free(&both);
    return status;
}

pc_status pc__timeline_sum_devices(const pc_timeline *t, pc_timeline_summary *s)
{
    int room = 0;
    for (int r = 0; r < t->row_count; r++) {
        int process = t->rows[r].process;
        if (!t->processes[process].device || (r && t->rows[r - 1].process == process))
            continue;
        PC__TRY(pc__grow((void **)&s->devices, &room, s->device_count, sizeof *s->devices));
        PC__TRY(one_device(t, process, &s->devices[s->device_count]));
        s->device_count++;
    }
    return PC_OK;
}
