/* workspace.c: workspaces are storages that no tensor has. */
#include "device/workspace.h"

#include "device/order.h"

void *pc__workspace(pc_stream *stream, int level, size_t bytes)
{
    pc__storage **block = &stream->workspaces.block[level];
    if (*block && bytes <= (*block)->capacity)
        return (*block)->data;
    pc__storage *larger = pc__storage_at_once(stream, bytes, "a workspace");
    if (!larger)
        return NULL;
    if (*block)
        pc__workspaces_give(&(pc__workspaces){.block = {*block}}, stream,
                            atomic_load_explicit(&stream->taken, memory_order_relaxed));
    *block = larger;
    return larger->data;
}

/* The lender's next one that is large enough: two at the same time are two there, too. */
static pc__storage *borrow(pc_graph *graph, size_t bytes)
{
    const pc_graph *lender = graph->lender;
    while (lender && graph->lent < lender->workspace_count) {
        pc__storage *block = lender->workspaces[graph->lent++];
        if (bytes <= block->capacity) {
            pc__storage_retain(block);
            return block;
        }
    }
    return NULL;
}

static pc_status keep(pc_graph *graph, pc__storage *block)
{
    PC__TRY(
        pc__grow((void **)&graph->workspaces, &graph->workspace_room, graph->workspace_count, sizeof(pc__storage *)));
    PC__TRY(pc__graph_note(graph, block, (pc__graph_use){.write = true, .made = true, .renews = true}));
    graph->workspaces[graph->workspace_count++] = block;
    return PC_OK;
}

void *pc__graph_workspace(pc_graph *graph, pc_stream *stream, size_t bytes)
{
    pc__storage *block = borrow(graph, bytes);
    if (!block)
        block = pc__storage_at_once(stream, bytes, "a workspace of a recording");
    if (!block)
        return NULL;
    void *data = keep(graph, block) == PC_OK ? block->data : NULL;
    pc__storage_drop(block);
    return data;
}

size_t pc__graph_workspaces(const pc_graph *graph)
{
    size_t bytes = 0;
    for (int i = 0; i < graph->workspace_count; i++)
        bytes += graph->workspaces[i]->capacity;
    return bytes;
}

void pc__workspaces_give(const pc__workspaces *used, const pc_stream *stream, uint64_t ticket)
{
    for (int i = 0; i < PC__WORKSPACES; i++)
        if (used->block[i]) {
            pc__order_own(used->block[i], stream, ticket);
            pc__storage_drop(used->block[i]);
        }
}
