/* graph.c: a graph is a list of calls and functions, run one after the other. */
#include "cpu/cpu.h"
#include "device/trace.h"
#include "tensor/freeze.h"

typedef struct step {
    pc__kernel kernel;
    pc_call *call; /* NULL: of a function */
    void (*function)(void *context);
    void *context;
    pc__site site;
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

static pc_status record(recording *r, const step *s)
{
    PC__TRY(pc__grow((void **)&r->steps, &r->capacity, r->count, sizeof *r->steps));
    r->steps[r->count++] = *s;
    return PC_OK;
}

static pc_status record_call(recording *r, pc__kernel kernel, const pc_call *call, pc__site site)
{
    const step s = {.kernel = kernel, .call = pc__call_freeze(call, 0), .site = site};
    const pc_status status = s.call ? record(r, &s) : PC_ERR_MEMORY;
    if (status != PC_OK)
        pc__free(s.call);
    return status;
}

static pc_status run(pc__kernel kernel, pc_stream *stream, const pc_call *call)
{
    const pc_status status = kernel(stream, call);
    if (status != PC_OK)
        pc__error_here();
    return status;
}

pc_status pc__cpu_submit(pc_stream *stream, pc__kernel kernel, const pc_call *call, const pc__work *work)
{
    pc_graph *graph = pc__graph_of(stream);
    return graph ? record_call(graph->implementation, kernel, call, work->site) : run(kernel, stream, call);
}

pc_status pc__cpu_host_call(pc_stream *stream, void (*function)(void *context), void *context, const pc__work *work)
{
    (void)work;
    pc_graph *graph = function ? pc__graph_of(stream) : NULL;
    if (graph)
        return record(graph->implementation, &(step){.function = function, .context = context});
    if (function)
        function(context);
    return PC_OK;
}

/* In the timeline as if it had been called now, within its launch. */
static pc_status run_call(const step *s, pc_stream *stream)
{
    const int64_t started = pc__trace_now();
    const pc_status status = run(s->kernel, stream, s->call);
    pc__trace_op_done(s->call->op->name, NULL, started, stream->device, stream->id, s->site);
    return status;
}

pc_status pc__cpu_graph_launch(pc_graph *graph, pc_stream *stream, const pc__work *work)
{
    (void)work;
    const recording *r = graph->implementation;
    for (int i = 0; i < r->count; i++)
        if (r->steps[i].call)
            PC__TRY(run_call(&r->steps[i], stream));
        else
            r->steps[i].function(r->steps[i].context);
    return PC_OK;
}

pc_status pc__cpu_graph_update(pc_graph *graph, pc_graph *newer)
{
    recording *a = graph->implementation, *b = newer->implementation;
    if (a->count != b->count)
        return pc__fail(PC_ERR_SHAPE, "pc_graph_update: the graph has %d ops, the newer one %d", a->count, b->count);
    for (int i = 0; i < a->count; i++) {
        if (!a->steps[i].call != !b->steps[i].call)
            return pc__fail(PC_ERR_SHAPE, "pc_graph_update: number %d is an op in one and a function in the other", i);
        if (a->steps[i].call)
            PC__TRY(pc__call_same("pc_graph_update", i, a->steps[i].call, b->steps[i].call));
    }
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
