/* backend.c: the CPU as a device: work runs at once in the calling thread and its helpers. */
#include "cpu/cpu.h"

#include "device/backend.h"

#include <time.h>

static int count(char *why, size_t n)
{
    (void)why, (void)n;
    return 1;
}

static pc_status allocate(int index, size_t bytes, void **block)
{
    (void)index;
    *block = pc__try_alloc_aligned(bytes, 64);
    return *block ? PC_OK : PC_ERR_MEMORY;
}

static void release(int index, void *block, size_t bytes)
{
    (void)index, (void)bytes;
    pc__free(block);
}

static pc_status stream_open(pc_stream *stream)
{
    (void)stream;
    return PC_OK;
}

static void stream_close(pc_stream *stream)
{
    (void)stream;
}

static pc_status stream_wait(pc_stream *stream, pc_stream *other, uint64_t ticket, const pc__work *work)
{
    (void)stream, (void)other, (void)ticket, (void)work;
    return PC_OK;
}

static pc_status ticket_synchronize(pc_stream *stream, uint64_t ticket)
{
    (void)stream, (void)ticket;
    return PC_OK;
}

static pc_status ticket_query(pc_stream *stream)
{
    atomic_store(&stream->done, atomic_load(&stream->ticket));
    return PC_OK;
}

/* An event is the time at which it was recorded. */
static pc_status event_open(pc_event *event)
{
    event->implementation = pc__calloc(1, sizeof(struct timespec));
    return event->implementation ? PC_OK : PC_ERR_MEMORY;
}

static void event_close(pc_event *event)
{
    pc__free(event->implementation);
}

static pc_status event_record(pc_event *event, pc_stream *stream, const pc__work *work)
{
    (void)stream, (void)work;
    clock_gettime(CLOCK_MONOTONIC, event->implementation);
    return PC_OK;
}

static pc_status event_elapsed(pc_event *start, pc_event *end, double *milliseconds)
{
    const struct timespec *a = start->implementation, *b = end->implementation;
    *milliseconds = (double)(b->tv_sec - a->tv_sec) * 1e3 + (double)(b->tv_nsec - a->tv_nsec) * 1e-6;
    return PC_OK;
}

static pc_status copy(pc_stream *stream, void *to, pc_device to_device, const void *from, pc_device from_device,
                      size_t bytes, const pc__work *work)
{
    (void)stream, (void)to_device, (void)from_device, (void)work;
    memcpy(to, from, bytes);
    return PC_OK;
}

const pc__backend pc__backend_cpu = {
    .api_version = PC__BACKEND_API,
    .type = PC_CPU,
    .name = "cpu",
    .immediate = true,
    .count = count,
    .allocate = allocate,
    .release = release,
    .stream_open = stream_open,
    .stream_close = stream_close,
    .stream_wait = stream_wait,
    .ticket_synchronize = ticket_synchronize,
    .ticket_query = ticket_query,
    .event_open = event_open,
    .event_close = event_close,
    .event_record = event_record,
    .event_elapsed = event_elapsed,
    .host_call = pc__cpu_host_call,
    .copy = copy,
    .graph_begin = pc__cpu_graph_begin,
    .graph_end = pc__cpu_graph_end,
    .graph_launch = pc__cpu_graph_launch,
    .graph_update = pc__cpu_graph_update,
    .graph_close = pc__cpu_graph_close,
    .kernels = pc__cpu_kernels,
    .lessons = pc__cpu_lessons,
    .submit = pc__cpu_submit,
};
