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

void *pc__graph_workspace(pc_graph *graph, pc_stream *stream, size_t bytes)
{
    pc__storage *block = pc__storage_at_once(stream, bytes, "a workspace of a recording");
    if (!block)
        return NULL;
    void *data = block->data;
    const pc_status status = pc__graph_note(graph, block, (pc__graph_use){.write = true, .made = true, .renews = true});
    if (status == PC_OK)
        graph->workspace += block->capacity;
    pc__storage_drop(block);
    return status == PC_OK ? data : NULL;
}

void pc__workspaces_give(const pc__workspaces *used, const pc_stream *stream, uint64_t ticket)
{
    for (int i = 0; i < PC__WORKSPACES; i++)
        if (used->block[i]) {
            pc__order_own(used->block[i], stream, ticket);
            pc__storage_drop(used->block[i]);
        }
}
