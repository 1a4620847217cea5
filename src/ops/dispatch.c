/* dispatch.c: the one way in. Every op of the library goes through pc_dispatch, and every concern that all ops share
 * (checks, memory, order between streams, kernels, the tape) is dealt with here once. */
#include "ops/table.h"

#include "device/check.h"
#include "device/failure.h"
#include "device/graph.h"
#include "device/order.h"
#include "device/plan.h"
#include "device/trace.h"
#include "ops/finite.h"
#include "ops/in_place.h"
#include "tensor/leaf_watch.h"
#include "tensor/read.h"

/* Leaves whose memory is not always there have it for the call. */
static pc_status tell_watches(pc_tensor *const *tensors, int n, bool write)
{
    for (int i = 0; i < n; i++) {
        if (!tensors[i]->watch)
            continue;
        PC__TRY(pc__leaf_note(tensors[i]));
        if (tensors[i]->watch->set->used)
            PC__TRY(tensors[i]->watch->set->used(tensors[i]->watch->set, tensors, n, write));
    }
    return PC_OK;
}

static pc_status check_inputs(const pc_call *call, pc_device *device)
{
    const pc_tensor *first = call->n_in ? call->in[0] : call->out[0];
    for (int i = 0; i < call->n_in; i++)
        if (!call->in[i]) {
            if (pc_failed())
                return pc_error_last()->status; /* the error that made it NULL is the one to keep */
            return pc__fail(PC_ERR_ARGUMENT, "%s: input %d is NULL", call->op->name, i);
        }
    *device = first->storage->device;
    PC__TRY(tell_watches(call->in, call->n_in, (call->op->flags & PC__WRITES_IN) != 0));
    if (call->op->flags & PC__IN_PLACE)
        PC__TRY(tell_watches(call->out, call->n_out, true));
    for (int i = 1; i < call->n_in; i++)
        if (!pc_device_equal(call->in[i]->storage->device, *device)) {
            char a[PC_DEVICE_NAME_MAX], b[PC_DEVICE_NAME_MAX];
            return pc__fail(PC_ERR_DEVICE, "%s: the inputs are on %s and %s; move one with pc_to", call->op->name,
                            pc_device_name(*device, a), pc_device_name(call->in[i]->storage->device, b));
        }
    return PC_OK;
}

/* What a step that is recorded works with, read or written: without one of them it would work with others. */
static pc_status find(const pc_call *call)
{
    const int n = call->n_in + (call->op->flags & PC__IN_PLACE ? call->n_out : 0);
    for (int i = 0; i < n; i++)
        PC__TRY(pc__tensor_found(pc__call_tensor(call, i)));
    return PC_OK;
}

/* What is read now has contents; and what has none is known for it, before its last writer is forgotten. */
static pc_status check_contents(const pc_call *call, bool recorded)
{
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        pc__storage *storage = pc__call_tensor(call, i)->storage;
        if (!recorded && !pc__call_overwrites(call, i))
            PC__TRY(pc__storage_sound(storage, call->op->name));
        else
            (void)pc__storage_failure(storage);
    }
    return PC_OK;
}

static void heal(const pc_call *call)
{
    for (int i = 0; i < call->n_in + call->n_out; i++)
        if (pc__call_renews(call, i))
            pc__storage_heals(pc__call_tensor(call, i)->storage);
}

/* Where work is done at once: wait for what other devices still do with the host's memory. */
static pc_status settle(const pc_call *call, pc_stream *stream)
{
    PC__TRY(pc__recorder_admits(stream, call->op->name));
    const pc__work work = {.name = call->op->name};
    PC__TRY(pc__graph_takes(stream, &work));
    for (int i = 0; i < call->n_in + call->n_out && pc__recorder_any(); i++)
        PC__TRY(pc__graph_follows(stream, pc__call_tensor(call, i)->storage, pc__call_writes(call, i), &work));
    const bool recorded = pc__graph_of(stream);
    if (!recorded)
        PC__TRY(pc__graph_allows_beside(stream, call->op->name));
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        pc__storage *storage = pc__call_tensor(call, i)->storage;
        if (recorded)
            PC__TRY(pc__graph_uses(stream, storage, pc__call_writes(call, i), pc__call_renews(call, i)));
        else if (atomic_load_explicit(&storage->order.owner, memory_order_relaxed))
            PC__TRY(pc__settle(storage, pc__call_writes(call, i), call->op->name, false));
        if (!recorded)
            PC__TRY(pc__storage_ensure(storage, stream));
    }
    return pc__ever_failed() ? check_contents(call, recorded) : PC_OK;
}

/* The bytes of its storage that a tensor covers. */
static pc__check_use range_of(const pc_tensor *t, bool write)
{
    size_t size = pc_dtype_size(t->dtype), begin = (size_t)t->offset * size;
    return (pc__check_use){t->storage, begin, begin + (size_t)pc__span(t) * size, write};
}

static void check(const pc_call *call, const pc_stream *stream, const pc__work *work)
{
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        pc__check_use use = range_of(pc__call_tensor(call, i), pc__call_writes(call, i));
        pc__check_work(work->name, work->site, stream, work->ticket, &use, 1);
    }
}

static pc_status order(const pc_call *call, pc_stream *stream, const pc__work *work)
{
    if (pc__ever_failed())
        PC__TRY(check_contents(call, stream->recording));
    for (int i = 0; i < call->n_in + call->n_out; i++)
        PC__TRY(pc__uses(pc__call_tensor(call, i)->storage, stream, work, pc__call_writes(call, i)));
    if (!stream->recording)
        PC__TRY(pc__graph_allows_beside(stream, work->name));
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        pc__storage *storage = pc__call_tensor(call, i)->storage;
        PC__TRY(stream->recording ? pc__graph_uses(stream, storage, pc__call_writes(call, i), pc__call_renews(call, i))
                                  : pc__uses_now(storage, work));
    }
    if (pc__checking())
        check(call, stream, work);
    return PC_OK;
}

static pc_status queue(const pc_call *call, pc_stream *stream, pc__kernel kernel)
{
    pc__work work = {.name = call->op->name};
    for (int i = 0; i < call->n_in + call->n_out; i++)
        PC__TRY(pc__graph_gives(stream, pc__call_tensor(call, i)->storage));
    PC__TRY(pc__queue_open(stream, &work));
    pc_status status = order(call, stream, &work);
    if (status == PC_OK)
        status = stream->recording ? pc__plan_call(stream, kernel, call, &work)
                                   : stream->backend->submit(stream, kernel, call, &work);
    if (status == PC_OK && pc__ever_failed() && !stream->recording)
        heal(call);
    pc__queue_close(stream, &work, status);
    return status;
}

static pc_status run_now(const pc_call *call, pc_stream *stream, pc__kernel kernel)
{
    if (pc__graph_of(stream))
        return pc__plan_call(stream, kernel, call, &(pc__work){.name = call->op->name, .site = pc__site_here()});
    const pc_status status = stream->backend->submit(stream, kernel, call, NULL);
    if (status == PC_OK && pc__ever_failed())
        heal(call);
    return status;
}

/* On a device that works at once: run, or record. */
static pc_status run(const pc_call *call, pc_stream *stream, pc__kernel kernel)
{
    PC__TRY(settle(call, stream));
    if (!pc__tracing())
        return run_now(call, stream, kernel);
    pc__site site = pc__site_here();
    int64_t started = pc__now();
    pc_status status = run_now(call, stream, kernel);
    pc__trace_op_done(call->op->name, NULL, started, stream->device, stream->id, site);
    return status;
}

static pc_status launch(const pc_call *call, pc_stream *stream)
{
    const pc__backend *backend = stream->backend;
    pc__kernel kernel = backend->kernels()[call->op->index];
    if (kernel)
        return backend->immediate ? run(call, stream, kernel) : queue(call, stream, kernel);
    char name[PC_DEVICE_NAME_MAX];
    const pc_tensor *first = call->n_in ? call->in[0] : call->out[0];
    return pc__fail(PC_ERR_UNSUPPORTED, "%s of %s has no kernel on %s", call->op->name, pc_dtype_name(first->dtype),
                    pc_device_name(stream->device, name));
}

static void discard_outputs(pc_call *call, int made)
{
    while (made-- > 0)
        call->out[made] = pc__tensor_discard(call->out[made]);
}

static pc_status make_outputs(pc_call *call, const pc__meta *meta, pc_device device)
{
    for (int i = 0; i < call->n_out; i++) {
        call->out[i] = pc__tensor_for(&meta[i], device, call->op->name);
        if (!call->out[i]) {
            discard_outputs(call, i);
            return PC_ERR_MEMORY;
        }
    }
    return PC_OK;
}

static pc_status write(pc_call *call, pc_device device)
{
    pc_stream *stream = pc_stream_current(device);
    if (!stream)
        return PC_ERR_DEVICE;
    for (int i = 0; i < call->n_out && pc__call_writes(call, call->n_in + i); i++)
        PC__TRY(pc__graph_raises(device, call->out[i]->storage));
    return launch(call, stream);
}

/* From input i on: those that would be read after they are written are copied, so that the result is that of values
 * which were all there before. */
static pc_status write_apart(pc_call *call, pc_device device, int i)
{
    while (i < call->n_in && !pc__reads_written(call, i))
        i++;
    if (i == call->n_in)
        return write(call, device);
    pc_tensor *shared = call->in[i];
    pc_status status = PC_OK;
    PC_SCOPE {
        call->in[i] = pc_clone(shared);
        status = call->in[i] ? write_apart(call, device, i + 1) : pc_error_last()->status;
        call->in[i] = shared;
    }
    return status;
}

static pc_status in_place(pc_call *call, pc_device device)
{
    pc__meta unused[PC__OUT_MAX];
    PC__TRY(call->op->infer(call, unused));
    PC__TRY(pc__targets_check(call, device));
    return write_apart(call, device, 0);
}

pc_status pc_dispatch(pc_call *call)
{
    pc_device device;
    PC__TRY(check_inputs(call, &device));
    if (pc__recorder_any())
        PC__TRY(find(call));
    if (call->op->flags & PC__IN_PLACE)
        return in_place(call, device);

    pc__meta meta[PC__OUT_MAX];
    PC__TRY(call->op->infer(call, meta));
    for (int i = 0; i < call->n_out; i++) /* small inputs can have outputs beyond counting: an outer product, padding */
        PC__TRY(pc__shape_check(call->op->name, pc_shape_of(meta[i].ndim, meta[i].shape), meta[i].dtype));
    PC__TRY(make_outputs(call, meta, device));
    pc_status status = PC_OK;
    if (!(call->op->flags & PC__VIEW)) {
        pc_stream *stream = pc_stream_current(device);
        status = stream ? launch(call, stream) : PC_ERR_DEVICE;
    }
    if (pc__finite_watched && status == PC_OK)
        status = pc__finite_check(call);
    if (status == PC_OK && pc__tape_wants(call))
        status = pc__tape_record(call);
    if (status != PC_OK)
        discard_outputs(call, call->n_out);
    return status;
}

pc_status pc__call_all(int op, pc_tensor **in, int n_in, const void *attributes, size_t attribute_bytes,
                       pc_tensor **out)
{
    const pc__op *row = &pc__ops[op];
    pc_call call = {.op = row,
                    .in = in,
                    .n_in = n_in,
                    .n_out = row->n_out,
                    .attributes = attributes,
                    .attribute_bytes = attribute_bytes};
    pc_status status = pc_dispatch(&call);
    for (int i = 0; i < row->n_out; i++)
        out[i] = status == PC_OK ? call.out[i] : NULL;
    return status;
}

pc_tensor *pc__call(int op, pc_tensor **in, int n_in, const void *attributes, size_t attribute_bytes)
{
    pc_tensor *out[PC__OUT_MAX] = {NULL};
    (void)pc__call_all(op, in, n_in, attributes, attribute_bytes, out);
    for (int i = 1; i < PC__OUT_MAX; i++)
        pc__tensor_discard(out[i]);
    return out[0];
}

pc_status pc__call_in_place(int op, pc_tensor *to, pc_tensor **in, int n_in, const void *attributes,
                            size_t attribute_bytes)
{
    if (!to)
        return pc_failed() ? pc_error_last()->status
                           : pc__fail(PC_ERR_ARGUMENT, "%s: the tensor to write is NULL", pc__ops[op].name);
    pc_call call = {.op = &pc__ops[op],
                    .in = in,
                    .n_in = n_in,
                    .n_out = 1,
                    .out = {to},
                    .attributes = attributes,
                    .attribute_bytes = attribute_bytes};
    return pc_dispatch(&call);
}

pc_status pc__set_grad(pc__grad *grad, int i, pc_tensor *value)
{
    grad->in_grad[i] = value;
    return value ? PC_OK : pc_error_last()->status;
}
