/* bench_calls.c: what small calls cost: queueing an op, a node of a recording, waiting for the device. */
#include "bench.h"

#include <math.h>

#include <paracord/ops.h>

enum { SMALL = 16, OPS = 500, SAMPLES = 21 };

typedef struct small {
    pc_tensor *a, *b;
} small;

static bool queue(void *context)
{
    const small *s = context;
    for (int i = 0; i < OPS; i++) {
        pc_tensor *c = pc_add(s->a, s->b);
        if (!c)
            return false;
        pc_tensor_free(c);
    }
    return true;
}

/* The host's time: it goes on while the device works, and waits outside the clock. */
static bool time_queueing(pc_device device, small *s, bench_result *r)
{
    double times[SAMPLES];
    for (int i = -2; i < SAMPLES; i++) {
        const double start = cli_now();
        if (!queue(s))
            return false;
        const double took = (cli_now() - start) / OPS;
        if (pc_device_synchronize(device) != PC_OK)
            return false;
        if (i < 0)
            r->first = i == -2 ? took : r->first;
        else
            times[i] = took;
    }
    r->goes = OPS;
    bench_settle(times, SAMPLES, r);
    return true;
}

/* With results that somebody holds until the recording ends: work for nobody would be left out. */
static pc_graph *record(const small *s, pc_stream *stream)
{
    if (pc_graph_begin(stream) != PC_OK)
        return NULL;
    bool fine = true;
    pc_graph *graph = NULL;
    PC_SCOPE {
        for (int i = 0; i < OPS && fine; i++)
            fine = pc_add(s->a, s->b) != NULL;
        graph = pc_graph_end(stream);
    }
    if (fine)
        return graph;
    pc_graph_free(graph);
    return NULL;
}

static bool launch_graph(void *context)
{
    return pc_graph_launch(context, NULL) == PC_OK;
}

static bool time_nodes(pc_device device, small *s, bench_result *r)
{
    pc_stream *stream = pc_stream(device);
    bool fine = stream != NULL;
    if (fine)
        PC_WITH_STREAM(stream) {
            pc_graph *graph = record(s, stream);
            fine = graph && bench_time(device, false, launch_graph, graph, r);
            fine = pc_device_synchronize(device) == PC_OK && fine;
            pc_graph_free(graph);
        }
    pc_stream_free(stream);
    r->first /= OPS;
    r->median /= OPS;
    r->low /= OPS;
    r->best /= OPS;
    r->high /= OPS;
    return fine;
}

static bool call_and_wait(void *context)
{
    const small *s = context;
    pc_tensor *c = pc_add(s->a, s->b);
    pc_tensor_free(c);
    return c && pc_device_synchronize(pc_tensor_device(s->a)) == PC_OK;
}

bool bench_calls(bench *b, const bench_row *row, bench_result *r)
{
    const pc_device device = b->p.device;
    small s = {pc_ones(PC_SHAPE(SMALL), PC_F32, device), pc_ones(PC_SHAPE(SMALL), PC_F32, device)};
    const bench_result *launch = bench_found(b, "launch.kernel");
    snprintf(r->size, sizeof r->size, "%d float32", SMALL);
    r->beside = row->kind == BENCH_LAUNCH ? b->limits.memory.rate : launch ? launch->median : NAN;
    const bool fine = s.a && s.b &&
                      (row->kind == BENCH_LAUNCH ? time_queueing(device, &s, r)
                       : row->kind == BENCH_NODE ? time_nodes(device, &s, r)
                                                 : bench_time(device, true, call_and_wait, &s, r));
    pc_tensor_free(s.a);
    pc_tensor_free(s.b);
    return fine;
}
