/* recorder.c: which thread records a stream, and what a thread has under way. */
#include "device/recorder.h"

#include "device/graph.h"

static atomic_uint_fast64_t last;
static _Thread_local uint64_t own;
static _Thread_local pc_graph *under_way;
static atomic_int taking_all; /* recordings of all threads that do */

uint64_t pc__recorder_here(void)
{
    if (!own)
        own = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    return own;
}

pc_status pc__recorder_refuses(const pc_stream *stream, const char *who)
{
    char device[PC_DEVICE_NAME_MAX], here[PC__SITE_TEXT], there[PC__SITE_TEXT], name[32] = "the default stream";
    if (!stream->is_default)
        snprintf(name, sizeof name, "stream %u", stream->id);
    return pc__fail(PC_ERR_STATE,
                    "%s (%.80s): %s of %s is being recorded by another thread, which began at %.80s; use a stream of "
                    "your own (pc_stream, PC_WITH_STREAM), or wait until that thread has ended the recording",
                    who, pc__site_text(pc__site_here(), here), name, pc_device_name(stream->device, device),
                    pc__site_text(atomic_load(&stream->recording_site), there));
}

void pc__recorder_enters(pc_stream *stream, pc_graph *graph)
{
    atomic_store(&stream->recording_from, atomic_load(&stream->ticket));
    atomic_store(&stream->recording_site, pc__site_here());
    atomic_store(&stream->recording, graph);
    atomic_store_explicit(&stream->recorder, pc__recorder_here(), memory_order_release);
}

void pc__recorder_leaves(pc_stream *stream)
{
    atomic_store(&stream->recording, NULL);
    atomic_store_explicit(&stream->recorder, 0, memory_order_release);
}

void pc__recorder_begins(pc_graph *graph)
{
    pc__stream_watch_end();
    graph->next = under_way;
    under_way = graph;
}

void pc__recorder_takes_all(pc_graph *graph)
{
    graph->takes_all = true;
    atomic_fetch_add(&taking_all, 1);
}

void pc__recorder_ends(pc_graph *graph)
{
    pc_graph **link = &under_way;
    while (*link != graph)
        link = &(*link)->next;
    *link = graph->next;
    if (graph->takes_all)
        atomic_fetch_sub(&taking_all, 1);
    graph->takes_all = false;
}

pc_graph *pc__recorder_any(void)
{
    return under_way;
}

pc_graph *pc__recording_for(const pc_stream *stream)
{
    pc_graph *graph = pc__graph_of(stream);
    if (graph || !atomic_load_explicit(&taking_all, memory_order_relaxed))
        return graph;
    for (graph = under_way; graph; graph = graph->next)
        if (graph->takes_all && pc_device_equal(graph->device, stream->device))
            return graph;
    return NULL;
}
