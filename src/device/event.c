/* event.c: marks in streams, and recordings of streams; each a thin layer over the backend's slots. */
#include "device/backend.h"

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
    event->backend->event_close(event);
    pc__free(event);
}

static pc_status check(const char *who, const pc_event *event, pc_stream **stream)
{
    if (!event)
        return pc__fail(PC_ERR_ARGUMENT, "%s: the event is NULL", who);
    if (!*stream)
        *stream = pc_stream_current(event->device);
    if (!*stream)
        return PC_ERR_DEVICE;
    if (!pc_device_equal((*stream)->device, event->device))
        return pc__fail(PC_ERR_DEVICE, "%s: the event and the stream belong to different devices", who);
    return PC_OK;
}

pc_status pc_event_record(pc_event *event, pc_stream *stream)
{
    PC__TRY(check("pc_event_record", event, &stream));
    PC__TRY(event->backend->event_record(event, stream));
    event->recorded = true;
    return PC_OK;
}

pc_status pc_event_wait(pc_event *event, pc_stream *stream)
{
    PC__TRY(check("pc_event_wait", event, &stream));
    return event->recorded ? event->backend->event_wait(event, stream) : PC_OK;
}

pc_status pc_event_synchronize(pc_event *event)
{
    if (!event)
        return pc__fail(PC_ERR_ARGUMENT, "pc_event_synchronize: the event is NULL");
    return event->recorded ? event->backend->event_synchronize(event) : PC_OK;
}

pc_status pc_event_query(pc_event *event, bool *done)
{
    *done = true;
    if (!event)
        return pc__fail(PC_ERR_ARGUMENT, "pc_event_query: the event is NULL");
    return event->recorded ? event->backend->event_query(event, done) : PC_OK;
}

pc_status pc_event_elapsed(pc_event *start, pc_event *end, double *milliseconds)
{
    *milliseconds = 0;
    if (!start || !end || !start->recorded || !end->recorded)
        return pc__fail(PC_ERR_STATE, "pc_event_elapsed: both events must be recorded first");
    if (!pc_device_equal(start->device, end->device))
        return pc__fail(PC_ERR_DEVICE, "pc_event_elapsed: the events belong to different devices");
    PC__TRY(pc_event_synchronize(start));
    PC__TRY(pc_event_synchronize(end));
    return start->backend->event_elapsed(start, end, milliseconds);
}

pc_status pc_graph_begin(pc_stream *stream)
{
    if (!stream)
        stream = pc_stream_current(pc_device_current());
    if (!stream)
        return PC_ERR_DEVICE;
    if (stream->recording)
        return pc__fail(PC_ERR_STATE, "pc_graph_begin: the stream is already being recorded");
    pc_graph *graph = pc__calloc(1, sizeof *graph);
    if (!graph)
        return PC_ERR_MEMORY;
    graph->device = stream->device;
    graph->backend = stream->backend;
    pc_status status = stream->backend->graph_begin(graph, stream);
    if (status != PC_OK) {
        pc__free(graph);
        return status;
    }
    stream->recording = graph;
    return PC_OK;
}

pc_graph *pc_graph_end(pc_stream *stream)
{
    if (!stream)
        stream = pc_stream_current(pc_device_current());
    if (!stream || !stream->recording)
        return pc__null(PC_ERR_STATE, "pc_graph_end: the stream is not being recorded");
    pc_graph *graph = stream->recording;
    stream->recording = NULL;
    if (stream->backend->graph_end(graph, stream) == PC_OK)
        return graph;
    pc_graph_free(graph);
    return NULL;
}

pc_status pc_graph_launch(pc_graph *graph, pc_stream *stream)
{
    if (!graph)
        return pc__fail(PC_ERR_ARGUMENT, "pc_graph_launch: the graph is NULL");
    if (!stream)
        stream = pc_stream_current(graph->device);
    if (!stream)
        return PC_ERR_DEVICE;
    if (stream->recording)
        return pc__fail(PC_ERR_STATE, "pc_graph_launch: the stream is being recorded; end the recording first");
    if (!pc_device_equal(stream->device, graph->device))
        return pc__fail(PC_ERR_DEVICE, "pc_graph_launch: the graph was recorded on another device");
    return graph->backend->graph_launch(graph, stream);
}

void pc_graph_free(pc_graph *graph)
{
    if (!graph)
        return;
    graph->backend->graph_close(graph);
    pc__free(graph);
}
