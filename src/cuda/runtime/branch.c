/* branch.c: the branches of a recording. Streams of the program that wait for nothing of each other are captured side
 * by side, and a launch runs them so. The branch of the stream that the recording began on goes first where both could
 * and their streams are of one priority below the greatest: what joins it is what it need not wait for.
 *
 * Work behind that of two branches is never started early (shared/dependent_launch.cuh): which of them it then waits for is not for one
 * queue to say. */
#include "cuda/runtime/state.h"

static pc__cuda_stream *face_of(const pc_stream *stream)
{
    return &pc__cuda_state_of(stream)->face;
}

static pc_status start(pc__cuda_graph *g, pc__cuda_branch *b, const pc_stream *stream)
{
    const bool first = b == g->branch[0];
    const int priority = pc__cuda_priority(stream, first ? 1 : 0);
    PC__TRY(pc__cuda_check(cudaStreamCreateWithPriority(&b->capture, cudaStreamNonBlocking, priority), "a recording"));
    PC__TRY(pc__cuda_counters_new(&b->counters, b->capture, "a recording"));
    if (!first)
        return PC_OK;
    PC__TRY(pc__cuda_check(cudaEventCreateWithFlags(&g->fork, cudaEventDisableTiming), "a recording"));
    return pc__cuda_check(cudaStreamBeginCapture(b->capture, cudaStreamCaptureModeRelaxed), "a recording");
}

pc_status pc__cuda_branch_make(pc__cuda_graph *g, const pc_stream *stream, pc__cuda_branch **made)
{
    PC__TRY(pc__grow((void **)&g->branch, &g->branch_room, g->branches, sizeof(pc__cuda_branch *)));
    pc__cuda_branch *b = *made = pc__calloc(1, sizeof *b);
    if (!b)
        return PC_ERR_MEMORY;
    g->branch[g->branches++] = b;
    return start(g, b, stream);
}

void pc__cuda_branch_enter(pc_stream *stream, pc__cuda_branch *b)
{
    face_of(stream)->branch = b;
    face_of(stream)->stream = b->capture;
    face_of(stream)->counters = b->counters;
}

pc_status pc__cuda_branch_open(pc__cuda_graph *g, pc_stream *stream)
{
    pc__cuda_branch *b;
    PC__TRY(pc__cuda_branch_make(g, stream, &b));
    pc__cuda_branch_enter(stream, b);
    return PC_OK;
}

void pc__cuda_branch_leave(pc_stream *stream)
{
    pc__cuda_state *s = stream->implementation;
    s->face = (pc__cuda_stream){.stream = s->own, .fault = s->faults, .counters = s->counters};
}

pc_status pc__cuda_branch_wait(pc_graph *graph, pc_stream *stream, pc_stream *other)
{
    const pc__cuda_graph *g = graph->implementation;
    PC__TRY(pc__cuda_enter(g->index));
    PC__TRY(pc__cuda_check(cudaEventRecord(g->fork, pc__cuda_queue(other)), "a recording"));
    PC__TRY(pc__cuda_check(cudaStreamWaitEvent(pc__cuda_queue(stream), g->fork, 0), "a recording"));
    face_of(stream)->met = true;
    return PC_OK;
}

void pc__cuda_branches_end(pc__cuda_graph *g)
{
    if (g->fork)
        (void)cudaEventDestroy(g->fork);
    g->fork = NULL;
    pc__cuda_asides_end(g);
    for (int i = 0; i < g->branches; i++) {
        if (g->branch[i]->capture)
            (void)cudaStreamDestroy(g->branch[i]->capture);
        g->branch[i]->capture = NULL;
    }
}

void pc__cuda_branches_free(pc__cuda_graph *g)
{
    pc__cuda_branches_end(g);
    for (int i = 0; i < g->branches; i++) {
        if (g->branch[i]->counters)
            (void)cudaFree(g->branch[i]->counters);
        pc__free(g->branch[i]);
    }
    pc__free(g->branch);
}
