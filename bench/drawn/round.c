/* round.c: how long a go of a case takes: the host's clock around many, with a wait at the end. */
#include "drawn/drawn.h"

#include <time.h>

/* With one thread on the CPU that of the processor, so that other work on the machine does not count. */
static double now(const drawn *d)
{
    struct timespec t;
    clock_gettime(d->device.type == PC_CPU && pc_threads_get() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static pc_status launch(drawn *d, bool recorded)
{
    return !recorded ? d->go(d) : d->step ? pc_step_run(d->step) : pc_graph_launch(d->graph, NULL);
}

/* Seconds of so many launches. */
static pc_status timed(drawn *d, bool recorded, int count, double *seconds)
{
    pc_status status = pc_device_synchronize(d->device);
    const double start = now(d);
    for (int i = 0; status == PC_OK && i < count; i++)
        status = launch(d, recorded);
    if (status == PC_OK)
        status = pc_device_synchronize(d->device);
    *seconds = now(d) - start;
    return status;
}

static pc_status make_streams(drawn *d)
{
    if (!d->stream)
        d->stream = pc_stream(d->device);
    if (!d->side)
        d->side = pc_stream(d->device);
    if (!d->gone)
        d->gone = pc_event_new(d->device);
    return d->stream && d->side && d->gone ? pc_device_synchronize(d->device) : pc_error_last()->status;
}

static pc_status go_and_wait(drawn *d)
{
    pc_status status = d->go(d);
    if (status == PC_OK)
        status = pc_event_record(d->gone, d->stream);
    return status == PC_OK ? pc_event_wait(d->gone, d->side) : status;
}

static pc_status record(drawn *d, int goes)
{
    pc_status status = make_streams(d);
    if (status != PC_OK)
        return status;
    PC_WITH_STREAM(d->stream) {
        for (int i = 0; status == PC_OK && i < 2; i++) /* what the first use of anything makes, outside */
            status = d->go(d);
        if (status == PC_OK)
            status = pc_graph_begin(d->stream);
        for (int i = 0; status == PC_OK && i < goes; i++)
            status = goes > 1 ? go_and_wait(d) : d->go(d);
        d->graph = pc_graph_end(d->stream);
    }
    d->goes = goes;
    return d->graph ? status : pc_error_last()->status;
}

pc_status round_of(drawn *d, bool recorded, double seconds, int goes, double *each)
{
    pc_status status = PC_OK;
    if (recorded && !d->step && !d->graph)
        status = record(d, goes);
    if (status == PC_OK && !d->repeats[recorded]) {
        double once;
        for (int i = 0; status == PC_OK && i < 4; i++)
            status = timed(d, recorded, 1, &once);
        if (status == PC_OK && recorded && d->step && pc_step_why(d->step))
            return pc_fail(PC_ERR_STATE, "no recording: %s", pc_step_why(d->step));
        const double count = seconds / (once > 1e-7 ? once : 1e-7);
        d->repeats[recorded] = count < 1 ? 1 : (int)count;
    }
    if (status == PC_OK)
        status = timed(d, recorded, d->repeats[recorded], &seconds);
    *each = seconds / d->repeats[recorded] / (recorded && !d->step ? d->goes : 1);
    return status;
}

void drawn_end(drawn *d)
{
    pc_graph_free(d->graph);
    pc_stream_free(d->stream);
    pc_stream_free(d->side);
    pc_event_free(d->gone);
    pc_step_free(d->step);
    pc_optimizer_free(d->optimizer);
    pc_module_free(d->net);
    pc_tensor_free(d->x);
    pc_tensor_free(d->y);
    pc_tensor_free(d->index);
    pc_tensor_free(d->gradient);
    for (int i = 0; i < INPUTS_MOST; i++)
        pc_tensor_free(d->in[i]);
    *d = (drawn){.device = d->device};
    if (pc_memory_trim(d->device) != PC_OK) /* PyTorch needs the memory too */
        pc_report(stderr);
}
