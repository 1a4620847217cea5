/* zero_weights.c: where pc_zero has the weights. Below stage 3 all of a bucket's lie in one piece of memory, of which each
 * rank steps a part. In stage 3 a rank has its part alone; parameters, and what stands for them in 16 bits, get memory with
 * all of it in front of each call that uses them, and the next buckets' ahead of that where the program says so. The few that
 * were used last stay.
 *
 * A part that lies in host memory (.offload) crosses the bus to its place in front of the gathering.
 *
 * What is gathered when follows from the order of the calls alone, so all ranks gather the same; in a recording it is a part
 * of that, and its memory is a temporary's. */
#include "parallel/zero.h"

#include "device/graph.h"
#include "dist/group.h"
#include "ops/table.h"

#include <paracord/no_grad.h>

enum { STAY = 2 /* a call may use two buckets; beside those that are gathered ahead */ };

static const char elsewhere[] = "it is shared out over the ranks by pc_zero, stage 3; pc_zero_gather it first";

static pc_dtype dtype_of(const pc_zero *z, int b, int kind)
{
    return kind == PC__WHOLE_HALF ? z->half : pc__bucket_dtype(&z->reducer.buckets, b);
}

static void put(pc_tensor *t, pc__storage *storage, int64_t offset)
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
        put(z->reducer.parameter[i], storage, buckets->offset[i]);
    for (int i = 0; i < z->twin_count && kind == PC__WHOLE_HALF; i++)
        if (buckets->of[z->twin[i].parameter] == b)
            put(z->twin[i].tensor, storage, buckets->offset[z->twin[i].parameter]);
}

static void let_go(pc_zero *z, int b, int kind)
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

/* Where this rank's part of bucket b is in all of it. In a scope. */
static pc_tensor *place_in(const pc_zero *z, int b, pc_tensor *whole)
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
        part = place_in(z, b, whole);
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
            let_go(z, b, kind);
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

/* Launches of recorded steps write weights and call nobody here: what was gathered before is what they were. */
static void see_launches(pc_zero *z)
{
    const uint64_t written = times_written(z);
    if (written == z->written)
        return;
    z->written = written;
    count_version(z);
    let_all_go(z);
}

/* What was gathered in a recording is nothing outside of it, and the other way round. */
static pc_status bring(pc_zero *z, int b, int kind)
{
    pc__weights *w = &z->weights[b];
    const pc_stream *stream = pc_stream_current(pc__bucket_device(&z->reducer.buckets, b));
    if (!stream)
        return PC_ERR_DEVICE;
    if (w->whole[kind] && w->recording[kind] != pc__graph_number(stream))
        let_go(z, b, kind);
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

/* All but those that were used last, and those that the call at hand uses. */
static void keep_few(pc_zero *z, int more)
{
    for (;;) {
        int there = more, b = -1, kind = 0;
        for (int i = 0; i < z->reducer.buckets.count * PC__WHOLE_KINDS; i++) {
            const pc__weights *w = &z->weights[i / PC__WHOLE_KINDS];
            const int k = i % PC__WHOLE_KINDS;
            if (!w->whole[k] || (k == PC__WHOLE_OWN && z->gathered))
                continue;
            there++;
            if (w->touched[k] < z->clock && (b < 0 || w->touched[k] < z->weights[b].touched[kind]))
                b = i / PC__WHOLE_KINDS, kind = k;
        }
        if (there <= STAY + z->ahead || b < 0)
            return;
        let_go(z, b, kind);
    }
}

/* Those that come after bucket b on the way: networks go from the last bucket to the first, and back. */
static pc_status look_ahead(pc_zero *z, int b, int kind)
{
    for (int i = 1; i <= z->ahead; i++) {
        const int next = z->reducer.walking ? b + i : b - i;
        if (next < 0 || next >= z->reducer.buckets.count || z->weights[next].whole[kind])
            continue;
        keep_few(z, 1);
        z->weights[next].touched[kind] = z->clock;
        z->weights[next].ahead[kind] = true;
        PC__TRY(bring(z, next, kind));
    }
    return PC_OK;
}

static int kind_of(const pc_zero *z, const pc_tensor *t)
{
    return t == z->reducer.parameter[t->watch->number] ? PC__WHOLE_OWN : PC__WHOLE_HALF;
}

/* The next one is gathered where a call comes to this one. */
static pc_status use(pc_zero *z, int b, int kind)
{
    const bool comes = !z->weights[b].whole[kind] || z->weights[b].ahead[kind];
    if (!z->weights[b].whole[kind])
        keep_few(z, 1);
    z->weights[b].ahead[kind] = false;
    PC__TRY(bring(z, b, kind));
    return comes ? look_ahead(z, b, kind) : PC_OK;
}

/* In front of a call. */
static pc_status used(pc__leaf_set *set, pc_tensor *const *tensors, int n, bool write)
{
    pc_zero *z = (pc_zero *)set;
    if (z->busy)
        return PC_OK;
    if (write && !z->gathered)
        return pc__fail(PC_ERR_STATE, "a parameter is to be written, but %s", elsewhere);
    see_launches(z);
    z->clock++;
    for (int i = 0; i < n; i++)
        if (tensors[i]->watch && tensors[i]->watch->set == set)
            z->weights[z->reducer.buckets.of[tensors[i]->watch->number]].touched[kind_of(z, tensors[i])] = z->clock;
    for (int i = 0; i < n; i++) {
        if (!tensors[i]->watch || tensors[i]->watch->set != set)
            continue;
        const int b = z->reducer.buckets.of[tensors[i]->watch->number], kind = kind_of(z, tensors[i]);
        if (z->gathered && kind == PC__WHOLE_OWN)
            continue;
        PC__TRY(use(z, b, kind));
    }
    return PC_OK;
}

/* --- twins --- */

static pc_status infer_twin(pc_call *call, pc__meta *out)
{
    pc__meta_of(out, call->in[1]);
    return PC_OK;
}

/* A cast whose result was gathered. */
static const pc__op twin_op = {"gathered", PC__OP_view, 1, PC__VIEW, infer_twin, pc__grad_cast};

/* Those that nobody else has any more go. */
static void sweep(pc_zero *z)
{
    int left = 0;
    for (int i = 0; i < z->twin_count; i++) {
        if (atomic_load(&z->twin[i].tensor->references) > 1)
            z->twin[left++] = z->twin[i];
        else
            pc_tensor_free(z->twin[i].tensor);
    }
    z->twin_count = left;
}

static pc_tensor *make_twin(pc_zero *z, pc_tensor *leaf, int b)
{
    pc_tensor *in[] = {leaf,
                       pc__bucket_view(&z->reducer.buckets, leaf->watch->number, z->weights[b].whole[PC__WHOLE_HALF])};
    pc_call call = {.op = &twin_op, .in = in, .n_in = 2, .n_out = 1};
    z->busy = true;
    const bool made = in[1] && pc_dispatch(&call) == PC_OK;
    z->busy = false;
    pc_tensor_free(in[1]);
    if (!made)
        return NULL;
    call.out[0]->watch = leaf->watch;
    z->twin[z->twin_count++] = (pc__twin){pc_tensor_retain(call.out[0]), leaf->watch->number};
    return call.out[0];
}

static pc_tensor *half(pc__leaf_set *set, pc_tensor *leaf, pc_dtype dtype)
{
    pc_zero *z = (pc_zero *)set;
    const int b = z->reducer.buckets.of[leaf->watch->number];
    if (z->gathered)
        return pc__as_dtype(leaf, dtype);
    if (z->twin_count >= z->reducer.count || z->half != dtype)
        sweep(z);
    if (z->half != dtype && z->twin_count)
        return pc__as_dtype(leaf, dtype);
    for (int i = 0; z->half != dtype && i < z->reducer.buckets.count; i++)
        let_go(z, i, PC__WHOLE_HALF);
    z->half = dtype;
    pc_tensor stand = {.dtype = (uint8_t)dtype, .watch = leaf->watch}, *list[] = {&stand};
    if (pc__grow((void **)&z->twin, &z->twin_room, z->twin_count, sizeof *z->twin) != PC_OK ||
        used(set, list, 1, false) != PC_OK)
        return NULL;
    return make_twin(z, leaf, b);
}

/* --- stages --- */

static pc__storage *away(const pc_zero *z, int b, size_t size)
{
    return pc__storage_elsewhere(pc__bucket_device(&z->reducer.buckets, b),
                                 (size_t)z->reducer.buckets.bucket[b].count * size, elsewhere);
}

/* The parameters' numbers go where the bucket has them. */
static pc_status lay(pc_zero *z, int b)
{
    const pc__buckets *buckets = &z->reducer.buckets;
    pc__weights *w = &z->weights[b];
    w->whole[PC__WHOLE_OWN] = pc__bucket_part(buckets, b, 1, pc__bucket_dtype(buckets, b));
    if (!w->whole[PC__WHOLE_OWN])
        return pc_error_last()->status;
    PC__TRY(pc__bucket_clear_gaps(buckets, b, w->whole[PC__WHOLE_OWN]));
    for (int i = buckets->bucket[b].first; i <= buckets->bucket[b].last; i++) {
        pc_tensor *t = z->reducer.parameter[i], *place = pc__bucket_view(buckets, i, w->whole[PC__WHOLE_OWN]);
        const pc_status status = place ? pc_copy(place, t) : pc_error_last()->status;
        if (status == PC_OK) {
            memcpy(t->strides, place->strides, sizeof t->strides);
            put(t, place->storage, place->offset);
        }
        pc_tensor_free(place);
        PC__TRY(status);
    }
    w->own = pc_tensor_retain(place_in(z, b, w->whole[PC__WHOLE_OWN]));
    return w->own ? PC_OK : pc_error_last()->status;
}

/* The same numbers in pinned host memory. The caller owns it. */
static pc_tensor *to_host(pc_tensor *part)
{
    pc__meta meta;
    pc__meta_contiguous(&meta, (pc_dtype)part->dtype, part->ndim, part->shape);
    pc_tensor *t = pc__tensor_hosted(&meta, pc_tensor_device(part), "a part of pc_zero's weights");
    if (t && pc_copy(t, part) == PC_OK)
        return t;
    pc_tensor_free(t);
    return NULL;
}

/* Stage 3: this rank's part gets memory of its own, and the rest goes. */
static pc_status share_out(pc_zero *z, int b)
{
    pc__weights *w = &z->weights[b];
    pc_tensor *all = w->own;
    w->own = z->offload ? to_host(all) : pc_tensor_retain(pc_clone(all));
    pc_tensor_free(all);
    w->elsewhere[PC__WHOLE_OWN] = away(z, b, pc_dtype_size(pc__bucket_dtype(&z->reducer.buckets, b)));
    w->elsewhere[PC__WHOLE_HALF] = away(z, b, pc_dtype_size(PC_BF16));
    if (!w->own || !w->elsewhere[PC__WHOLE_OWN] || !w->elsewhere[PC__WHOLE_HALF])
        return pc_error_last()->status;
    let_go(z, b, PC__WHOLE_OWN);
    return PC_OK;
}

static pc_status open_bus(pc_zero *z)
{
    const pc_device device = pc__bucket_device(&z->reducer.buckets, 0);
    if (z->stage < 3 || !z->offload || !z->ahead || device.type == PC_CPU)
        return PC_OK;
    z->event = pc_event_new(device);
    z->bus = pc_stream(device);
    return z->event && z->bus ? PC_OK : pc_error_last()->status;
}

pc_status pc__zero_lay(pc_zero *z)
{
    z->weights = pc__calloc((size_t)z->reducer.buckets.count, sizeof *z->weights);
    pc_status status = z->weights ? open_bus(z) : PC_ERR_MEMORY;
    for (int b = 0; b < z->reducer.buckets.count && status == PC_OK; b++)
        PC_SCOPE {
            status = lay(z, b);
            if (status == PC_OK && z->stage == 3)
                status = share_out(z, b);
        }
    if (status == PC_OK && z->stage == 3) {
        z->reducer.set.used = used;
        z->reducer.set.half = half;
    }
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
        let_go(z, b, kind);
}

pc_status pc__zero_gather(pc_zero *z)
{
    see_launches(z);
    for (int b = 0; b < z->reducer.buckets.count; b++)
        PC__TRY(bring(z, b, PC__WHOLE_OWN));
    z->gathered = true;
    z->reducer.set.whole = ++z->gatherings;
    return PC_OK;
}

/* What the program has made of the weights meanwhile counts. */
static pc_status take_part(pc_zero *z, int b)
{
    pc_tensor *part = place_in(z, b, z->weights[b].whole[PC__WHOLE_OWN]);
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

void pc__zero_weights_free(pc_zero *z)
{
    for (int b = 0; z->weights && b < z->reducer.buckets.count; b++) {
        pc__weights *w = &z->weights[b];
        pc_tensor_free(w->own);
        for (int kind = 0; kind < PC__WHOLE_KINDS; kind++) {
            pc_tensor_free(w->whole[kind]);
            pc__storage_drop(w->elsewhere[kind]);
        }
    }
    for (int i = 0; i < z->twin_count; i++) {
        z->twin[i].tensor->watch = NULL;
        pc_tensor_free(z->twin[i].tensor);
    }
    pc_event_free(z->event);
    pc_stream_free(z->bus);
    pc__free(z->weights);
    pc__free(z->twin);
}
