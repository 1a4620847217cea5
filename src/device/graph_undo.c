/* graph_undo.c: what calls change on the host while they are recorded, put back when nothing of the recording will run:
 * the gradients of leaves, a loss scaler's and an optimiser's notes. */
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
