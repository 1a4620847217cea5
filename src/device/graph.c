/* graph.c: recording what streams are given: graphs from their beginning to their end. */
#include "device/graph.h"

#include "device/failure.h"
#include "device/order.h"
#include "device/plan.h"
#include "device/trace.h"

static atomic_uint_fast64_t last_number;
static pc_status refuse(pc_graph *graph, const char *who, const char *what)
{
    char site[PC__SITE_TEXT];
    pc_status status = pc__fail(PC_ERR_STATE,
                                "%s (%s): the stream is being recorded, and %s cannot be part of a recording; do it "
                                "before pc_graph_begin or after pc_graph_end",
                                who, pc__site_text(pc__site_here(), site), what);
    if (graph->refused.status == PC_OK)
        graph->refused = *pc_error_last();
    return status;
}

pc_status pc__graph_allows(pc_stream *stream, const char *who, const char *what)
{
    PC__TRY(pc__recorder_admits(stream, who));
    pc_graph *graph = pc__recording_for(stream);
    return graph ? refuse(graph, who, what) : PC_OK;
}

pc_status pc__graph_allows_host(const char *who, const char *what)
{
    pc_status status = PC_OK;
    for (pc_graph *graph = pc__recorder_any(); graph; graph = graph->next)
        status = refuse(graph, who, what);
    return status;
}

pc_status pc__graph_allows_beside(const pc_stream *stream, const char *who)
{
    pc_status status = PC_OK;
    for (pc_graph *graph = pc__recorder_any(); graph; graph = graph->next) {
        char name[PC_DEVICE_NAME_MAX], what[PC_DEVICE_NAME_MAX + 32];
        snprintf(what, sizeof what, "work on %s, beside it,", pc_device_name(stream->device, name));
        if (graph->takes_all && !pc__recording_for(stream))
            status = refuse(graph, who, what);
    }
    return status;
}

static pc_status join(pc_stream *stream, pc_graph *graph)
{
    PC__TRY(pc__grow((void **)&graph->others, &graph->other_room, graph->other_count, sizeof *graph->others));
    char a[PC_DEVICE_NAME_MAX], b[PC_DEVICE_NAME_MAX];
    if (graph->backend->one_device_graphs && !pc_device_equal(graph->device, stream->device))
        return pc__fail(PC_ERR_UNSUPPORTED, "a recording on %s cannot go on on %s; record one graph for each of them",
                        pc_device_name(graph->device, a), pc_device_name(stream->device, b));
    atomic_fetch_add(&stream->references, 1);
    graph->others[graph->other_count++] = stream;
    pc__recorder_enters(stream, graph);
    return PC_OK;
}

pc_status pc__graph_take_all(pc_stream *stream)
{
    pc_graph *graph = pc__graph_of(stream);
    pc__work work = {.name = "begin of a recording"};
    PC__TRY(pc__queue_open(stream, &work)); /* a place that whoever joins can wait for */
    pc_status status = stream->backend->host_call(stream, NULL, NULL, &work);
    pc__queue_close(stream, &work, status);
    pc__recorder_takes_all(graph);
    return status;
}

pc_status pc__graph_takes(pc_stream *stream, const pc__work *work)
{
    const bool part = atomic_load_explicit(&stream->recorder, memory_order_relaxed);
    pc_graph *graph = part ? NULL : pc__recording_for(stream);
    if (!graph)
        return PC_OK;
    PC__TRY(join(stream, graph));
    PC__TRY(graph->backend->stream_wait(stream, graph->stream, atomic_load(&graph->stream->ticket), work));
    return pc__plan_wait(stream, graph->stream, work);
}

pc_status pc__graph_follows(pc_stream *stream, const pc__storage *storage, bool write, const pc__work *work)
{
    pc_graph *graph = pc__recorder_any();
    for (; graph; graph = graph->next) {
        const pc__graph_use *use = pc__graph_use_of(graph, storage);
        if (use && graph->backend == stream->backend && (write || use->write || use->made))
            break;
    }
    if (!graph || pc__graph_of(stream))
        return PC_OK;
    PC__TRY(join(stream, graph));
    return pc__plan_wait(stream, graph->stream, work);
}

pc_status pc__graph_meets(pc_stream *stream, pc_stream *other, uint64_t ticket, const char *who, bool *joined)
{
    *joined = false;
    if (!pc__is_recorded(other, ticket))
        return PC_OK;
    PC__TRY(pc__recorder_admits(other, who));
    pc_graph *graph = pc__graph_of(other), *own = pc__graph_of(stream);
    *joined = true;
    if (own == graph)
        return PC_OK;
    char a[PC_DEVICE_NAME_MAX], b[PC_DEVICE_NAME_MAX];
    if (stream->backend != graph->backend)
        return pc__fail(PC_ERR_STATE, "a recording on %s cannot go on on %s", pc_device_name(other->device, a),
                        pc_device_name(stream->device, b));
    if (own)
        return pc__fail(PC_ERR_STATE,
                        "work of one recording on %s waits for work of another one; record both on one "
                        "stream, or share no data",
                        pc_device_name(stream->device, a));
    return join(stream, graph);
}

uint64_t pc__graph_number(const pc_stream *stream)
{
    const pc_graph *graph = pc__recording_for(stream);
    return graph ? graph->number : 0;
}

/* Under the stream's lock: what other threads queue is in front of it, or refused. */
static pc_status begin(pc_graph *graph, pc_stream *stream)
{
    graph->device = stream->device;
    graph->number = atomic_fetch_add_explicit(&last_number, 1, memory_order_relaxed) + 1;
    graph->backend = stream->backend;
    graph->stream = stream;
    pthread_mutex_lock(&stream->lock);
    pc_status status = pc__recorder_admits(stream, "pc_graph_begin");
    if (status == PC_OK && pc__graph_of(stream))
        status = pc__fail(PC_ERR_STATE, "pc_graph_begin: the stream is already being recorded");
    if (status == PC_OK)
        pc__recorder_enters(stream, graph);
    pthread_mutex_unlock(&stream->lock);
    return status;
}

pc_status pc_graph_begin(pc_stream *stream)
{
    if (!stream)
        stream = pc_stream_current(pc_device_current());
    if (!stream)
        return PC_ERR_DEVICE;
    pc_graph *graph = pc__calloc(1, sizeof *graph);
    if (!graph)
        return PC_ERR_MEMORY;
    pc_status status = begin(graph, stream);
    if (status != PC_OK) {
        pc__free(graph);
        return status;
    }
    pc__recorder_begins(graph);
    return PC_OK;
}
/* What joined comes back to the stream that the recording began on, so that the recording has one end. */
static pc_status gather(pc_graph *graph)
{
    for (int i = 0; i < graph->other_count; i++) {
        pc_stream *other = graph->others[i];
        pc__work work = {.name = "end of a recording"};
        PC__TRY(pc__queue_open(graph->stream, &work));
        pc_status status = graph->backend->stream_wait(graph->stream, other, atomic_load(&other->ticket), &work);
        if (status == PC_OK)
            status = pc__plan_wait(graph->stream, other, &work);
        if (status == PC_OK)
            status = graph->backend->host_call(graph->stream, NULL, NULL, &work);
        pc__queue_close(graph->stream, &work, status);
        PC__TRY(status);
    }
    return PC_OK;
}

static void release_streams(pc_graph *graph)
{
    pc__recorder_ends(graph);
    pc__recorder_leaves(graph->stream);
    graph->stream = NULL;
    graph->lender = NULL;
    for (int i = 0; i < graph->other_count; i++) {
        pc_stream *other = graph->others[i];
        pc__recorder_leaves(other);
        if (other->ordered)
            graph->others[graph->ordered_count++] = other;
        else
            pc__stream_let_go(other);
    }
    graph->other_count = 0;
}

/* The host forgets it, and what the program keeps of the tensors that were made in it will never have contents. */
static void discard(pc_graph *graph, const pc_error *why, bool put_back)
{
    unsigned number = 0;
    pc__graph_end_changes(graph, put_back);
    if (graph->implementation)
        graph->backend->graph_close(graph);
    graph->implementation = NULL;
    pc__plan_free(graph->plan); /* which holds temporaries */
    graph->plan = NULL;
    for (int i = 0; i < graph->use_room; i++) {
        const pc__graph_use *use = &graph->uses[i];
        if (!use->storage || !use->made || atomic_load(&use->storage->references) == 1)
            continue;
        number = number ? number : pc__failure_told_at_once(why);
        atomic_store_explicit(&use->storage->failure, number, memory_order_relaxed);
    }
    pc_graph_free(graph);
}

pc_graph *pc_graph_end(pc_stream *stream)
{
    if (!stream)
        stream = pc_stream_current(pc_device_current());
    if (stream && pc__recorder_admits(stream, "pc_graph_end") != PC_OK)
        return NULL;
    pc_graph *graph = stream ? pc__graph_of(stream) : NULL;
    if (!graph)
        return pc__null(PC_ERR_STATE, "pc_graph_end: the stream is not being recorded");
    if (graph->stream != stream)
        return pc__null(PC_ERR_STATE, "pc_graph_end: the recording began on another stream; end it there");
    pc_status status = gather(graph);
    if (status == PC_OK && graph->refused.status == PC_OK)
        status = pc__plan_build(graph);
    release_streams(graph);
    if (graph->refused.status != PC_OK)
        status = pc__fail(graph->refused.status, "pc_graph_end: the recording is not complete: %.380s",
                          graph->refused.message);
    if (status == PC_OK) {
        pc__graph_end_changes(graph, false);
        pc__trace_mark("graph recorded", NULL, pc__site_here());
        return graph;
    }
    discard(graph, pc_error_last(), true);
    return NULL;
}

static void abandon(pc_graph *graph, bool put_back)
{
    const pc_error why = {.status = PC_ERR_STATE, .message = "the recording that was to make it was dropped"};
    (void)gather(graph);
    release_streams(graph);
    discard(graph, graph->refused.status != PC_OK ? &graph->refused : &why, put_back);
}

void pc__graph_abandon(pc_stream *stream)
{
    if (pc__graph_of(stream))
        abandon(pc__graph_of(stream), true);
}

void pc__graph_abandon_all(void)
{
    for (pc_graph *graph; (graph = pc__recorder_any());)
        abandon(graph, false); /* what it changed may be gone */
}

/* All but who they are; the backend has exchanged its own. */
static void swap(pc_graph *a, pc_graph *b)
{
    const pc_graph before = *a, other = *b;
    *a = other;
    *b = before;
    a->number = before.number;
    b->number = other.number;
    a->implementation = before.implementation;
    b->implementation = other.implementation;
}

pc_status pc_graph_update(pc_graph *graph, pc_graph *newer)
{
    PC__NEED(graph);
    PC__NEED(newer);
    if (!pc_device_equal(graph->device, newer->device))
        return pc__fail(PC_ERR_DEVICE, "pc_graph_update: the graphs were recorded on different devices");
    PC__TRY(graph->backend->graph_update(graph, newer));
    swap(graph, newer);
    return PC_OK;
}

void pc_graph_free(pc_graph *graph)
{
    if (!graph)
        return;
    if (graph->implementation)
        graph->backend->graph_close(graph);
    pc__plan_free(graph->plan);
    pc__graph_forget(graph);
    pc__graph_forget_lives(graph);
    pc__storage_drop(graph->arena);
    pc__free(graph->workspaces);
    for (int i = 0; i < graph->ordered_count; i++)
        pc__stream_let_go(graph->others[i]);
    pc__free(graph->others);
    pc__free(graph);
}
