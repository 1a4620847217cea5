/* graph_undo.c: what calls change on the host while they are recorded, put back when nothing of the recording will run:
 * versions, the gradients of leaves, a loss scaler's and an optimiser's notes. */
#include "device/graph.h"

pc_graph *pc__graph_here(pc_device device)
{
    const pc_stream *stream = pc__recorder_any() ? pc_stream_current(device) : NULL;
    return stream ? pc__recording_for(stream) : NULL;
}

pc_status pc__graph_changes(pc_graph *graph, void *object, void *before, pc__graph_end_change *end)
{
    const pc_status status =
        pc__grow((void **)&graph->changes, &graph->change_room, graph->change_count, sizeof *graph->changes);
    if (status == PC_OK)
        graph->changes[graph->change_count++] = (pc__graph_change){object, before, end};
    else if (graph->refused.status == PC_OK)
        graph->refused = *pc_error_last();
    return status;
}

/* Another thread may have written it meanwhile. */
static void end_raise(void *object, void *versions, bool put_back)
{
    pc__storage *storage = object;
    const uint64_t both = (uintptr_t)versions;
    unsigned now = (unsigned)both;
    if (put_back)
        (void)atomic_compare_exchange_strong(&storage->version, &now, (unsigned)(both >> 32));
    pc__storage_drop(storage);
}

/* No version is given twice in recordings: a tape of a refused one may have saved it. */
static pc_status raise_recorded(pc_graph *graph, pc__storage *storage)
{
    static atomic_uint last;
    const unsigned before = atomic_load_explicit(&storage->version, memory_order_relaxed);
    const unsigned now = 0x80000000u | (atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1);
    const uint64_t both = (uint64_t)before << 32 | now;
    PC__TRY(pc__graph_changes(graph, storage, (void *)(uintptr_t)both, end_raise));
    pc__storage_retain(storage);
    atomic_store_explicit(&storage->version, now, memory_order_relaxed);
    return PC_OK;
}

pc_status pc__graph_raises(pc_device device, pc__storage *storage)
{
    pc_graph *graph = pc__graph_here(device);
    const pc__graph_use *use = pc__graph_use_of(graph, storage);
    if (graph && !(use && use->made))
        return raise_recorded(graph, storage);
    atomic_fetch_add_explicit(&storage->version, 1, memory_order_relaxed);
    return PC_OK;
}

void pc__graph_lost(const void *object)
{
    for (pc_graph *graph = pc__recorder_any(); graph; graph = graph->next) {
        for (int i = 0; i < graph->change_count; i++) {
            pc__graph_change *change = &graph->changes[i];
            if (change->object != object)
                continue;
            change->end(change->object, change->before, false);
            *change = (pc__graph_change){0};
        }
    }
}

void pc__graph_end_changes(pc_graph *graph, bool put_back)
{
    while (graph->change_count > 0) {
        const pc__graph_change *change = &graph->changes[--graph->change_count];
        if (change->object)
            change->end(change->object, change->before, put_back);
    }
    pc__free(graph->changes);
    graph->changes = NULL;
    graph->change_room = 0;
}
