/* collective.c: all-reduces between ranks of one process: a call, and in a recording. Peer: bench/peers/ranks.py.
 *
 * Usage: bench.collective DEVICES [LARGEST]
 * DEVICES: cuda*2. For each size a line of JSON: microseconds, and bus bandwidth (2 (n - 1) / n of the bytes, as nccl-tests
 * counts it). */
#include "ranks.h"
#include "steps.h"

enum { ROUNDS = 9, RECORDED = 20 };

typedef struct sizes {
    int64_t least, most;
} sizes;

static double median(double *times)
{
    qsort(times, ROUNDS, sizeof *times, ascending);
    return times[ROUNDS / 2];
}

static pc_status calls_timed(bench_rank *r, pc_tensor *t, int calls, double *us)
{
    double times[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        if (pc_group_barrier(r->group) != PC_OK)
            return PC_ERR_STATE;
        const double start = now_ms();
        for (int i = 0; i < calls; i++)
            if (pc_group_all_reduce(r->group, t, PC_GROUP_MAX) != PC_OK)
                return PC_ERR_STATE;
        if (pc_device_synchronize(r->device) != PC_OK)
            return PC_ERR_STATE;
        times[round] = (now_ms() - start) / calls * 1e3;
    }
    *us = median(times);
    return PC_OK;
}

static pc_status graph_timed(bench_rank *r, pc_tensor *t, int launches, double *us)
{
    double times[ROUNDS];
    pc_stream *stream = pc_group_stream(r->group, r->device);
    pc_status status = pc_graph_begin(stream);
    for (int i = 0; i < RECORDED && status == PC_OK; i++)
        status = pc_group_all_reduce(r->group, t, PC_GROUP_MAX);
    pc_graph *graph = pc_graph_end(stream);
    status = graph ? status : PC_ERR_STATE;
    for (int round = 0; round < ROUNDS && status == PC_OK; round++) {
        status = pc_group_barrier(r->group);
        const double start = now_ms();
        for (int i = 0; i < launches && status == PC_OK; i++)
            status = pc_graph_launch(graph, stream);
        if (status == PC_OK)
            status = pc_device_synchronize(r->device);
        times[round] = (now_ms() - start) / launches / RECORDED * 1e3;
    }
    *us = median(times);
    pc_graph_free(graph);
    return status;
}

static pc_status work(bench_rank *r)
{
    const sizes *s = r->user;
    pc_status status = PC_OK;
    for (int64_t bytes = s->least; bytes <= s->most && status == PC_OK; bytes *= 4)
        PC_SCOPE {
            double call = 0, graph = 0;
            const int n = bytes <= 1 << 20 ? 200 : bytes <= 1 << 26 ? 20 : 3;
            pc_tensor *t = pc_ones(PC_SHAPE(bytes / 4), PC_F32, r->device);
            status = pc_group_all_reduce(r->group, t, PC_GROUP_MAX); /* what opens and connects */
            if (status == PC_OK)
                status = calls_timed(r, t, n, &call);
            if (status == PC_OK)
                status = graph_timed(r, t, (n + RECORDED - 1) / RECORDED, &graph);
            const double best = call < graph ? call : graph;
            if (status == PC_OK && r->rank == 0)
                printf("{\"bytes\": %lld, \"call_us\": %.2f, \"graph_us\": %.2f, \"bus_gb_per_second\": %.1f}\n",
                       (long long)bytes, call, graph, 2.0 * (r->size - 1) / r->size * (double)bytes / best * 1e-3);
        }
    return status;
}

int main(int argc, char **argv)
{
    bench_rank ranks[BENCH_RANKS];
    sizes s = {4096, argc > 2 ? atoll(argv[2]) : 1 << 30};
    if (argc < 2) {
        fprintf(stderr, "usage: bench.collective DEVICES [LARGEST]\n");
        return 2;
    }
    return bench_ranks_run(argv[1], ranks, work, &s) ? 0 : 1;
}
