/* event.c: marks in streams: a ticket each, and the time when it was done. */
#include "device/check.h"
#include "device/graph.h"
#include "device/order.h"
#include "device/wait.h"

pc_event *pc_event_new(pc_device device)
{
    if (pc__device_check(device, "pc_event_new") != PC_OK)
        return NULL;
    pc_event *event = pc__calloc(1, sizeof *event);
    if (!event)
        return NULL;
    event->device = device;
    event->backend = pc__backend_of(device.type);
    if (event->backend->event_open(event) == PC_OK)
        return event;
    pc__free(event);
    return NULL;
}

void pc_event_free(pc_event *event)
{
    if (!event)
        return;
    if (pc__checking())
        pc__check_event_gone(event);
    event->backend->event_close(event);
    pc__free(event);
}

pc_status pc_event_record(pc_event *event, pc_stream *stream)
{
    PC__NEED(event);
    if (!stream)
        stream = pc_stream_current(event->device);
    if (!stream)
        return PC_ERR_DEVICE;
    if (!pc_device_equal(stream->device, event->device))
        return pc__fail(PC_ERR_DEVICE, "pc_event_record: the event and the stream belong to different devices");
    pc__work work = {.name = "event"};
    PC__TRY(pc__queue_open(stream, &work));
    pc_status status = stream->recording ? stream->backend->host_call(stream, NULL, NULL, &work)
                                         : event->backend->event_record(event, stream, &work);
    if (status == PC_OK) {
        event->recorded = true;
        event->in_graph = pc__graph_of(stream) != NULL;
        event->stream = stream->id;
        event->ticket = work.ticket;
        if (pc__checking())
            pc__check_event_recorded(event, stream);
    }
    pc__queue_close(stream, &work, status);
    return status;
}

pc_status pc_event_wait(pc_event *event, pc_stream *stream)
{
    PC__NEED(event);
    if (!stream)
        stream = pc_stream_current(event->device);
    if (!stream)
        return PC_ERR_DEVICE;
    if (!event->recorded)
        return PC_OK;
    if (stream->backend->immediate)
        return pc_event_synchronize(event);
    pc__work work = {.name = "event wait"};
    PC__TRY(pc__queue_open(stream, &work));
    pc_status status = pc__wait_for(stream, event->stream, event->ticket, &work);
    if (pc__checking() && status == PC_OK)
        pc__check_event_waits(event, stream);
    if (status == PC_OK)
        status = stream->backend->host_call(stream, NULL, NULL, &work); /* the wait's own place in the queue */
    pc__queue_close(stream, &work, status);
    return status;
}

/* The stream that the event is in, held; NULL when it is freed: the mark has then been passed. */
static pc_stream *stream_of(const pc_event *event)
{
    return event->recorded ? pc__stream_hold(event->stream) : NULL;
}

static pc_status synchronize(pc_event *event, const char *who)
{
    pc_stream *stream = stream_of(event);
    pc_status status = PC_OK;
    if (stream && event->in_graph && pc__is_recorded(stream, event->ticket))
        status = pc__graph_allows(stream, who, "waiting");
    else if (stream)
        status = pc__host_wait(stream, event->ticket, who, NULL);
    pc__stream_let_go(stream);
    if (pc__checking())
        pc__check_event_host_waited(event);
    return status;
}

pc_status pc_event_synchronize(pc_event *event)
{
    PC__NEED(event);
    return synchronize(event, "pc_event_synchronize");
}

pc_status pc_event_query(pc_event *event, bool *done)
{
    PC__NEED(done);
    *done = true;
    PC__NEED(event);
    pc_stream *stream = stream_of(event);
    *done = !stream || pc__ticket_done(stream, event->ticket);
    pc__stream_let_go(stream);
    return PC_OK;
}

pc_status pc_event_elapsed(pc_event *start, pc_event *end, double *milliseconds)
{
    PC__NEED(milliseconds);
    *milliseconds = 0;
    PC__NEED(start);
    PC__NEED(end);
    if (!start->recorded || !end->recorded)
        return pc__fail(PC_ERR_STATE, "pc_event_elapsed: both events must be recorded first");
    if (!pc_device_equal(start->device, end->device))
        return pc__fail(PC_ERR_DEVICE, "pc_event_elapsed: the events belong to different devices");
    if (start->in_graph || end->in_graph)
        return pc__fail(PC_ERR_STATE, "pc_event_elapsed: an event in a recording has no time; record it around "
                                      "pc_graph_launch");
    PC__TRY(synchronize(start, "pc_event_elapsed"));
    PC__TRY(synchronize(end, "pc_event_elapsed"));
    return start->backend->event_elapsed(start, end, milliseconds);
}
