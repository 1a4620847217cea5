/* graph.c: recording calls on a CPU stream and running them again. */
#include "cpu/cpu.h"
#include "tensor/freeze.h"

typedef struct step {
    pc__kernel kernel;
    pc_call *call;
} step;

typedef struct recording {
    step *steps;
    int count, capacity;
} recording;

pc_status pc__cpu_graph_begin(pc_graph *graph, pc_stream *stream)
{
    (void)stream;
    graph->implementation = pc__calloc(1, sizeof(recording));
    return graph->implementation ? PC_OK : PC_ERR_MEMORY;
}

pc_status pc__cpu_graph_end(pc_graph *graph, pc_stream *stream)
{
    (void)graph, (void)stream;
    return PC_OK;
}

static pc_status record(recording *r, pc__kernel kernel, const pc_call *call)
{
    PC__TRY(pc__grow((void **)&r->steps, &r->capacity, r->count, sizeof *r->steps));
    step s = {kernel, pc__call_freeze(call, 0)};
    if (!s.call)
        return PC_ERR_MEMORY;
    r->steps[r->count++] = s;
    return PC_OK;
}

pc_status pc__cpu_submit(pc_stream *stream, pc__kernel kernel, const pc_call *call, const pc__work *work)
{
    (void)work;
    pc_graph *graph = pc__graph_of(stream);
    return graph ? record(graph->implementation, kernel, call) : kernel(stream, call);
}

pc_status pc__cpu_graph_launch(pc_graph *graph, pc_stream *stream, const pc__work *work)
{
    (void)work;
    const recording *r = graph->implementation;
    for (int i = 0; i < r->count; i++)
        PC__TRY(r->steps[i].kernel(stream, r->steps[i].call));
    return PC_OK;
}

pc_status pc__cpu_graph_update(pc_graph *graph, pc_graph *newer)
{
    recording *a = graph->implementation, *b = newer->implementation;
    if (a->count != b->count)
        return pc__fail(PC_ERR_SHAPE, "pc_graph_update: the graph has %d ops, the newer one %d", a->count, b->count);
    for (int i = 0; i < a->count; i++)
        PC__TRY(pc__call_same("pc_graph_update", i, a->steps[i].call, b->steps[i].call));
    graph->implementation = b;
    newer->implementation = a;
    return PC_OK;
}

void pc__cpu_graph_close(pc_graph *graph)
{
    recording *r = graph->implementation;
    for (int i = 0; i < r->count; i++)
        pc__free(r->steps[i].call);
    pc__free(r->steps);
    pc__free(r);
}
