/* trace.c: what the library and the program tell the timeline, turned into events. */
#include "device/trace_write.h"

#include <paracord/trace.h>
#include <time.h>

int64_t pc__now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* A bar; what began before the trace begins with it. */
static void bar(const char *name, const char *cat, pc__row row, int64_t started, int64_t ended)
{
    started = PC__MAX(started, pc__trace_origin());
    pc__trace_event("X", name, cat, row, started);
    pc__trace_micros("dur", ended - started);
}

static void add_bytes(int64_t bytes)
{
    if (bytes > 0)
        pc__trace_integer("bytes", bytes);
}

static void work_bar(const pc__trace_work *work, const char *cat, pc__row row, const char *place)
{
    bar(work->name, cat, row, work->started, work->ended);
    pc__trace_args();
    pc__trace_integer("stream", work->stream);
    pc__trace_integer("ticket", (int64_t)work->ticket);
    add_bytes(work->bytes);
    pc__trace_micros("queued_us", work->started - work->queued);
    pc__trace_text("site", place);
    pc__trace_text("note", work->note);
    pc__trace_finish();
}

void pc__trace_work_done(const pc__trace_work *work)
{
    const char *place;
    if (!pc__trace_enter(work->site, &place))
        return;
    pc__row row = pc__trace_stream_row(work->device, work->stream);
    work_bar(work, "work", row, place);
    if (work->engine)
        work_bar(work, "engine", pc__trace_engine_row(work->device, work->engine, work->lane), place);
    pc__trace_arrow_work(row, work->ticket, PC__MAX(work->started, pc__trace_origin()), work->ended);
    pc__trace_leave();
}

void pc__trace_wait(pc_device device, uint32_t stream, uint64_t ticket, pc_device other_device, uint32_t other,
                    uint64_t other_ticket)
{
    const char *place;
    if (!pc__trace_enter(0, &place))
        return;
    pc__trace_arrow_wanted(pc__trace_stream_row(device, stream), ticket, pc__trace_stream_row(other_device, other),
                           other_ticket);
    pc__trace_leave();
}

void pc__trace_host_done(const pc__trace_host *event)
{
    const char *place;
    char device[PC_DEVICE_NAME_MAX];
    if (!pc__trace_enter(event->site, &place))
        return;
    bar(event->name, event->kind, pc__trace_host_row(), event->started, event->ended);
    pc__trace_args();
    if (event->device.type >= 0)
        pc__trace_text("device", pc_device_name(event->device, device));
    if (event->stream)
        pc__trace_integer("stream", event->stream);
    add_bytes(event->bytes);
    pc__trace_text("site", place);
    pc__trace_text("note", event->note);
    pc__trace_finish();
    pc__trace_leave();
}

void pc__trace_op_done(const char *name, const char *note, int64_t started, pc_device device, uint32_t stream,
                       pc__site site)
{
    if (started)
        pc__trace_host_done(&(pc__trace_host){.kind = "op",
                                              .name = name,
                                              .note = note,
                                              .started = started,
                                              .ended = pc__now(),
                                              .device = device,
                                              .stream = stream,
                                              .site = site});
}

void pc__trace_mark(const char *name, const char *note, pc__site site)
{
    const char *place;
    int64_t now = pc__now();
    if (!pc__trace_enter(site, &place))
        return;
    pc__trace_event("i", name, "mark", pc__trace_host_row(), now);
    pc__trace_text("s", "t");
    pc__trace_args();
    pc__trace_text("site", place);
    pc__trace_text("note", note);
    pc__trace_finish();
    pc__trace_leave();
}

void pc_trace_mark(const char *name)
{
    PC__NEED_OR(, name);
    if (pc__tracing())
        pc__trace_mark(name, NULL, pc__site_here());
}

static _Atomic(const pc__trace_ranges *) others;

void pc__trace_ranges_set(const pc__trace_ranges *ranges)
{
    atomic_store_explicit(&others, ranges, memory_order_release);
}

pc_trace_range pc_trace_range_enter(const char *name)
{
    pc_trace_range range = {.name = name, .open = true}; /* the block that follows is run whatever happens here */
    PC__NEED_OR(range, name);
    const pc__trace_ranges *other = atomic_load_explicit(&others, memory_order_acquire);
    if (other) {
        other->push(name);
        range.pushed_ = true;
    }
    if (pc__tracing()) {
        range.site_ = pc__site_here();
        range.started_ = pc__now();
    }
    return range;
}

void pc_trace_range_leave(pc_trace_range *range)
{
    if (!range)
        return;
    if (range->open && range->started_ && pc__tracing())
        pc__trace_host_done(&(pc__trace_host){.kind = "range",
                                              .name = range->name,
                                              .started = range->started_,
                                              .ended = pc__now(),
                                              .device = {-1, 0},
                                              .site = range->site_});
    if (range->open && range->pushed_)
        atomic_load_explicit(&others, memory_order_acquire)->pop();
    range->open = false;
}
