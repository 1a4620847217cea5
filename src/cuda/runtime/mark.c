/* mark.c: when tickets are done. Events cost the host and the device time, so a stream has them only where somebody
 * waits: at the wait, for all that is queued then. Who waited for work inside the queue gets an event after every piece
 * of work for a while. */
#include "cuda/runtime/state.h"
#include "device/failure.h"

enum { WATCHED = 256 };

static pc__cuda_mark *mark_at(pc__cuda_state *s, int i)
{
    return &s->mark[(s->first_mark + i) % PC__CUDA_MARKS];
}

/* Who sees that work is done sees what went wrong in it, too. */
static void advance(pc__cuda_state *s, uint64_t ticket)
{
    pc__cuda_faults_look(s, ticket);
    if (ticket > atomic_load_explicit(&s->stream->done, memory_order_relaxed))
        atomic_store_explicit(&s->stream->done, ticket, memory_order_release);
    while (s->marks && mark_at(s, 0)->ticket <= atomic_load_explicit(&s->stream->done, memory_order_relaxed)) {
        s->first_mark = (s->first_mark + 1) % PC__CUDA_MARKS;
        s->marks--;
    }
}

/* In a full ring the oldest one goes: who waits for its ticket then waits for the next one's. A wait for it that is
 * under way goes on to where its event is recorded again, which is later. */
pc_status pc__cuda_mark_now(pc__cuda_state *s, uint64_t ticket)
{
    if (s->marks == PC__CUDA_MARKS) {
        s->first_mark = (s->first_mark + 1) % PC__CUDA_MARKS;
        s->marks--;
    }
    pc__cuda_mark *mark = mark_at(s, s->marks);
    pc__cuda_small_go(s);
    if (!mark->event)
        PC__TRY(pc__cuda_check(cudaEventCreateWithFlags(&mark->event, cudaEventDisableTiming), "a mark in a stream"));
    PC__TRY(pc__cuda_check(cudaEventRecord(mark->event, s->own), "a mark in a stream"));
    s->newest = PC__MAX(s->newest, ticket);
    mark->ticket = s->newest;
    s->marks++;
    return PC_OK;
}

/* An event at or after the ticket; NULL when it is done. */
pc_status pc__cuda_mark_for(pc__cuda_state *s, uint64_t ticket, cudaEvent_t *event, uint64_t *covers)
{
    *event = NULL;
    if (atomic_load_explicit(&s->stream->done, memory_order_relaxed) >= ticket)
        return PC_OK;
    int i = 0;
    while (i < s->marks && mark_at(s, i)->ticket < ticket)
        i++;
    if (i == s->marks) {
        uint64_t queued = atomic_load_explicit(&s->stream->ticket, memory_order_acquire);
        if (queued > ticket)
            atomic_store_explicit(&s->watched, WATCHED, memory_order_relaxed);
        PC__TRY(pc__cuda_mark_now(s, queued));
        i = s->marks - 1; /* a full ring has moved on */
    }
    *event = mark_at(s, i)->event;
    *covers = mark_at(s, i)->ticket;
    return PC_OK;
}

/* "Not ready" is no error, but CUDA keeps it for whoever asks for the last one. */
static cudaError_t passed(cudaEvent_t event)
{
    cudaError_t status = cudaEventQuery(event);
    if (status == cudaErrorNotReady)
        (void)cudaGetLastError();
    return status;
}

static pc_status query(pc__cuda_state *s)
{
    pc__cuda_small_go(s); /* whoever asks in vain wants it done */
    while (s->marks) {
        cudaError_t status = passed(mark_at(s, 0)->event);
        if (status == cudaErrorNotReady)
            return PC_OK;
        if (status != cudaSuccess)
            return pc__cuda_stream_lost(s, status);
        advance(s, mark_at(s, 0)->ticket);
    }
    /* Without an event nobody would ever learn of what is queued: the next query looks at this one. */
    uint64_t queued = atomic_load_explicit(&s->stream->ticket, memory_order_acquire);
    if (atomic_load_explicit(&s->stream->done, memory_order_relaxed) >= queued)
        return PC_OK;
    PC__TRY(pc__cuda_mark_now(s, queued));
    if (passed(mark_at(s, 0)->event) == cudaSuccess) /* an idle stream passes it at once */
        advance(s, queued);
    return PC_OK;
}

pc_status pc__cuda_ticket_query(pc_stream *stream)
{
    pc__cuda_state *s = stream->implementation;
    PC__TRY(pc__cuda_enter(stream->device.index));
    pthread_mutex_lock(&s->lock);
    pc_status status = query(s);
    pc__cuda_timed_tell(s);
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* The failure of work up to the ticket, told once. */
static pc_status say_failure(pc__cuda_state *s, uint64_t ticket)
{
    bool all = ticket >= atomic_load_explicit(&s->stream->ticket, memory_order_acquire);
    if (!s->failing || (!all && s->failed_ticket > ticket))
        return PC_OK;
    s->failing = false;
    pc__failure_told(s->stream->id, PC__MAX(atomic_load_explicit(&s->stream->ticket, memory_order_acquire),
                                            atomic_load_explicit(&s->stream->taken, memory_order_acquire)));
    atomic_store_explicit(&s->stream->failed, false, memory_order_release);
    return pc__error_put(&s->error);
}

pc_status pc__cuda_ticket_synchronize(pc_stream *stream, uint64_t ticket)
{
    pc__cuda_state *s = stream->implementation;
    cudaEvent_t event = NULL;
    uint64_t covers = 0;
    pc_status status = pc__cuda_enter(stream->device.index);
    pthread_mutex_lock(&s->lock);
    if (status == PC_OK)
        status = pc__cuda_mark_for(s, ticket, &event, &covers);
    pthread_mutex_unlock(&s->lock);
    cudaError_t waited = event ? cudaEventSynchronize(event) : cudaSuccess;
    pthread_mutex_lock(&s->lock);
    if (waited != cudaSuccess)
        status = pc__cuda_stream_lost(s, waited);
    else if (event)
        advance(s, covers);
    if (status == PC_OK) {
        pc__cuda_timed_tell(s);
        status = say_failure(s, ticket);
    } else if (atomic_load(&pc__cuda_devices[stream->device.index].lost)) {
        advance(s, atomic_load(&stream->ticket)); /* who waits for a lost device gets no further by waiting */
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}

pc_status pc__cuda_stream_error(pc_stream *stream)
{
    pc__cuda_state *s = stream->implementation;
    pthread_mutex_lock(&s->lock);
    pc_status status = say_failure(s, UINT64_MAX);
    pthread_mutex_unlock(&s->lock);
    return status;
}

void pc__cuda_marks_free(pc__cuda_state *s)
{
    for (int i = 0; i < PC__CUDA_MARKS; i++)
        if (s->mark[i].event)
            (void)cudaEventDestroy(s->mark[i].event);
}
