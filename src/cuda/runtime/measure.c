/* measure.c: times of ways, each the median of several launches of its graph. */
#include "cuda/runtime/measure.h"

#include <math.h>
#include <stdlib.h>

enum { ROUNDS = 5, RUNS = 4, MORE = 32 /* runs a graph */ };
#define MARGIN 0.97 /* of the first one's time: what others must stay below */
#define SHORT 20.0  /* microseconds a run: the launch of a graph is no small part of a few such */
#define SLOW 4.0    /* times the fastest: not worth more than its first run */

typedef struct clock_pair {
    cudaEvent_t start, end;
} clock_pair;

static int by_size(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* So many runs of it as one graph, so that no launch waits for the host. NULL with PC_OK where it cannot be captured. */
static pc_status capture(const pc__trial *t, int way, int runs, cudaGraphExec_t *made)
{
    const cudaStream_t queue = pc__cuda_queue(t->stream);
    cudaGraph_t graph = NULL;
    bool fine = true;
    pc_status status = PC_OK;
    *made = NULL;
    PC__TRY(pc__cuda_check(cudaStreamBeginCapture(queue, cudaStreamCaptureModeRelaxed), t->what));
    for (int i = 0; i < runs && fine && status == PC_OK; i++)
        status = t->run(t->stream, t->context, way, &fine);
    const cudaError_t ended = cudaStreamEndCapture(queue, &graph);
    if (status == PC_OK && fine && ended == cudaSuccess && cudaGraphInstantiate(made, graph, 0) != cudaSuccess)
        *made = NULL;
    if (graph)
        (void)cudaGraphDestroy(graph);
    (void)cudaGetLastError(); /* of a capture that a library broke off */
    return status;
}

static pc_status begin(const pc__trial *t, const clock_pair *clock)
{
    return pc__cuda_check(cudaEventRecord(clock->start, pc__cuda_queue(t->stream)), t->what);
}

static pc_status end(const pc__trial *t, const clock_pair *clock, float *milliseconds)
{
    PC__TRY(pc__cuda_check(cudaEventRecord(clock->end, pc__cuda_queue(t->stream)), t->what));
    PC__TRY(pc__cuda_check(cudaEventSynchronize(clock->end), t->what));
    return pc__cuda_check(cudaEventElapsedTime(milliseconds, clock->start, clock->end), t->what);
}

/* The median of rounds behind the first, in microseconds a run. */
static pc_status time_graph(const pc__trial *t, const clock_pair *clock, cudaGraphExec_t graph, int runs,
                            double *microseconds)
{
    float times[ROUNDS], milliseconds = 0;
    for (int round = -1; round < ROUNDS; round++) {
        PC__TRY(begin(t, clock));
        PC__TRY(pc__cuda_check(cudaGraphLaunch(graph, pc__cuda_queue(t->stream)), t->what));
        PC__TRY(end(t, clock, &milliseconds));
        if (round >= 0)
            times[round] = milliseconds;
    }
    qsort(times, ROUNDS, sizeof *times, by_size);
    *microseconds = (double)times[ROUNDS / 2] * 1e3 / runs;
    return PC_OK;
}

static pc_status time_runs(const pc__trial *t, const clock_pair *clock, int way, int runs, double *microseconds)
{
    cudaGraphExec_t graph = NULL;
    *microseconds = (double)INFINITY;
    PC__TRY(capture(t, way, runs, &graph));
    if (!graph)
        return PC_OK;
    const pc_status status = time_graph(t, clock, graph, runs, microseconds);
    (void)cudaGraphExecDestroy(graph);
    return status;
}

/* What is loaded, and what memory is taken, when it first runs happens before anything is timed. */
static pc_status time_of(const pc__trial *t, const clock_pair *clock, int way, double fastest, double *microseconds)
{
    float once = 0;
    bool fine = true;
    *microseconds = (double)INFINITY;
    PC__TRY(t->run(t->stream, t->context, way, &fine));
    if (!fine)
        return PC_OK;
    PC__TRY(begin(t, clock));
    PC__TRY(t->run(t->stream, t->context, way, &fine));
    PC__TRY(end(t, clock, &once));
    if ((double)once * 1e3 > SLOW * PC__MAX(fastest, SHORT)) {
        *microseconds = (double)once * 1e3;
        return PC_OK;
    }
    PC__TRY(time_runs(t, clock, way, RUNS, microseconds));
    return *microseconds < SHORT ? time_runs(t, clock, way, MORE, microseconds) : PC_OK;
}

pc_status pc__cuda_measure(const pc__trial *t, int count, double *microseconds)
{
    clock_pair clock = {NULL, NULL};
    double fastest = (double)INFINITY;
    pc_status status = pc__cuda_check(cudaEventCreate(&clock.start), t->what);
    if (status == PC_OK)
        status = pc__cuda_check(cudaEventCreate(&clock.end), t->what);
    for (int i = 0; i < count && status == PC_OK; i++) {
        status = time_of(t, &clock, i, fastest, &microseconds[i]);
        fastest = PC__MIN(fastest, microseconds[i]);
    }
    if (clock.start)
        (void)cudaEventDestroy(clock.start);
    if (clock.end)
        (void)cudaEventDestroy(clock.end);
    (void)cudaStreamSynchronize(pc__cuda_queue(t->stream));
    return status;
}

int pc__cuda_fastest(const double *microseconds, int count)
{
    int best = 0;
    for (int i = 1; i < count; i++)
        if (microseconds[i] < (best ? microseconds[best] : MARGIN * microseconds[0]))
            best = i;
    return count > 0 && isfinite(microseconds[best]) ? best : -1;
}
