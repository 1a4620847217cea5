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

static pc_status note(pc_stream *stream, pc__storage *storage, pc__graph_use new)
{
    pc_graph *graph = pc__recording_for(stream);
    if (!graph)
        return PC_OK;
    PC__TRY(more_room(graph));
    pc__graph_use *use = &graph->uses[place_of(graph->uses, graph->use_room, storage)];
    if (!use->storage) {
        pc__storage_retain(storage);
        use->storage = storage;
        use->renews = new.renews;
        graph->use_count++;
    }
    use->write |= new.write;
    use->made |= new.made;
    return PC_OK;
}

pc_status pc__graph_uses(pc_stream *stream, pc__storage *storage, bool write, bool whole)
{
    return note(stream, storage, (pc__graph_use){.write = write, .renews = whole});
}

pc_status pc__graph_makes(pc_stream *stream, pc__storage *storage)
{
    return note(stream, storage, (pc__graph_use){.made = true, .renews = true});
}

/* NULL: none. */
static const pc__graph_use *use_of(const pc_graph *graph, const pc__storage *storage)
{
    if (!graph || !graph->use_count)
        return NULL;
    const pc__graph_use *use = &graph->uses[place_of(graph->uses, graph->use_room, storage)];
    return use->storage ? use : NULL;
}

bool pc__graph_reads(const pc_stream *stream, const pc__storage *storage)
{
    const pc__graph_use *use = use_of(pc__graph_of(stream), storage);
    return use && !use->write;
}

bool pc__graph_found(const pc_stream *stream, const pc__storage *storage)
{
    const pc_graph *graph = pc__graph_of(stream);
    const pc__graph_use *use = use_of(graph, storage);
    return graph && !(use && use->write);
}

int pc__graph_holds(const pc_stream *stream, const pc__storage *storage)
{
    const pc_graph *graph = pc__graph_of(stream);
    return graph ? (use_of(graph, storage) != NULL) + (use_of(graph->lender, storage) != NULL) : 0;
}

void pc__graph_borrow(pc_stream *stream, const pc_graph *lender)
{
    pc__graph_of(stream)->lender = lender;
}

pc__storage *pc__graph_lent(const pc_stream *stream, size_t bytes)
{
    const pc_graph *graph = pc__graph_of(stream), *lender = graph ? graph->lender : NULL;
    for (int i = 0; lender && i < lender->use_room; i++) {
        const pc__graph_use *use = &lender->uses[i];
        if (use->storage && use->made && use->storage->bytes == bytes && atomic_load(&use->storage->references) == 1) {
            pc__storage_retain(use->storage);
            return use->storage;
        }
    }
    return NULL;
}
