/* wait.c: the host waiting for a device, and the policy about it. */
#include "device/wait.h"

#include "device/check.h"
#include "device/failure.h"
#include "device/graph.h"
#include "device/plan.h"
#include "device/order.h"
#include "device/trace.h"
#include "device/waits.h"

static _Thread_local pc_sync_policy policy;

pc_sync_policy pc_sync_policy_set(pc_sync_policy wanted)
{
    pc_sync_policy before = policy;
    policy = wanted;
    return before;
}

bool pc__ticket_done(pc_stream *stream, uint64_t ticket)
{
    if (atomic_load_explicit(&stream->done, memory_order_acquire) >= ticket)
        return true;
    if (!stream->backend->ticket_query || stream->backend->ticket_query(stream) != PC_OK)
        return false;
    return atomic_load_explicit(&stream->done, memory_order_acquire) >= ticket;
}

pc_status pc__wait_allowed(pc_device device, const char *who)
{
    if (policy == PC_SYNC_ALLOW)
        return PC_OK;
    char name[PC_DEVICE_NAME_MAX], site[PC__SITE_TEXT];
    if (policy == PC_SYNC_REFUSE)
        return pc__fail(PC_ERR_STATE,
                        "%s makes the host wait for %s, which this thread's policy refuses (%s); keep the value on the "
                        "device, or allow it with pc_sync_policy_set",
                        who, pc_device_name(device, name), pc__site_text(pc__site_here(), site));
    pc__log(PC_LOG_WARNING, "%s makes the host wait for %s (%s)", who, pc_device_name(device, name),
            pc__site_text(pc__site_here(), site));
    return PC_OK;
}

static pc_status wait_and_tell(pc_stream *stream, uint64_t ticket, const char *who, const char *note)
{
    if (!pc__tracing())
        return stream->backend->ticket_synchronize(stream, ticket);
    int64_t started = pc__now();
    pc_status status = stream->backend->ticket_synchronize(stream, ticket);
    pc__trace_host_done(&(pc__trace_host){.kind = "wait",
                                          .name = who,
                                          .note = note,
                                          .started = started,
                                          .ended = pc__now(),
                                          .device = stream->device,
                                          .stream = stream->id,
                                          .site = pc__site_here()});
    return status;
}

pc_status pc__host_wait(pc_stream *stream, uint64_t ticket, const char *who, const char *why)
{
    if (stream->backend->immediate)
        return PC_OK;
    pc_status status = wait_and_tell(stream, ticket, who, why);
    if (status == PC_OK && stream->waits) {
        pc__waits_look(stream, ticket);
        status = atomic_load(&stream->failed) ? stream->backend->ticket_synchronize(stream, ticket) : PC_OK;
    }
    if (status != PC_OK)
        pc__failures_tidy();
    if (pc__checking())
        pc__check_host_waited(stream, ticket);
    return status;
}

pc_status pc__stream_finish(pc_stream *stream, const char *who)
{
    return pc__host_wait(stream, atomic_load(&stream->ticket), who, NULL);
}

static pc_stream *or_current(pc_stream *stream)
{
    return stream ? stream : pc_stream_current(pc_device_current());
}

pc_status pc_stream_synchronize(pc_stream *stream)
{
    stream = or_current(stream);
    if (!stream)
        return PC_ERR_DEVICE;
    PC__TRY(pc__graph_allows(stream, "pc_stream_synchronize", "waiting"));
    return pc__stream_finish(stream, "pc_stream_synchronize");
}

pc_status pc_stream_query(pc_stream *stream, bool *done)
{
    PC__NEED(done);
    *done = false;
    stream = or_current(stream);
    if (!stream)
        return PC_ERR_DEVICE;
    PC__TRY(pc__recorder_admits(stream, "pc_stream_query"));
    const uint64_t queued = atomic_load(&stream->ticket);
    *done = pc__ticket_done(stream, queued);
    if (*done)
        pc__waits_look(stream, queued);
    return *done && atomic_load(&stream->failed) ? stream->backend->stream_error(stream) : PC_OK;
}

pc_status pc_stream_call(pc_stream *stream, pc_stream_fn function, void *context)
{
    PC__NEED(function);
    stream = or_current(stream);
    if (!stream)
        return PC_ERR_DEVICE;
    pc__work work = {.name = "host function"};
    PC__TRY(pc__queue_open(stream, &work));
    pc_status status = stream->recording ? PC_OK : pc__graph_allows_beside(stream, "pc_stream_call");
    if (status == PC_OK)
        status = stream->recording ? pc__plan_function(stream, function, context, &work)
                                   : stream->backend->host_call(stream, function, context, &work);
    pc__queue_close(stream, &work, status);
    return status;
}

int pc_stream_priority(const pc_stream *stream)
{
    PC__NEED_OR(0, stream);
    return stream->priority;
}

pc_device pc_stream_device(const pc_stream *stream)
{
    PC__NEED_OR((pc_device){.type = -1}, stream);
    return stream->device;
}
