/* zero_whole.c: all of a bucket's weights, gathered and let go. A part that lies in host memory (.offload) crosses the bus to
 * its place in front of the gathering. In a recording what is gathered is a part of that, and its memory is a temporary's. */
#include "parallel/zero_whole.h"

#include "device/graph.h"
#include "dist/group.h"
#include "ops/table.h"

#include <paracord/no_grad.h>

static pc_dtype dtype_of(const pc_zero *z, int b, int kind)
{
    return kind == PC__WHOLE_HALF ? z->half : pc__bucket_dtype(&z->reducer.buckets, b);
}

void pc__zero_put(pc_tensor *t, pc__storage *storage, int64_t offset)
{
    pc__storage *before = t->storage;
    pc__storage_retain(storage);
    t->storage = storage;
    t->offset = offset;
    pc__storage_drop(before);
}

/* Parameters of bucket b, or their twins, lie there from now on. */
static void put_all(pc_zero *z, int b, int kind, pc__storage *storage)
{
    const pc__buckets *buckets = &z->reducer.buckets;
    atomic_store(&storage->version, z->version); /* the tape's values are these weights, wherever they lie */
    for (int i = buckets->bucket[b].first; i <= buckets->bucket[b].last && kind == PC__WHOLE_OWN; i++)
        pc__zero_put(z->reducer.parameter[i], storage, buckets->offset[i]);
    for (int i = 0; i < z->twin_count && kind == PC__WHOLE_HALF; i++)
        if (buckets->of[z->twin[i].parameter] == b)
            pc__zero_put(z->twin[i].tensor, storage, buckets->offset[z->twin[i].parameter]);
}

void pc__whole_let_go(pc_zero *z, int b, int kind)
{
    pc__weights *w = &z->weights[b];
    if (!w->whole[kind])
        return;
    put_all(z, b, kind, w->elsewhere[kind]);
    pc_tensor_free(w->whole[kind]);
    w->whole[kind] = NULL;
}

pc_status pc__zero_meet(pc_zero *z, int b, bool group_waits)
{
    const pc_device device = pc__bucket_device(&z->reducer.buckets, b);
    pc_stream *current = pc_stream_current(device);
    if (z->reducer.group->size == 1 || (current && current->backend->immediate))
        return PC_OK;
    pc_stream *group = pc_group_stream(z->reducer.group, device);
    if (!z->event)
        z->event = pc_event_new(device);
    if (!group || !current || !z->event)
        return pc_error_last()->status;
    PC__TRY(pc_event_record(z->event, group_waits ? current : group));
    return pc_event_wait(z->event, group_waits ? group : current);
}

pc_tensor *pc__zero_place(const pc_zero *z, int b, pc_tensor *whole)
{
    const int64_t part = z->reducer.buckets.bucket[b].count / z->reducer.group->size,
                  begins = part * z->reducer.group->rank;
    return pc_slice(whole, 0, begins, begins + part, 1);
}

/* Over the bus; where buckets are gathered ahead, beside what is computed, behind what is queued now. */
static pc_status cross(pc_zero *z, pc_tensor *to, pc_tensor *from)
{
    if (!z->bus)
        return pc_copy(to, from);
    pc_status status = pc_event_record(z->event, pc_stream_current(pc_tensor_device(from)));
    if (status == PC_OK)
        status = pc_event_wait(z->event, z->bus);
    if (status == PC_OK)
        PC_WITH_STREAM(z->bus)
            status = pc_copy(to, from);
    return status;
}

/* All of bucket b, in whole's dtype, from the parts that the ranks have. What lies in host memory crosses the bus to its
 * place first, so that a collective sees the device's memory alone. In a scope. */
static pc_status put_together(pc_zero *z, int b, pc_tensor *whole)
{
    pc_tensor *own = z->weights[b].own, *part;
    if (pc__is_hosted(own->storage)) {
        part = pc__zero_place(z, b, whole);
        PC__TRY(part ? cross(z, part, own) : pc_error_last()->status);
    } else {
        part = pc__as_dtype(own, (pc_dtype)whole->dtype);
    }
    return part ? pc_group_all_gather(z->reducer.group, whole, part) : pc_error_last()->status;
}

/* Behind what is queued now, so that in a recording it can have the memory of what that uses last. */
static pc_status gather(pc_zero *z, int b, int kind)
{
    pc__weights *w = &z->weights[b];
    PC__TRY(pc__zero_meet(z, b, true));
    w->whole[kind] = pc__bucket_part(&z->reducer.buckets, b, 1, dtype_of(z, b, kind));
    pc_status status = w->whole[kind] ? put_together(z, b, w->whole[kind]) : pc_error_last()->status;
    if (status == PC_OK) {
        w->recording[kind] = pc__graph_number(pc_stream_current(pc_tensor_device(w->own)));
        put_all(z, b, kind, w->whole[kind]->storage);
    } else {
        pc_tensor_free(w->whole[kind]);
        w->whole[kind] = NULL;
    }
    return status;
}

/* Weights of one version are the same, whether the program has written them, where they were gathered, or a step. */
static void count_version(pc_zero *z)
{
    for (int i = 0; i < z->reducer.buckets.count * PC__WHOLE_KINDS; i++) {
        const pc_tensor *whole = z->weights[i / PC__WHOLE_KINDS].whole[i % PC__WHOLE_KINDS];
        z->version = whole ? PC__MAX(z->version, atomic_load(&whole->storage->version)) : z->version;
    }
    z->version++;
}

/* What was kept of weights that are not here now is of an earlier version, too. */
static void let_all_go(pc_zero *z)
{
    for (int b = 0; b < z->reducer.buckets.count; b++) {
        for (int kind = z->gathered ? PC__WHOLE_HALF : PC__WHOLE_OWN; kind < PC__WHOLE_KINDS; kind++)
            pc__whole_let_go(z, b, kind);
        for (int kind = 0; kind < PC__WHOLE_KINDS; kind++)
            atomic_store(&z->weights[b].elsewhere[kind]->version, z->version);
    }
}

/* How often steps, or others, have written what this rank has: some of it in each step. */
static uint64_t times_written(const pc_zero *z)
{
    uint64_t times = 0;
    for (int b = 0; b < z->reducer.buckets.count; b++)
        times += atomic_load_explicit(&z->weights[b].own->storage->version, memory_order_relaxed);
    return times;
}

void pc__zero_see_launches(pc_zero *z)
{
    const uint64_t written = times_written(z);
    if (written == z->written)
        return;
    z->written = written;
    count_version(z);
    let_all_go(z);
}

pc_status pc__whole_bring(pc_zero *z, int b, int kind)
{
    pc__weights *w = &z->weights[b];
    const pc_stream *stream = pc_stream_current(pc__bucket_device(&z->reducer.buckets, b));
    if (!stream)
        return PC_ERR_DEVICE;
    if (w->whole[kind] && w->recording[kind] != pc__graph_number(stream))
        pc__whole_let_go(z, b, kind);
    if (w->whole[kind])
        return PC_OK;
    pc_status status = PC_OK;
    z->busy = true;
    PC_SCOPE {
        PC_NO_GRAD {
            status = gather(z, b, kind);
        }
    }
    z->busy = false;
    return status;
}

pc_status pc__zero_spread(pc_zero *z)
{
    pc_status status = PC_OK;
    count_version(z);
    z->written = times_written(z);
    if (z->stage == 3 && !z->gathered) {
        let_all_go(z);
        return PC_OK;
    }
    PC_SCOPE {
        PC_NO_GRAD {
            for (int b = 0; b < z->reducer.buckets.count && status == PC_OK; b++)
                status = put_together(z, b, z->weights[b].whole[PC__WHOLE_OWN]);
        }
    }
    return status;
}

void pc__zero_let_go(pc_zero *z, int b)
{
    for (int kind = z->gathered ? PC__WHOLE_HALF : PC__WHOLE_OWN; kind < PC__WHOLE_KINDS && z->stage == 3; kind++)
        pc__whole_let_go(z, b, kind);
}

pc_status pc__zero_gather(pc_zero *z)
{
    pc__zero_see_launches(z);
    for (int b = 0; b < z->reducer.buckets.count; b++)
        PC__TRY(pc__whole_bring(z, b, PC__WHOLE_OWN));
    z->gathered = true;
    z->reducer.set.whole = ++z->gatherings;
    return PC_OK;
}

/* What the program has made of the weights meanwhile counts. */
static pc_status take_part(pc_zero *z, int b)
{
    pc_tensor *part = pc__zero_place(z, b, z->weights[b].whole[PC__WHOLE_OWN]);
    return part ? pc_copy(z->weights[b].own, part) : pc_error_last()->status;
}

pc_status pc__zero_take_parts(pc_zero *z)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        PC_NO_GRAD {
            for (int b = 0; b < z->reducer.buckets.count && z->gathered && status == PC_OK; b++)
                status = take_part(z, b);
        }
    }
    return status;
}

pc_status pc__zero_release(pc_zero *z)
{
    PC__TRY(pc__zero_take_parts(z));
    z->gathered = false;
    z->reducer.set.whole = 0;
    return pc__zero_spread(z);
}
