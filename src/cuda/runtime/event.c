/* event.c: events of the program: the time at which a stream came by. Whom they hold up waits for their ticket. */
#include "cuda/runtime/state.h"

pc_status pc__cuda_event_open(pc_event *event)
{
    PC__TRY(pc__cuda_open(event->device.index));
    cudaEvent_t made = NULL;
    PC__TRY(pc__cuda_check(cudaEventCreate(&made), "an event"));
    event->implementation = made;
    return PC_OK;
}

void pc__cuda_event_close(pc_event *event)
{
    if (cudaEventDestroy(event->implementation) != cudaSuccess)
        (void)cudaGetLastError();
}

pc_status pc__cuda_event_record(pc_event *event, pc_stream *stream, const pc__work *work)
{
    pc__cuda_state *s = stream->implementation;
    PC__TRY(pc__cuda_enter(stream->device.index));
    PC__TRY(pc__cuda_check(cudaEventRecord(event->implementation, pc__cuda_queue(stream)), "pc_event_record"));
    pthread_mutex_lock(&s->lock);
    pc_status status = pc__cuda_mark_now(s, work->ticket);
    pthread_mutex_unlock(&s->lock);
    return status;
}

pc_status pc__cuda_event_elapsed(pc_event *start, pc_event *end, double *milliseconds)
{
    float passed = 0;
    PC__TRY(pc__cuda_enter(start->device.index));
    PC__TRY(
        pc__cuda_check(cudaEventElapsedTime(&passed, start->implementation, end->implementation), "pc_event_elapsed"));
    *milliseconds = (double)passed;
    return PC_OK;
}
