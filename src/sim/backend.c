/* backend.c: sim devices as a backend. */
#include "sim/sim.h"

#include "cpu/cpu.h"
#include "device/failure.h"
#include "ops/collective.h"

static int count(char *why, size_t n)
{
    pc__sim_start();
    pthread_mutex_lock(&pc__sim.lock);
    int devices = pc__sim.options.devices;
    if (!devices)
        snprintf(why, n, "%s", pc__sim.why_none);
    pthread_mutex_unlock(&pc__sim.lock);
    return devices;
}

static pc_status allocate(int index, size_t bytes, void **block)
{
    pc__sim_device *device = &pc__sim.device[index];
    pthread_mutex_lock(&pc__sim.lock);
    pc_status status = pc__sim_device_open(device);
    bool refused =
        device->fault == PC_SIM_FAIL_MEMORY && device->fault_in && (device->fault_in == 1 || !--device->fault_in);
    *block = status == PC_OK && !refused ? pc__sim_heap_take(device, bytes) : NULL;
    pthread_mutex_unlock(&pc__sim.lock);
    return status != PC_OK ? status : *block ? PC_OK : PC_ERR_MEMORY;
}

static void release(int index, void *block, size_t bytes)
{
    (void)bytes;
    pthread_mutex_lock(&pc__sim.lock);
    pc__sim_heap_give(&pc__sim.device[index], block);
    pthread_mutex_unlock(&pc__sim.lock);
}

static pc_status memory(int index, pc__memory_info *info)
{
    pthread_mutex_lock(&pc__sim.lock);
    pc_status status = pc__sim_device_open(&pc__sim.device[index]);
    if (status == PC_OK)
        pc__sim_heap_info(&pc__sim.device[index], info);
    pthread_mutex_unlock(&pc__sim.lock);
    return status;
}

static pc_status stream_open(pc_stream *stream)
{
    pc__sim_stream *s = pc__calloc(1, sizeof *s);
    if (!s)
        return PC_ERR_MEMORY;
    s->references = 1;
    s->stream = stream;
    s->device = &pc__sim.device[stream->device.index];
    s->last = &s->first;
    pthread_cond_init(&s->progress, NULL);
    pthread_mutex_lock(&pc__sim.lock);
    pc_status status = pc__sim_device_open(s->device);
    pthread_mutex_unlock(&pc__sim.lock);
    if (status != PC_OK) {
        pthread_cond_destroy(&s->progress);
        pc__free(s);
        return status;
    }
    stream->implementation = s;
    return PC_OK;
}

static void stream_close(pc_stream *stream)
{
    pthread_mutex_lock(&pc__sim.lock);
    pc__sim_stream *s = stream->implementation;
    s->host_waiters++;
    while (s->first && !s->device->forked) /* a wait for work that was then refused */
        pthread_cond_wait(&s->progress, &pc__sim.lock);
    s->stream = NULL;
    pc__sim_let_go(s);
    pthread_mutex_unlock(&pc__sim.lock);
}

static pc__sim_command *command_new(pc__sim_kind kind, const pc__work *work)
{
    pc__sim_command *c = pc__alloc(sizeof *c);
    if (c)
        *c = (pc__sim_command){.kind = kind, .work = *work};
    return c;
}

/* Into the stream, or into the graph that is being built of its recording. */
static pc_status put(pc_stream *stream, pc__sim_command *c)
{
    if (!c)
        return PC_ERR_MEMORY;
    pc_graph *graph = stream->recording;
    pc__sim_stream *s = stream->implementation;
    pthread_mutex_lock(&pc__sim.lock);
    pc_status status = s->device->lost ? pc__error_put(&s->device->loss) : PC_OK;
    if (status != PC_OK)
        pc__sim_command_free(c);
    else if (graph)
        pc__sim_graph_add(graph->implementation, c);
    else
        pc__sim_push(s, c);
    pthread_mutex_unlock(&pc__sim.lock);
    return status;
}

/* Within a recording the list is the order. But its marks in the streams wait as its work would, so that what was
 * queued before the recording is done when they are. */
static pc_status stream_wait(pc_stream *stream, pc_stream *other, uint64_t ticket, const pc__work *work)
{
    pc__sim_command *c = command_new(PC__SIM_WAIT, work);
    if (!c)
        return PC_ERR_MEMORY;
    c->wait.other = other->implementation;
    c->wait.ticket = ticket;
    pthread_mutex_lock(&pc__sim.lock);
    c->wait.other->references++;
    pc__sim_push(stream->implementation, c);
    pthread_mutex_unlock(&pc__sim.lock);
    return PC_OK;
}

static pc_status open_links(int index)
{
    pthread_mutex_lock(&pc__sim.lock);
    pc_status status = pc__sim_links_open(&pc__sim.device[index]);
    pthread_mutex_unlock(&pc__sim.lock);
    return status;
}

static pc_status submit(pc_stream *stream, pc__kernel kernel, const pc_call *call, const pc__work *work)
{
    pc__sim_command *c = command_new(PC__SIM_KERNEL, work);
    if (!c)
        return PC_ERR_MEMORY;
    c->kernel.run = kernel;
    c->kernel.call = pc__call_freeze(call, (ptrdiff_t)pc__sim.device[stream->device.index].bytes);
    pc_status status = c->kernel.call ? PC_OK : PC_ERR_MEMORY;
    if (status == PC_OK && pc__is_collective(call->op))
        status = open_links(stream->device.index);
    if (status == PC_OK)
        return put(stream, c);
    pc__free(c->kernel.call);
    pc__free(c);
    return status;
}

static pc_status copy(pc_stream *stream, void *to, pc_device to_device, const void *from, pc_device from_device,
                      size_t bytes, const pc__work *work)
{
    pc__sim_command *c = command_new(PC__SIM_COPY, work);
    if (!c)
        return PC_ERR_MEMORY;
    c->copy.to = pc__sim_inside(to_device, to);
    c->copy.from = pc__sim_inside(from_device, from);
    c->copy.bytes = bytes;
    c->copy.between = to_device.type == PC_SIM && from_device.type == PC_SIM && to_device.index != from_device.index;
    c->copy.engine = from_device.type == PC_CPU ? PC__SIM_COPY_IN : PC__SIM_COPY_OUT;
    return put(stream, c);
}

/* A ticket without work. Where memory is short the stream's spare one does, as soon as it is free. */
static void put_mark(pc__sim_stream *s, const pc__work *work)
{
    pc__sim_command *c = pc__try_alloc_aligned(sizeof *c, 16);
    pthread_mutex_lock(&pc__sim.lock);
    s->host_waiters++;
    while (!c && s->spare_queued && !s->device->forked)
        pthread_cond_wait(&s->progress, &pc__sim.lock);
    s->host_waiters--;
    if (c || !s->spare_queued) {
        s->spare_queued |= !c;
        c = c ? c : &s->spare;
        *c = (pc__sim_command){.kind = c == &s->spare ? PC__SIM_SPARE : PC__SIM_NOTHING, .work = *work};
        pc__sim_push(s, c);
    }
    pthread_mutex_unlock(&pc__sim.lock);
}

static pc_status host_call(pc_stream *stream, void (*function)(void *context), void *context, const pc__work *work)
{
    if (!function) {
        put_mark(stream->implementation, work);
        return PC_OK;
    }
    pc__sim_command *c = command_new(PC__SIM_CALL, work);
    if (!c)
        return PC_ERR_MEMORY;
    c->call.function = function;
    c->call.context = context;
    return put(stream, c);
}

/* Forget the failure: somebody is told. The lock is held. */
static pc_status say_failure(pc__sim_stream *s)
{
    if (!s->failing)
        return PC_OK;
    s->failing = false;
    /* What is on its way into the queue may have looked before there was a failure. */
    s->failed[0].to = PC__MAX(s->queued, atomic_load_explicit(&s->stream->taken, memory_order_acquire));
    pc__failure_told(s->stream->id, s->failed[0].to);
    atomic_store_explicit(&s->stream->failed, false, memory_order_release);
    return pc__error_put(&s->error);
}

static pc_status stream_error(pc_stream *stream)
{
    pthread_mutex_lock(&pc__sim.lock);
    pc_status status = say_failure(stream->implementation);
    pthread_mutex_unlock(&pc__sim.lock);
    return status;
}

static pc_status ticket_synchronize(pc_stream *stream, uint64_t ticket)
{
    pc__sim_stream *s = stream->implementation;
    pthread_mutex_lock(&pc__sim.lock);
    s->host_waiters++;
    while (s->done < ticket && !s->device->forked)
        pthread_cond_wait(&s->progress, &pc__sim.lock);
    s->host_waiters--;
    /* At the end of the queue also that of a wait for work which was then refused. */
    bool all = ticket >= atomic_load_explicit(&stream->ticket, memory_order_acquire);
    pc_status status = s->failing && (all || s->failed[0].from <= ticket) ? say_failure(s) : PC_OK;
    if (status == PC_OK && s->device->lost)
        status = pc__error_put(&s->device->loss);
    pthread_mutex_unlock(&pc__sim.lock);
    return status;
}

static pc_status event_open(pc_event *event)
{
    pc__sim_event *e = pc__calloc(1, sizeof *e);
    if (!e)
        return PC_ERR_MEMORY;
    e->references = 1;
    event->implementation = e;
    return PC_OK;
}

static void event_close(pc_event *event)
{
    pc__sim_event *e = event->implementation;
    pthread_mutex_lock(&pc__sim.lock);
    bool last = --e->references == 0;
    pthread_mutex_unlock(&pc__sim.lock);
    if (last)
        pc__free(e);
}

static pc_status event_record(pc_event *event, pc_stream *stream, const pc__work *work)
{
    pc__sim_command *c = command_new(PC__SIM_EVENT, work);
    if (!c)
        return PC_ERR_MEMORY;
    c->mark.event = event->implementation;
    pthread_mutex_lock(&pc__sim.lock);
    c->mark.event->references++;
    c->mark.number = ++c->mark.event->mark;
    pthread_mutex_unlock(&pc__sim.lock);
    return put(stream, c);
}

static pc_status event_elapsed(pc_event *start, pc_event *end, double *milliseconds)
{
    const pc__sim_event *a = start->implementation, *b = end->implementation;
    pthread_mutex_lock(&pc__sim.lock);
    bool passed = a->time && b->time;
    *milliseconds = passed ? (double)(b->time - a->time) * 1e-6 : 0;
    pthread_mutex_unlock(&pc__sim.lock);
    return passed ? PC_OK
                  : pc__fail(PC_ERR_STATE, "pc_event_elapsed: work before one of the events failed, so it has no time");
}

static pc_status graph_launch(pc_graph *graph, pc_stream *stream, const pc__work *work)
{
    pc__sim_command *c = command_new(PC__SIM_GRAPH, work);
    if (!c)
        return PC_ERR_MEMORY;
    c->graph.graph = graph->implementation;
    c->graph.at = c->graph.graph->first;
    pthread_mutex_lock(&pc__sim.lock);
    c->graph.graph->references++;
    pthread_mutex_unlock(&pc__sim.lock);
    return put(stream, c);
}

const pc__backend pc__backend_sim = {
    .api_version = PC__BACKEND_API,
    .type = PC_SIM,
    .name = "sim",
    .skips = true,
    .count = count,
    .allocate = allocate,
    .release = release,
    .memory = memory,
    .stream_open = stream_open,
    .stream_close = stream_close,
    .stream_wait = stream_wait,
    .submit = submit,
    .copy = copy,
    .host_call = host_call,
    .event_record = event_record,
    .graph_launch = graph_launch,
    .ticket_synchronize = ticket_synchronize,
    .stream_error = stream_error,
    .event_open = event_open,
    .event_close = event_close,
    .event_elapsed = event_elapsed,
    .graph_begin = pc__sim_graph_begin,
    .graph_end = pc__sim_graph_end,
    .graph_update = pc__sim_graph_update,
    .graph_close = pc__sim_graph_close,
    .kernels = pc__cpu_kernels,
};
