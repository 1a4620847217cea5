/* nccl.c: the engine between ranks on GPUs. Communicators block: one that does not starts a thread for every call. Only
 * their making, which waits for the other ranks, is done in a thread that may be left behind; what hangs later is
 * aborted by whoever watches. */
#include "cuda/dist/nccl.h"
#include "cuda/runtime/state.h"

#if PC__HAVE_NCCL

#include <errno.h>
#include <time.h>

static pc_status missing(void)
{
    const char *why = pc__nccl_missing();
    return why ? pc__fail(PC_ERR_UNSUPPORTED, "groups on cuda: %s", why) : PC_OK;
}

static pc_status make_id(unsigned char id[PC__ENGINE_ID])
{
    ncclUniqueId unique;
    PC__TRY(missing());
    PC__TRY(pc__nccl_check(pc__nccl.GetUniqueId(&unique), NULL, "a group's id"));
    memcpy(id, &unique, sizeof unique);
    return PC_OK;
}

/* A communicator under way; whoever comes last frees it. */
typedef struct making {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int holders, device, rank, size;
    bool done;
    ncclUniqueId id;
    ncclComm_t comm;
    ncclResult_t result;
    char words[256];
} making;

static void let_go(making *m)
{
    const bool last = --m->holders == 0;
    pthread_mutex_unlock(&m->lock);
    if (!last)
        return;
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    pc__free(m);
}

static void *make(void *context)
{
    making *m = context;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm = NULL;
    config.blocking = 1;
    ncclResult_t result = cudaSetDevice(m->device) == cudaSuccess
                              ? pc__nccl.CommInitRankConfig(&comm, m->size, m->id, m->rank, &config)
                              : ncclUnhandledCudaError;
    const char *words = result == ncclSuccess ? "" : pc__nccl.GetLastError(NULL);
    pthread_mutex_lock(&m->lock);
    m->comm = comm;
    m->result = result;
    snprintf(m->words, sizeof m->words, "%s", words ? words : "");
    m->done = true;
    pthread_cond_signal(&m->changed);
    let_go(m);
    return NULL;
}

static making *making_new(const pc__comm *comm, const unsigned char id[PC__ENGINE_ID])
{
    making *m = pc__calloc(1, sizeof *m);
    if (!m)
        return NULL;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    m->holders = 1;
    m->device = comm->device.index;
    m->rank = comm->rank;
    m->size = comm->size;
    memcpy(&m->id, id, sizeof m->id);
    return m;
}

/* Until it is there, or for comm->seconds. */
static pc_status await(making *m, pc__comm *comm)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += (time_t)PC__MIN(comm->seconds > 0 ? comm->seconds : 1e9, 1e9) + 1;
    int waited = 0;
    while (!m->done && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&m->changed, &m->lock, &end);
    if (!m->done)
        return pc__fail(
            PC_ERR_STATE,
            "rank %d of %s: NCCL has not connected the ranks within %g s; NCCL_DEBUG=INFO says what it waits "
            "for, NCCL_SOCKET_IFNAME names the network to use",
            comm->rank, comm->group, comm->seconds);
    if (m->result != ncclSuccess)
        return pc__fail_cause(PC_ERR_BACKEND, m->words, "rank %d of %s: NCCL cannot connect the ranks: %s", comm->rank,
                              comm->group, pc__nccl.GetErrorString(m->result));
    comm->implementation = m->comm;
    return PC_OK;
}

static pc_status open(pc__comm *comm, const unsigned char id[PC__ENGINE_ID])
{
    pthread_t thread;
    PC__TRY(missing());
    making *m = making_new(comm, id);
    if (!m)
        return PC_ERR_MEMORY;
    pthread_mutex_lock(&m->lock);
    const bool started = pthread_create(&thread, NULL, make, m) == 0;
    pc_status status = PC_ERR_MEMORY;
    if (started) {
        m->holders++;
        pthread_detach(thread);
        status = await(m, comm);
    } else {
        (void)pc__fail(PC_ERR_MEMORY, "the system gives no thread to connect the ranks");
    }
    let_go(m);
    return status;
}

static pc_status run(pc__comm *comm, pc_stream *stream, const pc_call *call)
{
    const ncclComm_t nccl = comm->implementation;
    if (!nccl)
        return pc__fail(PC_ERR_STATE, "%s: group %s was given up after an error", call->op->name, comm->group);
    cudaStream_t queue = pc__cuda_queue(stream);
    if (stream->recording)
        PC__TRY(pc__cuda_graph_goes_with(stream, comm));
    else if (comm->together)
        PC__TRY(comm->together(comm, call));
    comm->watch->enters(comm, call->op->name);
    const ncclResult_t result = pc__nccl_queue(nccl, comm->size, comm->rank, queue, call);
    comm->watch->queued(comm, stream->recording ? NULL : stream);
    PC__TRY(pc__nccl_check(result, nccl, call->op->name));
    return comm->together && !stream->recording ? comm->together(comm, call) : PC_OK;
}

static pc_status query(pc__comm *comm)
{
    ncclResult_t result = ncclSuccess;
    const ncclComm_t nccl = comm->implementation;
    if (!nccl || pc__nccl.CommGetAsyncError(nccl, &result) != ncclSuccess || result == ncclInProgress)
        return PC_OK;
    return pc__nccl_check(result, nccl, comm->group);
}

static void abort_all(pc__comm *comm, const char *why)
{
    (void)why;
    const ncclComm_t nccl = comm->implementation;
    comm->implementation = NULL;
    if (nccl)
        (void)pc__nccl.CommAbort(nccl);
}

static void close(pc__comm *comm)
{
    const ncclComm_t nccl = comm->implementation;
    comm->implementation = NULL;
    if (nccl && pc__cuda_enter(comm->device.index) == PC_OK)
        (void)pc__nccl.CommDestroy(nccl);
}

const pc__engine pc__cuda_nccl = {
    .name = "NCCL", .id = make_id, .open = open, .run = run, .query = query, .abort = abort_all, .close = close};

#else

static pc_status make_id(unsigned char id[PC__ENGINE_ID])
{
    (void)id;
    return pc__fail(PC_ERR_UNSUPPORTED, "groups on cuda: %s", pc__nccl_missing());
}

const pc__engine pc__cuda_nccl = {.name = "NCCL", .id = make_id};

#endif
