/* memory.c: what a plan's storages are, how long each is needed, and where its memory is.
 *
 * Temporaries share one block, the arena. Two of them share bytes of it where all that uses the one is done before anything
 * uses the other (lanes.c); where one stream uses both, by calls of it between which there are at least backend->span others:
 * so far apart are the calls that a backend may do as one. Each lies at the lowest place that is free, the largest first (Pisarchyk and Lee, "Efficient memory management for
 * deep neural net inference", 2020: greedy by size). */
#include "plan/lanes.h"

#include "device/cache.h"

#include <stdlib.h>

enum { ALIGNMENT = 256, SHARED_MOST = 16384 /* temporaries; for more, looking for places takes too long */ };

/* --- survey --- */

static void see_uses(pc__plan *plan)
{
    for (int i = 0; i < plan->storages; i++) {
        plan->storage[i].used = false;
        plan->storage[i].writes = 0;
    }
    for (int i = 0; i < plan->count; i++) {
        const pc__plan_node *node = &plan->node[i];
        for (int k = 0; k < (node->gone ? 0 : pc__node_uses(node)); k++) {
            plan->storage[node->number[k]].used = true;
            plan->storage[node->number[k]].writes += pc__node_writes(node, k);
        }
    }
}

/* The references that are left are the recording's and the program's. */
pc_status pc__plan_survey(pc_graph *graph)
{
    pc__plan *plan = graph->plan;
    plan->storage = pc__calloc((size_t)graph->use_count + 1, sizeof *plan->storage);
    if (!plan->storage)
        return PC_ERR_MEMORY;
    plan->storages = graph->use_count;
    for (int i = 0; i < graph->use_room; i++) {
        pc__storage *storage = graph->uses[i].storage;
        if (!storage)
            continue;
        pc__plan_storage *s = &plan->storage[graph->uses[i].number];
        const bool planned = atomic_load(&storage->planned), alone = atomic_load(&storage->references) == 1;
        *s = (pc__plan_storage){.storage = storage, .bytes = storage->bytes};
        s->place = !planned ? PC__PLACE_BEFORE : alone ? PC__PLACE_TEMPORARY : PC__PLACE_KEPT;
        if (s->place == PC__PLACE_TEMPORARY)
            pc__storage_retain(storage);
    }
    see_uses(plan);
    return PC_OK;
}

/* --- places in the arena --- */

typedef struct layout {
    const pc__plan *plan;
    pc__lanes lanes;
    pc__plan_storage **placed; /* by offset */
    int count;
    size_t bytes;
} layout;

static size_t rounded(size_t bytes)
{
    return (PC__MAX(bytes, 1) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Both are needed at some time. */
static bool meet(const layout *l, const pc__plan_storage *a, const pc__plan_storage *b)
{
    const int x = (int)(a - l->plan->storage), y = (int)(b - l->plan->storage);
    return !pc__lanes_before(&l->lanes, x, y) && !pc__lanes_before(&l->lanes, y, x);
}

/* The lowest gap between those that it meets. */
static void put(layout *l, pc__plan_storage *s)
{
    size_t at = 0;
    for (int i = 0; i < l->count; i++) {
        const pc__plan_storage *other = l->placed[i];
        if (!meet(l, s, other))
            continue;
        if (other->offset >= at + rounded(s->bytes))
            break;
        at = PC__MAX(at, other->offset + rounded(other->bytes));
    }
    s->offset = at;
    l->bytes = PC__MAX(l->bytes, at + rounded(s->bytes));
    int i = l->count++;
    for (; i > 0 && l->placed[i - 1]->offset > at; i--)
        l->placed[i] = l->placed[i - 1];
    l->placed[i] = s;
}

static int larger_first(const void *x, const void *y)
{
    const pc__plan_storage *a = *(pc__plan_storage *const *)x, *b = *(pc__plan_storage *const *)y;
    return a->bytes != b->bytes ? (a->bytes < b->bytes) - (a->bytes > b->bytes) : (a > b) - (a < b);
}

static pc_status lay_out(pc_graph *graph, pc__plan *plan, size_t *bytes)
{
    pc__plan_storage **order = pc__calloc((size_t)plan->storages * 2 + 1, sizeof *order);
    if (!order)
        return PC_ERR_MEMORY;
    layout l = {.plan = plan, .placed = order + plan->storages};
    int n = 0;
    for (int i = 0; i < plan->storages; i++)
        if (plan->storage[i].place == PC__PLACE_TEMPORARY && plan->storage[i].used)
            order[n++] = &plan->storage[i];
    qsort(order, (size_t)n, sizeof *order, larger_first);
    const bool share = n <= SHARED_MOST && pc__plan_allows(PC__PASS_SHARING);
    const pc_status status = share ? pc__lanes_make(&l.lanes, graph) : PC_OK;
    for (int i = 0; i < n && share && status == PC_OK; i++)
        put(&l, order[i]);
    for (int i = 0; i < n && !share; i++) {
        order[i]->offset = l.bytes;
        l.bytes += rounded(order[i]->bytes);
    }
    *bytes = l.bytes;
    pc__lanes_free(&l.lanes);
    pc__free(order);
    return status;
}

/* --- memory --- */

static pc_status take_arena(pc_graph *graph, size_t bytes)
{
    pc__storage *lent = graph->lender ? graph->lender->arena : NULL;
    if (lent && lent->bytes >= bytes) {
        pc__storage_retain(lent);
        graph->arena = lent;
        return PC_OK;
    }
    graph->arena = pc__storage_block(graph->stream, bytes, "the temporaries of a recording");
    return graph->arena ? PC_OK : pc_error_last()->status;
}

/* What launches use: what is left of the nodes' storages, and the arena. */
static pc_status note_uses(pc_graph *graph, pc__plan *plan)
{
    pc_graph noted = {0};
    pc_status status = PC_OK;
    for (int i = 0; i < plan->count && status == PC_OK; i++) {
        const pc__plan_node *node = &plan->node[i];
        for (int k = 0; k < (node->gone ? 0 : pc__node_uses(node)) && status == PC_OK; k++) {
            const pc__plan_storage *s = &plan->storage[node->number[k]];
            const bool made = s->place != PC__PLACE_BEFORE && s->place != PC__PLACE_SHADOW;
            if (s->place != PC__PLACE_TEMPORARY || s->storage->capacity)
                status = pc__graph_note(&noted, s->storage,
                                        (pc__graph_use){.write = pc__node_writes(node, k),
                                                        .made = made,
                                                        .renews = made || pc__node_renews(node, k)});
        }
    }
    if (status == PC_OK && graph->arena)
        status = pc__graph_note(&noted, graph->arena, (pc__graph_use){.write = true, .made = true, .renews = true});
    if (status != PC_OK) {
        pc__graph_forget(&noted);
        return status;
    }
    pc__graph_forget(graph);
    graph->uses = noted.uses;
    graph->use_count = noted.use_count;
    graph->use_room = noted.use_room;
    return PC_OK;
}

static pc_status give(pc_graph *graph, pc__plan_storage *s)
{
    if (!s->used || (s->place != PC__PLACE_KEPT && s->place != PC__PLACE_TEMPORARY))
        return PC_OK;
    if (s->place == PC__PLACE_KEPT || pc__cache_is_off()) /* then checkers of memory see each by itself */
        return pc__storage_ensure(s->storage, graph->stream);
    s->storage->data = (char *)graph->arena->data + s->offset;
    atomic_store_explicit(&s->storage->planned, false, memory_order_release);
    return PC_OK;
}

pc_status pc__plan_memory(pc_graph *graph)
{
    pc__plan *plan = graph->plan;
    size_t bytes = 0;
    see_uses(plan);
    for (int i = 0; i < plan->storages; i++)
        if (!plan->storage[i].used && plan->storage[i].place != PC__PLACE_TEMPORARY)
            plan->storage[i].place = PC__PLACE_NONE;
    PC__TRY(lay_out(graph, plan, &bytes));
    if (bytes && !pc__cache_is_off())
        PC__TRY(take_arena(graph, bytes));
    for (int i = 0; i < plan->storages; i++)
        PC__TRY(give(graph, &plan->storage[i]));
    return note_uses(graph, plan);
}
