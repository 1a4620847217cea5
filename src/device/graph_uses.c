/* graph_uses.c: what memory a recording uses, keeps and lends, and whether what it found is still there. */
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

static atomic_uint_fast64_t lives_ended;

static void let_go(pc__life *life)
{
    if (atomic_fetch_sub_explicit(&life->references, 1, memory_order_acq_rel) == 1)
        pc__free(life);
}

void pc__life_end(pc__life_slot *slot)
{
    pc__life *life = atomic_load_explicit(slot, memory_order_acquire);
    if (!life)
        return;
    atomic_store_explicit(&life->over, true, memory_order_relaxed);
    atomic_fetch_add_explicit(&lives_ended, 1, memory_order_release);
    let_go(life);
}

/* Two threads may ask for the first time at once. NULL: PC_ERR_MEMORY. */
static pc__life *life_of(pc__life_slot *slot)
{
    pc__life *life = atomic_load_explicit(slot, memory_order_acquire);
    pc__life *made = life ? NULL : pc__calloc(1, sizeof *made);
    if (!made)
        return life;
    atomic_store_explicit(&made->references, 1, memory_order_relaxed);
    if (atomic_compare_exchange_strong(slot, &life, made))
        return made;
    pc__free(made);
    return life;
}

static pc_status find(pc_graph *graph, pc__life_slot *slot)
{
    pc__life *life = life_of(slot);
    if (!life)
        return PC_ERR_MEMORY;
    if (atomic_load_explicit(&life->noted, memory_order_relaxed) == graph->number)
        return PC_OK;
    PC__TRY(pc__grow((void **)&graph->lives, &graph->life_room, graph->life_count, sizeof *graph->lives));
    atomic_fetch_add_explicit(&life->references, 1, memory_order_relaxed);
    atomic_store_explicit(&life->noted, graph->number, memory_order_relaxed);
    graph->lives[graph->life_count++] = life;
    return PC_OK;
}

pc_status pc__graph_finds(pc__life_slot *slot, uint64_t made_in)
{
    for (pc_graph *graph = pc__recorder_any(); graph; graph = graph->next)
        if (graph->takes_all && graph->number != made_in)
            PC__TRY(find(graph, slot));
    return PC_OK;
}

bool pc__graph_lacks(pc_graph *graph)
{
    const uint64_t ended = atomic_load_explicit(&lives_ended, memory_order_acquire);
    for (int i = 0; ended != graph->ended && i < graph->life_count; i++)
        if (atomic_load_explicit(&graph->lives[i]->over, memory_order_relaxed))
            return true;
    graph->ended = ended; /* nothing to look at before the next one goes */
    return false;
}

void pc__graph_forget_lives(pc_graph *graph)
{
    while (graph->life_count > 0)
        let_go(graph->lives[--graph->life_count]);
    pc__free(graph->lives);
    graph->lives = NULL;
    graph->life_room = 0;
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
