/* graph.c: a recording is a list of work, done in the order in which it was recorded. */
#include "sim/sim.h"

pc_status pc__sim_graph_begin(pc_graph *graph, pc_stream *stream)
{
    (void)stream;
    pc__sim_graph *g = pc__calloc(1, sizeof *g);
    if (!g)
        return PC_ERR_MEMORY;
    g->references = 1;
    g->last = &g->first;
    graph->implementation = g;
    return PC_OK;
}

pc_status pc__sim_graph_end(pc_graph *graph, pc_stream *stream)
{
    (void)graph, (void)stream;
    return PC_OK;
}

void pc__sim_graph_add(pc__sim_graph *g, pc__sim_command *command)
{
    *g->last = command;
    g->last = &command->next;
}

static pc_status same(int i, const pc__sim_command *a, const pc__sim_command *b)
{
    if (a->kind != b->kind)
        return pc__fail(PC_ERR_SHAPE, "pc_graph_update: op %d is %s in one and %s in the other", i, a->work.name,
                        b->work.name);
    if (a->kind == PC__SIM_KERNEL)
        return pc__call_same("pc_graph_update", i, a->kernel.call, b->kernel.call);
    if (a->kind == PC__SIM_COPY && a->copy.bytes != b->copy.bytes)
        return pc__fail(PC_ERR_SHAPE, "pc_graph_update: copy %d is of %zu bytes in one and of %zu in the other", i,
                        a->copy.bytes, b->copy.bytes);
    return PC_OK;
}

pc_status pc__sim_graph_update(pc_graph *graph, pc_graph *newer)
{
    pc__sim_graph *a = graph->implementation, *b = newer->implementation;
    int n = 0;
    const pc__sim_command *x = a->first, *y = b->first;
    for (; x && y; x = x->next, y = y->next)
        PC__TRY(same(n++, x, y));
    if (x || y)
        return pc__fail(PC_ERR_SHAPE, "pc_graph_update: one graph ends after op %d, the other goes on with %s", n,
                        (x ? x : y)->work.name);
    graph->implementation = b;
    newer->implementation = a;
    return PC_OK;
}

void pc__sim_graph_drop(pc__sim_graph *g)
{
    if (--g->references)
        return;
    for (pc__sim_command *c = g->first, *next; c; c = next) {
        next = c->next;
        pc__sim_command_free(c);
    }
    pc__free(g);
}

void pc__sim_graph_close(pc_graph *graph)
{
    pthread_mutex_lock(&pc__sim.lock);
    pc__sim_graph_drop(graph->implementation);
    pthread_mutex_unlock(&pc__sim.lock);
}
