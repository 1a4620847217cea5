/* stream.c: streams, and what is queued on them. A kernel's host side runs at once, in the calling thread; it puts its
 * launches into the stream, or into the recording that the stream is part of. */
#include "cuda/runtime/start.h"
#include "cuda/runtime/state.h"
#include "device/workspace.h"

int pc__cuda_priority(const pc_stream *stream, int more)
{
    const pc__cuda_device *device = &pc__cuda_devices[stream->device.index];
    return PC__MIN(PC__MAX(-stream->priority - more, device->greatest), device->least);
}

pc_status pc__cuda_counters_new(unsigned **counters, cudaStream_t queue, const char *what)
{
    const size_t bytes = PC__CUDA_COUNTERS * sizeof **counters;
    PC__TRY(pc__cuda_check(cudaMalloc((void **)counters, bytes), what));
    PC__TRY(pc__cuda_check(cudaMemsetAsync(*counters, 0, bytes, queue), what));
    return pc__cuda_check(cudaStreamSynchronize(queue), what);
}

static void destroy(pc__cuda_state *s)
{
    if (s->own)
        (void)cudaStreamDestroy(s->own);
    if (s->counters)
        (void)cudaFree(s->counters);
    if (s->faults)
        (void)cudaFreeHost(s->faults);
    pthread_mutex_destroy(&s->lock);
    pc__free(s->launch);
    pc__free(s);
}

pc_status pc__cuda_stream_open(pc_stream *stream)
{
    PC__TRY(pc__cuda_open(stream->device.index));
    pc__cuda_state *s = pc__calloc(1, sizeof *s);
    if (!s)
        return PC_ERR_MEMORY;
    s->stream = stream;
    pthread_mutex_init(&s->lock, NULL);
    size_t bytes = PC__CUDA_WORKS * sizeof *s->faults;
    pc_status status = pc__cuda_check(
        cudaStreamCreateWithPriority(&s->own, cudaStreamNonBlocking, pc__cuda_priority(stream, 0)), "a stream");
    if (status == PC_OK)
        status = pc__cuda_check(cudaHostAlloc((void **)&s->faults, bytes, cudaHostAllocPortable | cudaHostAllocMapped),
                                "a stream");
    if (status == PC_OK)
        status = pc__cuda_counters_new(&s->counters, s->own, "a stream");
    if (status != PC_OK) {
        destroy(s);
        return status;
    }
    memset(s->faults, 0, bytes);
    s->face = (pc__cuda_stream){.stream = s->own, .fault = s->faults, .counters = s->counters};
    stream->implementation = s;
    return PC_OK;
}

void pc__cuda_stream_close(pc_stream *stream)
{
    pc__cuda_state *s = stream->implementation;
    pc_error before = pc__error_take();
    (void)pc__cuda_enter(stream->device.index);
    (void)cudaStreamSynchronize(pc__cuda_queue(stream)); /* a wait for work that was then refused */
    for (int i = 0; i < s->launches; i++)
        pc__cuda_graph_drop(s->launch[i].graph);
    pc__cuda_marks_free(s);
    pc__cuda_timed_free(s);
    destroy(s);
    (void)cudaGetLastError();
    (void)pc__error_take();
    (void)pc__error_put(&before);
}

/* Between streams' own queues, recording or not, so that what was queued before a recording is done when its tickets
 * are. */
pc_status pc__cuda_stream_wait(pc_stream *stream, pc_stream *other, uint64_t ticket, const pc__work *work)
{
    (void)work;
    pc__cuda_state *from = other->implementation;
    cudaEvent_t event = NULL;
    uint64_t covers;
    if (atomic_load_explicit(&pc__cuda_state_of(stream)->has_small, memory_order_relaxed)) {
        PC__TRY(pc__cuda_enter(stream->device.index));
        (void)pc__cuda_queue(stream); /* what is held there has nothing to wait for */
    }
    PC__TRY(pc__cuda_enter(other->device.index));
    pthread_mutex_lock(&from->lock);
    pc_status status = pc__cuda_mark_for(from, ticket, &event, &covers);
    if (status == PC_OK && event)
        status = pc__cuda_check(cudaStreamWaitEvent(pc__cuda_state_of(stream)->own, event, 0), "waiting for a stream");
    pthread_mutex_unlock(&from->lock);
    return status;
}

cudaStream_t pc__cuda_queue(const pc_stream *stream)
{
    pc__cuda_state *s = stream->implementation;
    if (s->face.holds)
        (void)pc__cuda_let_go(stream);
    if (atomic_load_explicit(&s->has_small, memory_order_acquire)) {
        pthread_mutex_lock(&s->lock);
        pc__cuda_small_go(s);
        pthread_mutex_unlock(&s->lock);
    }
    return s->face.stream;
}

/* Where the work's faults go, and under what name. */
static pc_status name_work(const pc__cuda_queuing *q)
{
    pc__cuda_state *s = q->stream->implementation;
    pc_graph *graph = q->stream->recording;
    if (graph) {
        pc__cuda_graph *g = graph->implementation;
        PC__TRY(pc__cuda_graph_step(g, q));
        s->face.fault = &g->faults[(g->steps - 1) % PC__CUDA_GRAPH_FAULTS];
        return PC_OK;
    }
    size_t place = q->work->ticket % PC__CUDA_WORKS;
    pthread_mutex_lock(&s->lock);
    if (q->work->ticket > s->checked + PC__CUDA_WORKS || s->faults[place].kind)
        pc__cuda_faults_look(s, atomic_load_explicit(&s->stream->done, memory_order_relaxed));
    s->origin[place] = (pc__cuda_origin){q->work->ticket, q->work->name, q->work->site};
    s->face.fault = &s->faults[place];
    pthread_mutex_unlock(&s->lock);
    return PC_OK;
}

pc_status pc__cuda_queue_begin(pc__cuda_queuing *q)
{
    PC__TRY(pc__cuda_enter(q->stream->device.index));
    PC__TRY(name_work(q));
    pc__cuda_state_of(q->stream)->face.note = NULL;
    if (pc__cuda_tracing() && !q->stream->recording)
        PC__TRY(pc__cuda_timed_begin(q));
    if (pc__cuda_nvtx)
        pc__cuda_nvtx_push(q->work->name);
    pc__cuda_starts_count(pc__cuda_state_of(q->stream)->face.stream);
    return PC_OK;
}

static pc_status finish_now(pc__cuda_queuing *q)
{
    pc__cuda_state *s = q->stream->implementation;
    cudaError_t status = cudaStreamSynchronize(s->own);
    if (!pc__cuda_is_loss(status))
        return pc__cuda_check(status, q->work->name);
    char site[PC__SITE_TEXT], where[PC__SITE_TEXT + 80];
    snprintf(where, sizeof where, "in %.60s (%s)", q->work->name, pc__site_text(q->work->site, site));
    return pc__cuda_lose(q->stream->device.index, status, where);
}

pc_status pc__cuda_queue_end(pc__cuda_queuing *q, pc_status status)
{
    if (pc__cuda_nvtx)
        pc__cuda_nvtx_pop();
    if (q->start)
        pc__cuda_timed_end(q);
    pc__cuda_stream *face = &pc__cuda_state_of(q->stream)->face;
    if (face->met_asked) /* calls of nothing leave it to the next */
        face->met = face->met_asked = false;
    pc__cuda_state *s = q->stream->implementation;
    if (status == PC_OK && pc__cuda_starts_counted() > 0) {
        face->complete = face->started;
        if (!face->holds && !atomic_load_explicit(&s->has_small, memory_order_relaxed))
            face->started = q->work->ticket;
    }
    if (status != PC_OK || q->stream->recording)
        return status;
    if (atomic_load_explicit(&s->watched, memory_order_relaxed) > 0 &&
        !atomic_load_explicit(&s->has_small, memory_order_relaxed)) {
        atomic_fetch_sub_explicit(&s->watched, 1, memory_order_relaxed);
        pthread_mutex_lock(&s->lock);
        status = pc__cuda_mark_now(s, q->work->ticket);
        pthread_mutex_unlock(&s->lock);
    }
    return status == PC_OK && pc__cuda_sync ? finish_now(q) : status;
}

pc_status pc__cuda_submit(pc_stream *stream, pc__kernel kernel, const pc_call *call, const pc__work *work)
{
    pc__cuda_queuing q = {.stream = stream, .work = work, .engine = "compute", .call = call};
    PC__TRY(pc__cuda_queue_begin(&q));
    pc_status status = pc__cuda_wants_floats(call) ? pc__cuda_in_floats(stream, call, kernel) : kernel(stream, call);
    return pc__cuda_queue_end(&q, status);
}

const char *pc__cuda_note(const pc_stream *stream)
{
    return pc__cuda_state_of(stream)->face.note;
}

/* A ticket without work is a place in the queue, and nothing to queue. */
pc_status pc__cuda_host_call(pc_stream *stream, void (*function)(void *context), void *context, const pc__work *work)
{
    if (!function)
        return PC_OK;
    pc__cuda_queuing q = {.stream = stream, .work = work, .engine = "host"};
    PC__TRY(pc__cuda_queue_begin(&q));
    cudaError_t status = cudaLaunchHostFunc(pc__cuda_queue(stream), function, context);
    return pc__cuda_queue_end(&q, pc__cuda_check(status, work->name));
}

/* A branch keeps its largest block of each level for all of its kernels, which run one after the other; those that are
 * captured already keep the address that they were given. */
static void *branch_scratch(pc_graph *graph, pc_stream *stream, pc__cuda_block *newest, size_t bytes)
{
    if (bytes <= newest->bytes)
        return newest->data;
    const size_t wanted = PC__MAX(bytes, 2 * newest->bytes);
    void *block = pc__graph_workspace(graph, stream, wanted);
    if (block)
        *newest = (pc__cuda_block){block, wanted};
    return block;
}

void *pc__cuda_scratch(pc_stream *stream, size_t bytes)
{
    bytes = PC__MAX(bytes, 1); /* for nothing, too, NULL would be an error */
    const pc__cuda_stream *face = stream->implementation;
    pc_graph *graph = stream->recording;
    if (graph && face->branch) /* without: what a plan announces may be measured before it is captured */
        return branch_scratch(graph, stream, &face->branch->newest[face->scratch_level], bytes);
    return pc__workspace(stream, face->scratch_level, bytes);
}
