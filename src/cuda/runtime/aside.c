/* aside.c: what a recording does beside its own stream (plan/aside.c): a branch that no stream of the program has. Its kernels
 * are less urgent than those of the stream. */
#include "cuda/runtime/state.h"

static pc_status fork_off(pc__cuda_graph *g, const pc_stream *stream)
{
    PC__TRY(pc__cuda_check(cudaEventRecord(g->fork, pc__cuda_queue(stream)), "a recording"));
    return pc__cuda_check(cudaStreamWaitEvent(g->aside->capture, g->fork, 0), "a recording");
}

/* What is held back stays with the branch where it is. */
static pc_status turn(pc_stream *stream, pc__cuda_branch *from, pc__cuda_branch *to)
{
    pc__cuda_stream *face = &pc__cuda_state_of(stream)->face;
    PC__TRY(pc__cuda_check(pc__cuda_let_go(stream), "a recording"));
    from->started = face->started, from->complete = face->complete, from->met = face->met;
    pc__cuda_branch_enter(stream, to);
    face->started = to->started, face->complete = to->complete, face->met = to->met;
    return PC_OK;
}

static pc_status begin(pc__cuda_graph *g, pc_stream *stream)
{
    if (!g->aside)
        PC__TRY(pc__cuda_branch_make(g, stream, &g->aside));
    PC__TRY(fork_off(g, stream));
    PC__TRY(turn(stream, g->branch[0], g->aside));
    pc__cuda_state_of(stream)->face.met = true;
    return PC_OK;
}

/* Each run has an event behind it. */
static pc_status end(pc__cuda_graph *g, pc_stream *stream)
{
    PC__TRY(pc__grow((void **)&g->run, &g->run_room, g->runs, sizeof *g->run));
    PC__TRY(turn(stream, g->aside, g->branch[0]));
    PC__TRY(pc__cuda_check(cudaEventCreateWithFlags(&g->run[g->runs], cudaEventDisableTiming), "a recording"));
    return pc__cuda_check(cudaEventRecord(g->run[g->runs++], g->aside->capture), "a recording");
}

static pc_status meet(pc__cuda_graph *g, pc_stream *stream, int run)
{
    if (run <= g->met)
        return PC_OK;
    PC__TRY(pc__cuda_check(cudaStreamWaitEvent(pc__cuda_queue(stream), g->run[run - 1], 0), "a recording"));
    pc__cuda_state_of(stream)->face.met = true;
    g->met = run;
    return PC_OK;
}

pc_status pc__cuda_asides_meet(pc__cuda_graph *g, pc_stream *stream)
{
    return meet(g, stream, g->runs);
}

pc_status pc__cuda_graph_aside(pc_graph *graph, pc_stream *stream, pc__aside what, int run)
{
    pc__cuda_graph *g = graph->implementation;
    PC__TRY(pc__cuda_enter(g->index));
    return what == PC__ASIDE_BEGIN ? begin(g, stream) : what == PC__ASIDE_END ? end(g, stream) : meet(g, stream, run);
}

void pc__cuda_asides_end(pc__cuda_graph *g)
{
    for (int i = 0; i < g->runs; i++)
        (void)cudaEventDestroy(g->run[i]);
    pc__free(g->run);
    g->run = NULL;
    g->runs = g->run_room = 0;
}
