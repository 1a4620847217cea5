/* graph.c: building graphs. Streams of the graph's own are captured, one for each of the program's streams that takes
 * part (branch.c): what those are given meanwhile goes there.
 *
 * The capture is relaxed: the thread that records allocates memory on the way, which other modes refuse. */
#include "cuda/runtime/fills.h"
#include "cuda/runtime/state.h"
#include "tensor/freeze.h"

static void free_all(pc__cuda_graph *g)
{
    if (g->exec)
        (void)cudaGraphExecDestroy(g->exec);
    if (g->graph)
        (void)cudaGraphDestroy(g->graph);
    pc__cuda_branches_free(g);
    if (g->faults)
        (void)cudaFreeHost(g->faults);
    (void)cudaGetLastError();
    for (int i = 0; i < g->steps; i++)
        pc__free(g->step[i].call);
    pc__free(g->step);
    pc__free(g->comm);
    pc__free(g);
}

/* Dropped where the last launch is found done, or by the program. */
void pc__cuda_graph_drop(pc__cuda_graph *g)
{
    if (atomic_fetch_sub_explicit(&g->references, 1, memory_order_acq_rel) != 1)
        return;
    pc_error before = pc__error_take();
    (void)pc__cuda_enter(g->index);
    free_all(g);
    (void)pc__error_take();
    (void)pc__error_put(&before);
}

static pc_status start(pc__cuda_graph *g, pc_stream *stream)
{
    size_t bytes = PC__CUDA_GRAPH_FAULTS * sizeof *g->faults;
    PC__TRY(pc__cuda_check(cudaHostAlloc((void **)&g->faults, bytes, cudaHostAllocPortable | cudaHostAllocMapped),
                           "pc_graph_begin"));
    memset(g->faults, 0, bytes);
    return pc__cuda_branch_open(g, stream);
}

pc_status pc__cuda_graph_begin(pc_graph *graph, pc_stream *stream)
{
    PC__TRY(pc__cuda_enter(stream->device.index));
    pc__cuda_graph *g = pc__calloc(1, sizeof *g);
    if (!g)
        return PC_ERR_MEMORY;
    g->references = 1;
    g->index = stream->device.index;
    pc_status status = start(g, stream);
    if (status != PC_OK) {
        free_all(g);
        return status;
    }
    graph->implementation = g;
    return PC_OK;
}

pc_status pc__cuda_graph_join(pc_graph *graph, pc_stream *other)
{
    pc__cuda_graph *g = graph->implementation;
    PC__TRY(pc__cuda_enter(g->index));
    return pc__cuda_branch_open(g, other);
}

/* What is held back is the last of it; a lost device takes no more. A stream may not have come to its branch. */
static cudaError_t leave(pc_stream *stream, bool lost)
{
    const cudaError_t status = lost || !pc__cuda_state_of(stream)->face.branch ? cudaSuccess : pc__cuda_let_go(stream);
    pc__cuda_branch_leave(stream);
    return status;
}

pc_status pc__cuda_graph_end(pc_graph *graph, pc_stream *stream)
{
    pc__cuda_graph *g = graph->implementation;
    const pc_status entered = pc__cuda_enter(g->index),
                    met = entered == PC_OK ? pc__cuda_asides_meet(g, stream) : PC_OK;
    cudaError_t held = leave(stream, entered != PC_OK);
    for (int i = 0; i < graph->other_count; i++) {
        const cudaError_t other = leave(graph->others[i], entered != PC_OK);
        held = held == cudaSuccess ? other : held;
    }
    PC__TRY(entered);
    PC__TRY(met);
    PC__TRY(pc__cuda_check(held, "pc_graph_end"));
    PC__TRY(pc__cuda_check(cudaStreamEndCapture(g->branch[0]->capture, &g->graph), "pc_graph_end"));
    pc__cuda_branches_end(g);
    PC__TRY(pc__cuda_check(pc__cuda_fills_by_kernels(g->graph), "pc_graph_end"));
    PC__TRY(pc__cuda_check(cudaGraphInstantiate(&g->exec, g->graph, 0), "pc_graph_end"));
    return pc__cuda_check(cudaGraphUpload(g->exec, pc__cuda_state_of(stream)->own), "pc_graph_end");
}

pc_status pc__cuda_graph_step(pc__cuda_graph *g, const pc__cuda_queuing *q)
{
    PC__TRY(pc__grow((void **)&g->step, &g->step_room, g->steps, sizeof *g->step));
    pc_call *call = q->call ? pc__call_freeze(q->call, 0) : NULL;
    if (q->call && !call)
        return PC_ERR_MEMORY;
    g->step[g->steps++] = (pc__cuda_step){q->work->name, q->work->site, call, q->bytes};
    return PC_OK;
}

/* The stream keeps the recording until the launch is done; launched again, until that one is. */
static pc_status keep(pc__cuda_state *s, pc__cuda_graph *g, uint64_t ticket)
{
    for (int i = 0; i < s->launches; i++)
        if (s->launch[i].graph == g) {
            s->launch[i].ticket = ticket; /* and `first` as it is */
            return PC_OK;
        }
    PC__TRY(pc__grow((void **)&s->launch, &s->launch_room, s->launches, sizeof *s->launch));
    atomic_fetch_add_explicit(&g->references, 1, memory_order_relaxed);
    s->launch[s->launches++] = (pc__cuda_launch){ticket, ticket, g};
    return PC_OK;
}

pc_status pc__cuda_graph_goes_with(const pc_stream *stream, pc__comm *comm)
{
    pc__cuda_graph *g = stream->recording->implementation;
    for (int i = 0; i < g->comms; i++)
        if (g->comm[i] == comm)
            return PC_OK;
    PC__TRY(pc__grow((void **)&g->comm, &g->comm_room, g->comms, sizeof(pc__comm *)));
    g->comm[g->comms++] = comm;
    return PC_OK;
}

static pc_status meet_others(const pc__cuda_graph *g)
{
    for (int i = 0; i < g->comms; i++)
        if (g->comm[i]->together)
            PC__TRY(g->comm[i]->together(g->comm[i], NULL));
    return PC_OK;
}

static pc_status launch(const pc__cuda_graph *g, pc_stream *stream)
{
    PC__TRY(meet_others(g));
    for (int i = 0; i < g->comms; i++)
        g->comm[i]->watch->enters(g->comm[i], "a graph with collectives");
    pc_status status = pc__cuda_check(cudaGraphLaunch(g->exec, pc__cuda_queue(stream)), "pc_graph_launch");
    for (int i = 0; i < g->comms; i++) {
        g->comm[i]->watch->queued(g->comm[i], stream);
        g->comm[i]->log->launches(g->comm[i], stream);
    }
    return status == PC_OK ? meet_others(g) : status;
}

pc_status pc__cuda_graph_launch(pc_graph *graph, pc_stream *stream, const pc__work *work)
{
    pc__cuda_graph *g = graph->implementation;
    pc__cuda_state *s = stream->implementation;
    pc__cuda_queuing q = {.stream = stream, .work = work, .engine = "compute"};
    PC__TRY(pc__cuda_queue_begin(&q));
    pthread_mutex_lock(&s->lock);
    pc_status status = keep(s, g, work->ticket);
    pthread_mutex_unlock(&s->lock);
    if (status == PC_OK)
        status = launch(g, stream);
    return pc__cuda_queue_end(&q, status);
}

pc_status pc__cuda_graph_faults(pc__cuda_graph *g)
{
    for (int i = 0; i < PC__MIN(g->steps, PC__CUDA_GRAPH_FAULTS); i++)
        PC__TRY(pc__cuda_fault_say(&g->faults[i], g->step[i].name, g->step[i].site, g->index));
    return PC_OK;
}

static pc_status same(int i, const pc__cuda_step *a, const pc__cuda_step *b)
{
    if (!a->call != !b->call || strcmp(a->name, b->name) != 0)
        return pc__fail(PC_ERR_SHAPE, "pc_graph_update: op %d is %s in one and %s in the other", i, a->name, b->name);
    if (a->call)
        return pc__call_same("pc_graph_update", i, a->call, b->call);
    if (a->bytes != b->bytes)
        return pc__fail(PC_ERR_SHAPE, "pc_graph_update: copy %d is of %lld bytes in one and of %lld in the other", i,
                        (long long)a->bytes, (long long)b->bytes);
    return PC_OK;
}

/* The newer one is ready to be launched: they change places. Launches under way keep the one that they are of. */
pc_status pc__cuda_graph_update(pc_graph *graph, pc_graph *newer)
{
    pc__cuda_graph *a = graph->implementation, *b = newer->implementation;
    for (int i = 0; i < PC__MIN(a->steps, b->steps); i++)
        PC__TRY(same(i, &a->step[i], &b->step[i]));
    if (a->steps != b->steps)
        return pc__fail(PC_ERR_SHAPE, "pc_graph_update: one graph ends after op %d, the other goes on with %s",
                        PC__MIN(a->steps, b->steps),
                        a->steps > b->steps ? a->step[b->steps].name : b->step[a->steps].name);
    graph->implementation = b;
    newer->implementation = a;
    return PC_OK;
}

void pc__cuda_graph_close(pc_graph *graph)
{
    pc__cuda_graph_drop(graph->implementation);
}
