/* graph.c: recording calls on a CPU stream and running them again. A recorded call keeps its tensors alive, so that the
 * memory it works on is still there, and still the same, at every launch. */
#include "cpu/cpu.h"
#include "tensor/call.h"

typedef struct step {
    pc__kernel kernel;
    pc_call call;
    pc_tensor **in;
    void *attributes;
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
    step s = {.kernel = kernel, .call = *call};
    s.in = pc__calloc((size_t)call->n_in + 1, sizeof *s.in);
    s.attributes = pc__alloc(call->attribute_bytes);
    if (!s.in || !s.attributes) {
        pc__free(s.in);
        pc__free(s.attributes);
        return PC_ERR_MEMORY;
    }
    if (call->attribute_bytes)
        memcpy(s.attributes, call->attributes, call->attribute_bytes);
    for (int i = 0; i < call->n_in; i++)
        s.in[i] = pc_tensor_retain(call->in[i]);
    for (int i = 0; i < call->n_out; i++)
        (void)pc_tensor_retain(call->out[i]);
    s.call.in = s.in;
    s.call.attributes = s.attributes;
    r->steps[r->count++] = s;
    return PC_OK;
}

pc_status pc__cpu_submit(pc_stream *stream, pc__kernel kernel, const struct pc_call *call)
{
    return stream->recording ? record(stream->recording->implementation, kernel, call) : kernel(stream, call);
}

pc_status pc__cpu_graph_launch(pc_graph *graph, pc_stream *stream)
{
    const recording *r = graph->implementation;
    for (int i = 0; i < r->count; i++)
        PC__TRY(r->steps[i].kernel(stream, &r->steps[i].call));
    return PC_OK;
}

void pc__cpu_graph_close(pc_graph *graph)
{
    recording *r = graph->implementation;
    for (int i = 0; i < r->count; i++) {
        step *s = &r->steps[i];
        for (int k = 0; k < s->call.n_in; k++)
            pc_tensor_free(s->in[k]);
        for (int k = 0; k < s->call.n_out; k++)
            pc_tensor_free(s->call.out[k]);
        pc__free(s->in);
        pc__free(s->attributes);
    }
    pc__free(r->steps);
    pc__free(r);
}
