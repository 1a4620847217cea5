/* build.c: from a recorded plan to what the backend launches. */
#include "plan/plan.h"

static void rewrite(pc_graph *graph)
{
    pc__plan *plan = graph->plan;
    const pc__backend *backend = graph->backend;
    if (pc__plan_allows(PC__PASS_DUPLICATES))
        pc__pass_duplicates(plan);
    if (pc__plan_allows(PC__PASS_DEAD))
        pc__pass_dead(plan);
    if (pc__plan_allows(PC__PASS_SHADOWS))
        pc__pass_shadows(graph);
    if (pc__plan_allows(PC__PASS_EPILOGUES))
        pc__pass_epilogues(plan, backend);
    if (pc__plan_allows(PC__PASS_GELU))
        pc__pass_gelu(plan, backend);
    if (pc__plan_allows(PC__PASS_NORMS))
        pc__pass_norms(plan, backend);
    if (pc__plan_allows(PC__PASS_COPIES))
        pc__pass_copies(plan);
    if (pc__plan_allows(PC__PASS_PLACES))
        pc__pass_places(plan);
    if (pc__plan_allows(PC__PASS_REGIONS))
        pc__pass_regions(plan, backend);
    if (pc__plan_allows(PC__PASS_CASTS))
        pc__pass_casts(plan, backend);
    if (pc__plan_allows(PC__PASS_PITCHES))
        pc__pass_pitches(plan, backend);
    if (pc__plan_allows(PC__PASS_LOSSES))
        pc__pass_losses(plan, backend);
    if (pc__plan_allows(PC__PASS_BRANCHES))
        pc__pass_branches(graph);
    if (pc__plan_allows(PC__PASS_ASIDE))
        pc__pass_aside(graph);
}

pc__settings pc__settings_set(pc__settings wanted)
{
    return (pc__settings){pc_matmul_precision_set(wanted.precision), pc_choice_set(wanted.choice)};
}

static pc_status submit(const pc__backend *backend, const pc__plan_node *node)
{
    const pc__settings before = pc__settings_set(node->settings);
    const pc_status status = backend->submit(node->stream, node->kernel, node->call, &node->work);
    (void)pc__settings_set(before);
    return status;
}

static pc_status announce(const pc__backend *backend, const pc__plan_node *node)
{
    const pc__settings before = pc__settings_set(node->settings);
    const pc_status status = backend->graph_prepare(node->stream, node->call);
    (void)pc__settings_set(before);
    return status;
}

/* The backend gets its node where nobody else can be at its stream. */
static pc_status give_to_backend(pc_graph *graph, const pc__plan_node *node)
{
    const pc__backend *backend = graph->backend;
    pc_stream *stream = node->stream;
    switch (node->kind) {
    case PC__NODE_CALL:
        return submit(backend, node);
    case PC__NODE_COPY:
        return backend->copy(stream, (char *)node->to.storage->data + node->to.offset,
                             pc__storage_place(node->to.storage), (char *)node->from.storage->data + node->from.offset,
                             pc__storage_place(node->from.storage), node->bytes, &node->work);
    case PC__NODE_FUNCTION:
        return backend->host_call(stream, node->function, node->context, &node->work);
    default:
        return backend->graph_wait ? backend->graph_wait(graph, stream, node->other) : PC_OK;
    }
}

static void note_writes(pc__plan *plan, const pc__plan_node *node)
{
    for (int i = 0; i < pc__node_uses(node); i++)
        if (pc__node_writes(node, i)) {
            plan->storage[node->number[i]].writer = node->stream;
            plan->storage[node->number[i]].wrote = node->work.ticket;
        }
}

/* An error says which call it is about. */
static pc_status name(const pc__plan_node *node, pc_status status)
{
    char site[PC__SITE_TEXT], words[PC__SITE_TEXT + 80];
    snprintf(words, sizeof words, "pc_graph_end: %.60s (%s): ", node->work.name, pc__site_text(node->work.site, site));
    pc__error_before(words, 0);
    return status;
}

static pc_status tell_aside(pc_graph *graph, pc__aside what, int run)
{
    pthread_mutex_lock(&graph->stream->lock);
    const pc_status status = graph->backend->graph_aside(graph, graph->stream, what, run);
    pthread_mutex_unlock(&graph->stream->lock);
    return status;
}

/* From one run, or none, to another. */
static pc_status turn_aside(pc_graph *graph, int *run, int to)
{
    const int from = *run;
    *run = to;
    if (from && from != to)
        PC__TRY(tell_aside(graph, PC__ASIDE_END, from));
    return to && from != to ? tell_aside(graph, PC__ASIDE_BEGIN, to) : PC_OK;
}

static pc_status build_node(pc_graph *graph, pc__plan_node *node)
{
    pthread_mutex_lock(&node->stream->lock);
    const pc_status status = give_to_backend(graph, node);
    if (node->kind == PC__NODE_CALL && graph->backend->note)
        node->note = graph->backend->note(node->stream);
    pthread_mutex_unlock(&node->stream->lock);
    return status == PC_OK ? PC_OK : name(node, status);
}

static pc_status build_nodes(pc_graph *graph, pc__plan *plan)
{
    int run = 0;
    for (int i = 0; i < plan->count; i++) {
        pc__plan_node *node = &plan->node[i];
        if (node->gone)
            continue;
        plan->at = node;
        PC__TRY(turn_aside(graph, &run, node->aside));
        if (node->meets)
            PC__TRY(tell_aside(graph, PC__ASIDE_MEET, node->meets));
        PC__TRY(build_node(graph, node));
        note_writes(plan, node);
    }
    return turn_aside(graph, &run, 0);
}

static pc_status prepare(pc_graph *graph)
{
    pc__plan *plan = graph->plan;
    pc_status status = PC_OK;
    for (int i = 0; i < plan->count && graph->backend->graph_prepare && status == PC_OK; i++) {
        const pc__plan_node *node = &plan->node[i];
        if (node->gone || node->kind != PC__NODE_CALL)
            continue;
        plan->at = node;
        pthread_mutex_lock(&node->stream->lock);
        status = announce(graph->backend, node);
        pthread_mutex_unlock(&node->stream->lock);
        if (status != PC_OK)
            return name(node, status);
    }
    return status;
}

static pc_status enter(pc_graph *graph, pc_stream *stream, pc_status (*slot)(pc_graph *graph, pc_stream *stream))
{
    pthread_mutex_lock(&stream->lock);
    const pc_status status = slot ? slot(graph, stream) : PC_OK;
    pthread_mutex_unlock(&stream->lock);
    return status;
}

static pc_status build(pc_graph *graph)
{
    const pc__backend *backend = graph->backend;
    pc_status status = enter(graph, graph->stream, backend->graph_begin);
    if (status != PC_OK)
        return status;
    for (int i = 0; i < graph->other_count && status == PC_OK; i++)
        status = enter(graph, graph->others[i], backend->graph_join);
    if (status == PC_OK && graph->plan)
        status = build_nodes(graph, graph->plan);
    const pc_status ended = enter(graph, graph->stream, backend->graph_end);
    return status == PC_OK ? ended : status;
}

pc_status pc__plan_build(pc_graph *graph)
{
    if (graph->plan) {
        PC__TRY(pc__plan_survey(graph));
        rewrite(graph);
        PC__TRY(pc__plan_memory(graph));
    }
    pc_status status = graph->plan ? prepare(graph) : PC_OK;
    if (status == PC_OK)
        status = build(graph);
    if (graph->plan) /* after the backend, which says how it does what; what failed is wanted most */
        pc__plan_print(graph);
    return status;
}

uint64_t pc__plan_wrote(const pc_stream *stream, const pc__storage *storage)
{
    const pc__plan *plan = pc__graph_of(stream)->plan;
    for (int i = 0; i < pc__node_uses(plan->at); i++)
        if (pc__node_storage(plan->at, i) == storage) {
            const pc__plan_storage *s = &plan->storage[plan->at->number[i]];
            return !s->writer ? 0 : s->writer == stream ? s->wrote : UINT64_MAX;
        }
    return UINT64_MAX;
}
