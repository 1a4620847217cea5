/* graph_launch.c: launching what was recorded. A launch is one piece of work that uses every storage of the graph, so the
 * order between streams holds for graphs as for ops. */
#include "device/graph.h"

#include "device/check.h"
#include "device/failure.h"
#include "device/order.h"
#include "device/plan.h"
#include "device/trace.h"

/* What launches read has contents. */
static pc_status check_contents(pc_graph *graph)
{
    for (int i = 0; pc__ever_failed() && i < graph->use_room; i++) {
        const pc__graph_use *use = &graph->uses[i];
        if (use->storage && !use->renews)
            PC__TRY(pc__storage_sound(use->storage, "pc_graph_launch"));
    }
    return PC_OK;
}

static void heal(pc_graph *graph)
{
    for (int i = 0; pc__ever_failed() && i < graph->use_room; i++)
        if (graph->uses[i].storage && graph->uses[i].renews)
            pc__storage_heals(graph->uses[i].storage);
}

static pc_status settle_all(pc_graph *graph)
{
    for (int i = 0; i < graph->use_room; i++)
        if (graph->uses[i].storage)
            PC__TRY(pc__settle(graph->uses[i].storage, graph->uses[i].write, "pc_graph_launch", true));
    return PC_OK;
}

/* All waits come before the checker hears of the work. */
static pc_status note_uses(pc_graph *graph, pc_stream *stream, const pc__work *work)
{
    for (int i = 0; i < graph->use_room; i++)
        if (graph->uses[i].storage)
            PC__TRY(pc__uses(graph->uses[i].storage, stream, work, graph->uses[i].write));
    for (int i = 0; pc__checking() && i < graph->use_room; i++) {
        const pc__graph_use *use = &graph->uses[i];
        pc__check_use whole = {use->storage, 0, use->storage ? use->storage->bytes : 0, use->write};
        if (use->storage)
            pc__check_work(work->name, work->site, stream, work->ticket, &whole, 1);
    }
    return PC_OK;
}

/* As a call in place does for what it writes. What was made for the recording its first launch makes: nobody has seen
 * anything else there, and a backward pass through what was recorded finds what that saved. */
static void raise_versions(pc_graph *graph)
{
    for (int i = 0; i < graph->use_room; i++) {
        const pc__graph_use *use = &graph->uses[i];
        if (use->storage && use->write && (graph->launched || !use->made))
            atomic_fetch_add_explicit(&use->storage->version, 1, memory_order_relaxed);
    }
    graph->launched = true;
}

/* The launch comes behind what such streams have queued, and behind the last launch. */
static pc_status follow_ordered(const pc_graph *graph, pc_stream *stream, const pc__work *work)
{
    for (int i = 0; i < graph->ordered_count; i++) {
        const pc_stream *other = graph->others[i];
        PC__TRY(pc__wait_for(stream, other->id, atomic_load(&other->ticket), work));
        if (other->behind)
            PC__TRY(pc__wait_for(stream, other->behind, other->behind_ticket, work));
    }
    return PC_OK;
}

/* And what they queue next comes behind it (pc__queue_open). */
static void lead_ordered(const pc_graph *graph, const pc_stream *stream, uint64_t ticket)
{
    for (int i = 0; i < graph->ordered_count; i++) {
        pc_stream *other = graph->others[i];
        if (other == stream)
            continue;
        pthread_mutex_lock(&other->lock);
        other->behind = stream->id;
        other->behind_ticket = ticket;
        pthread_mutex_unlock(&other->lock);
    }
}

/* On a device that works at once. */
static pc_status launch_now(pc_graph *graph, pc_stream *stream, const pc__work *work)
{
    PC__TRY(settle_all(graph));
    PC__TRY(check_contents(graph));
    const int64_t started = pc__trace_now();
    const pc__site site = started ? pc__site_here() : 0;
    const pc_status status = graph->backend->graph_launch(graph, stream, work);
    pc__trace_op_done(work->name, NULL, started, stream->device, stream->id, site);
    if (status == PC_OK)
        heal(graph);
    return status;
}

static pc_status launch(pc_graph *graph, pc_stream *stream)
{
    raise_versions(graph);
    pc__work work = {.name = "graph"};
    if (graph->backend->immediate)
        return launch_now(graph, stream, &work);
    PC__TRY(pc__queue_open(stream, &work));
    pc_status status = check_contents(graph);
    if (status == PC_OK)
        status = note_uses(graph, stream, &work);
    if (status == PC_OK)
        status = follow_ordered(graph, stream, &work);
    if (status == PC_OK)
        status = graph->backend->graph_launch(graph, stream, &work);
    if (status == PC_OK)
        heal(graph);
    pc__queue_close(stream, &work, status);
    if (status == PC_OK)
        lead_ordered(graph, stream, work.ticket);
    return status;
}

pc_status pc_graph_launch(pc_graph *graph, pc_stream *stream)
{
    PC__NEED(graph);
    if (!stream)
        stream = pc_stream_current(graph->device);
    if (!stream)
        return PC_ERR_DEVICE;
    PC__TRY(pc__recorder_admits(stream, "pc_graph_launch"));
    if (pc__recording_for(stream))
        return pc__fail(PC_ERR_STATE, "pc_graph_launch: the stream is being recorded; end the recording first");
    if (!pc_device_equal(stream->device, graph->device))
        return pc__fail(PC_ERR_DEVICE, "pc_graph_launch: the graph was recorded on another device");
    PC__TRY(pc__plan_refresh(graph->plan, stream));
    PC__TRY(launch(graph, stream));
    pc__plan_launched(graph->plan);
    return PC_OK;
}
