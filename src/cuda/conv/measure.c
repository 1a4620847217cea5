/* measure.c: which way of a convolution's product is the fastest, by events around a graph of several runs: as a
 * recorded step would have it. What they write is memory of the measurement's own. */
#include "cuda/conv/by_cudnn.h"
#include "cuda/conv/rows.h"

#if PC__HAVE_CUDNN

#include "cuda/runtime/state.h"

#include <math.h>
#include <stdlib.h>

enum { ROUNDS = 5, RUNS = 4 };
#define MARGIN 0.9 /* of our time: what cuDNN must stay below */

typedef struct trial {
    pc_stream *stream;
    const pc_call *call;
    pc__conv_piece piece; /* with results of its own */
    const pc__row *own;   /* NULL: there are no kernels of ours */
    void *scratch;
    cudaEvent_t start, end;
} trial;

/* way: NULL for our kernels. *fine: it works. */
static pc_status run(const trial *t, pc__conv_way *way, bool *fine)
{
    *fine = true;
    if (way)
        return pc__conv_cudnn(t->stream, t->call, &t->piece, way, t->scratch, fine);
    PC__TRY(t->own->run(t->stream, t->call, &t->piece, t->scratch, fine));
    return pc__cuda_launched(t->call);
}

static int by_size(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* RUNS of it as one graph, so that no launch waits for the host. NULL with PC_OK where it cannot be captured. */
static pc_status capture(const trial *t, pc__conv_way *way, cudaGraphExec_t *made)
{
    const cudaStream_t queue = pc__cuda_queue(t->stream);
    cudaGraph_t graph = NULL;
    bool fine = true;
    pc_status status = PC_OK;
    *made = NULL;
    PC__TRY(pc__cuda_check(cudaStreamBeginCapture(queue, cudaStreamCaptureModeRelaxed), "measuring a convolution"));
    for (int i = 0; i < RUNS && fine && status == PC_OK; i++)
        status = run(t, way, &fine);
    const cudaError_t ended = cudaStreamEndCapture(queue, &graph);
    if (status == PC_OK && fine && ended == cudaSuccess && cudaGraphInstantiate(made, graph, 0) != cudaSuccess)
        *made = NULL;
    if (graph)
        (void)cudaGraphDestroy(graph);
    (void)cudaGetLastError(); /* of a capture that cuDNN broke off */
    return status;
}

/* The median of rounds behind the first, in microseconds a run. */
static pc_status time_graph(const trial *t, cudaGraphExec_t graph, double *microseconds)
{
    const cudaStream_t queue = pc__cuda_queue(t->stream);
    float times[ROUNDS], milliseconds = 0;
    for (int round = -1; round < ROUNDS; round++) {
        PC__TRY(pc__cuda_check(cudaEventRecord(t->start, queue), "measuring a convolution"));
        PC__TRY(pc__cuda_check(cudaGraphLaunch(graph, queue), "measuring a convolution"));
        PC__TRY(pc__cuda_check(cudaEventRecord(t->end, queue), "measuring a convolution"));
        PC__TRY(pc__cuda_check(cudaEventSynchronize(t->end), "measuring a convolution"));
        PC__TRY(pc__cuda_check(cudaEventElapsedTime(&milliseconds, t->start, t->end), "measuring a convolution"));
        if (round >= 0)
            times[round] = milliseconds;
    }
    qsort(times, ROUNDS, sizeof *times, by_size);
    *microseconds = (double)times[ROUNDS / 2] * 1e3 / RUNS;
    return PC_OK;
}

/* INFINITY for a way that cuDNN refuses, or that no graph takes. What is loaded when it first runs is loaded here. */
static pc_status time_of(const trial *t, pc__conv_way *way, double *microseconds)
{
    cudaGraphExec_t graph = NULL;
    bool fine = true;
    *microseconds = (double)INFINITY;
    PC__TRY(run(t, way, &fine));
    if (!fine)
        return PC_OK;
    PC__TRY(capture(t, way, &graph));
    if (!graph)
        return PC_OK;
    const pc_status status = time_graph(t, graph, microseconds);
    (void)cudaGraphExecDestroy(graph);
    return status;
}

static pc_status time_all(const trial *t, pc__conv_way *ways, int count, int *best, double *told)
{
    *best = 0;
    told[0] = (double)INFINITY;
    if (t->own)
        PC__TRY(time_of(t, NULL, &told[0]));
    for (int i = 1; i <= count; i++) {
        PC__TRY(time_of(t, &ways[i - 1], &told[i]));
        if (told[i] < (*best ? told[*best] : MARGIN * told[0]))
            *best = i;
    }
    return PC_OK;
}

pc_status pc__conv_measure(pc_stream *stream, const pc_call *call, const pc__conv_piece *piece, pc__conv_way *ways,
                           int count, int *best, double *told)
{
    const size_t result = pc__cuda_whole(pc__conv_result_bytes(piece));
    const size_t bias = pc__cuda_whole((size_t)piece->s.o * pc_dtype_size((pc_dtype)piece->s.dtype));
    const pc__row *own = pc__conv_own_row(stream, piece);
    size_t scratch = own && own->workspace ? own->workspace(piece) : 0;
    void *memory = NULL;
    trial t = {.stream = stream, .call = call, .piece = *piece, .own = own};
    for (int i = 0; i < count; i++)
        scratch = PC__MAX(scratch, pc__conv_cudnn_scratch(piece, &ways[i]));
    *best = -1;
    pc_status status = pc__cuda_allocate(stream->device.index, result + bias + scratch, &memory);
    if (status != PC_OK)
        return status == PC_ERR_MEMORY ? PC_OK : status; /* too little is no error: it is measured another time */
    t.piece.result = memory;
    t.piece.dbias = piece->dbias ? (char *)memory + result : NULL;
    t.scratch = (char *)memory + result + bias;
    status = pc__cuda_check(cudaEventCreate(&t.start), "measuring a convolution");
    if (status == PC_OK)
        status = pc__cuda_check(cudaEventCreate(&t.end), "measuring a convolution");
    if (status == PC_OK)
        status = time_all(&t, ways, count, best, told);
    if (t.start)
        (void)cudaEventDestroy(t.start);
    if (t.end)
        (void)cudaEventDestroy(t.end);
    (void)cudaStreamSynchronize(pc__cuda_queue(stream));
    pc__cuda_release(stream->device.index, memory, result + bias + scratch);
    return status;
}

#endif
