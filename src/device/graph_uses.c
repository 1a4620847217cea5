/* graph_uses.c: what memory a recording uses, keeps and lends. */
#include "device/graph.h"

static size_t place_of(const pc__graph_use *uses, int room, const pc__storage *storage)
{
    size_t i = (uintptr_t)storage / 64 * 0x9e3779b97f4a7c15u >> 32;
    while (uses[i % (size_t)room].storage && uses[i % (size_t)room].storage != storage)
        i++;
    return i % (size_t)room;
}

static pc_status more_room(pc_graph *graph)
{
    if (graph->use_count * 2 < graph->use_room)
        return PC_OK;
    int room = graph->use_room ? graph->use_room * 2 : 64;
    pc__graph_use *uses = pc__calloc((size_t)room, sizeof *uses);
    if (!uses)
        return PC_ERR_MEMORY;
    for (int i = 0; i < graph->use_room; i++)
        if (graph->uses[i].storage)
            uses[place_of(uses, room, graph->uses[i].storage)] = graph->uses[i];
    pc__free(graph->uses);
    graph->uses = uses;
    graph->use_room = room;
    return PC_OK;
}

pc_status pc__graph_note(pc_graph *graph, pc__storage *storage, pc__graph_use new)
{
    PC__TRY(more_room(graph));
    pc__graph_use *use = &graph->uses[place_of(graph->uses, graph->use_room, storage)];
    if (!use->storage) {
        pc__storage_retain(storage);
        use->storage = storage;
        use->number = graph->use_count++;
        use->renews = new.renews;
    }
    use->write |= new.write;
    use->made |= new.made;
    return PC_OK;
}

pc_status pc__graph_uses(pc_stream *stream, pc__storage *storage, bool write, bool whole)
{
    pc_graph *graph = pc__recording_for(stream);
    return graph ? pc__graph_note(graph, storage, (pc__graph_use){.write = write, .renews = whole}) : PC_OK;
}

pc_status pc__graph_makes(pc_stream *stream, pc__storage *storage)
{
    return pc__graph_note(pc__recording_for(stream), storage, (pc__graph_use){.made = true, .renews = true});
}

pc__graph_use *pc__graph_use_of(const pc_graph *graph, const pc__storage *storage)
{
    if (!graph || !graph->use_count)
        return NULL;
    pc__graph_use *use = &graph->uses[place_of(graph->uses, graph->use_room, storage)];
    return use->storage ? use : NULL;
}

void pc__graph_forget(pc_graph *graph)
{
    for (int i = 0; i < graph->use_room; i++)
        if (graph->uses[i].storage)
            pc__storage_drop(graph->uses[i].storage);
    pc__free(graph->uses);
    graph->uses = NULL;
    graph->use_count = graph->use_room = 0;
}

bool pc__graph_reads_lost(const pc_graph *graph)
{
    for (int i = 0; i < graph->use_room; i++) {
        const pc__graph_use *use = &graph->uses[i];
        if (use->storage && !use->made && !use->renews && atomic_load(&use->storage->references) == 1)
            return true;
    }
    return false;
}

static bool has_work(const pc__storage *storage)
{
    bool found = false;
    for (const pc_graph *graph = pc__recorder_any(); graph && !found; graph = graph->next)
        found = pc__graph_use_of(graph, storage) != NULL;
    return found && atomic_load(&storage->order.owner);
}

pc_status pc__graph_gives_memory(pc_stream *stream, pc__storage *storage)
{
    if (!storage->elsewhere && (pc__recording_for(stream) || has_work(storage)))
        return PC_OK;
    return pc__storage_materialize(storage, stream);
}

int pc__graph_holds(const pc_stream *stream, const pc__storage *storage)
{
    return pc__graph_use_of(pc__graph_of(stream), storage) != NULL;
}

void pc__graph_borrow(pc_stream *stream, const pc_graph *lender)
{
    pc__graph_of(stream)->lender = lender;
}
