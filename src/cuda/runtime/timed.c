/* timed.c: when the device did what, for the timeline: two events around each piece of work. Their times are put on the
 * host's clock from one event at a known time to the next, since CUDA gives differences as floats, which are exact only
 * over short times. */
#include "cuda/runtime/state.h"

static pc_status take_event(pc__cuda_state *s, cudaEvent_t *event)
{
    if (s->spare_count) {
        *event = s->spare[--s->spare_count];
        return PC_OK;
    }
    return pc__cuda_check(cudaEventCreate(event), "an event of the timeline");
}

static void give_event(pc__cuda_state *s, cudaEvent_t event)
{
    if (!event)
        return;
    if (pc__grow((void **)&s->spare, &s->spare_room, s->spare_count, sizeof *s->spare) == PC_OK)
        s->spare[s->spare_count++] = event;
    else
        (void)cudaEventDestroy(event);
}

/* The first traced work of a stream waits once, for the two clocks. */
static pc_status drop_anchor(pc__cuda_state *s)
{
    cudaEvent_t event;
    PC__TRY(take_event(s, &event));
    cudaError_t status = cudaEventRecord(event, s->own);
    if (status == cudaSuccess)
        status = cudaEventSynchronize(event);
    s->anchor = event;
    s->anchor_time = pc__now();
    return pc__cuda_check(status, "an event of the timeline");
}

pc_status pc__cuda_timed_begin(pc__cuda_queuing *q)
{
    pc__cuda_state *s = q->stream->implementation;
    pthread_mutex_lock(&s->lock);
    pc_status status = s->anchor ? PC_OK : drop_anchor(s);
    if (status == PC_OK)
        status = take_event(s, &q->start);
    pthread_mutex_unlock(&s->lock);
    return status == PC_OK
               ? pc__cuda_check(cudaEventRecord(q->start, pc__cuda_queue(q->stream)), "an event of the timeline")
               : status;
}

void pc__cuda_timed_end(const pc__cuda_queuing *q)
{
    pc__cuda_state *s = q->stream->implementation;
    cudaEvent_t end = NULL;
    pc__work work = *q->work;
    work.note = s->face.note ? s->face.note : work.note;
    pc_error before = pc__error_take(); /* a hole in the timeline is nobody's error */
    pthread_mutex_lock(&s->lock);
    pc_status status = pc__grow((void **)&s->timed, &s->timed_room, s->timed_count, sizeof *s->timed);
    if (status == PC_OK)
        status = take_event(s, &end);
    if (status == PC_OK)
        status = pc__cuda_check(cudaEventRecord(end, s->own), "an event of the timeline");
    if (status == PC_OK)
        s->timed[s->timed_count++] = (pc__cuda_timed){work, q->engine, q->bytes, q->start, end};
    else {
        give_event(s, q->start);
        give_event(s, end);
    }
    pthread_mutex_unlock(&s->lock);
    (void)pc__error_take();
    (void)pc__error_put(&before);
}

/* Put it on the host's clock; its start is the anchor of the next one. */
static void tell(pc__cuda_state *s, const pc__cuda_timed *t)
{
    float before = 0, during = 0;
    if (cudaEventElapsedTime(&before, s->anchor, t->start) == cudaSuccess &&
        cudaEventElapsedTime(&during, t->start, t->end) == cudaSuccess) {
        int64_t started = s->anchor_time + (int64_t)((double)before * 1e6);
        pc__trace_work_done(&(pc__trace_work){.name = t->work.name,
                                              .device = s->stream->device,
                                              .stream = s->stream->id,
                                              .ticket = t->work.ticket,
                                              .engine = t->engine,
                                              .queued = t->work.queued,
                                              .started = started,
                                              .ended = started + (int64_t)((double)during * 1e6),
                                              .bytes = t->bytes,
                                              .site = t->work.site,
                                              .note = t->work.note});
        give_event(s, s->anchor);
        s->anchor = t->start;
        s->anchor_time = started;
    } else {
        (void)cudaGetLastError();
        give_event(s, t->start);
    }
    give_event(s, t->end);
}

void pc__cuda_timed_tell(pc__cuda_state *s)
{
    int told = 0;
    uint64_t done = atomic_load_explicit(&s->stream->done, memory_order_relaxed);
    while (told < s->timed_count && s->timed[told].work.ticket <= done)
        tell(s, &s->timed[told++]);
    s->timed_count -= told;
    if (told && s->timed_count)
        memmove(s->timed, s->timed + told, (size_t)s->timed_count * sizeof *s->timed);
}

void pc__cuda_timed_free(pc__cuda_state *s)
{
    for (int i = 0; i < s->timed_count; i++) {
        (void)cudaEventDestroy(s->timed[i].start);
        (void)cudaEventDestroy(s->timed[i].end);
    }
    for (int i = 0; i < s->spare_count; i++)
        (void)cudaEventDestroy(s->spare[i]);
    if (s->anchor)
        (void)cudaEventDestroy(s->anchor);
    pc__free(s->timed);
    pc__free(s->spare);
}
