/* zero_weights.c: where pc_zero has the weights. Below stage 3 all of a bucket's lie in one piece of memory, of which each
 * rank steps a part. In stage 3 a rank has its part alone; parameters, and what stands for them in 16 bits, get memory with
 * all of it in front of each call that uses them, and the next buckets' ahead of that where the program says so. The few that
 * were used last stay. */
#include "parallel/agree.h"
#include "parallel/zero_whole.h"

static pc__storage *away(const pc_zero *z, int b, size_t size)
{
    return pc__storage_elsewhere(pc__bucket_device(&z->reducer.buckets, b),
                                 (size_t)z->reducer.buckets.bucket[b].count * size, PC__ZERO_ELSEWHERE);
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
            pc__zero_put(t, place->storage, place->offset);
        }
        pc_tensor_free(place);
        PC__TRY(status);
    }
    w->own = pc_tensor_retain(pc__zero_place(z, b, w->whole[PC__WHOLE_OWN]));
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

/* Stage 3: this rank's part gets memory of its own. */
static pc_status set_apart(pc_zero *z, int b)
{
    pc__weights *w = &z->weights[b];
    pc_tensor *all = w->own;
    w->own = z->offload ? to_host(all) : pc_tensor_retain(pc_clone(all));
    pc_tensor_free(all);
    w->elsewhere[PC__WHOLE_OWN] = away(z, b, pc_dtype_size(pc__bucket_dtype(&z->reducer.buckets, b)));
    w->elsewhere[PC__WHOLE_HALF] = away(z, b, pc_dtype_size(PC_BF16));
    return w->own && w->elsewhere[PC__WHOLE_OWN] && w->elsewhere[PC__WHOLE_HALF] ? PC_OK : pc_error_last()->status;
}

/* Stage 3: the rest goes, once all ranks have their parts. A bucket at a time, so that there is room for the next one's. */
static pc_status share_out(pc_zero *z, int b, pc_status status)
{
    PC_SCOPE {
        if (status == PC_OK)
            status = lay(z, b);
        if (status == PC_OK)
            status = set_apart(z, b);
    }
    status = pc__agree_on_success(z->reducer.group, status);
    if (status == PC_OK)
        pc__whole_let_go(z, b, PC__WHOLE_OWN);
    return status;
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

/* All ranks come to the first bucket, however they have begun. */
static pc_status share_all(pc_zero *z, pc_status status)
{
    for (int b = 0; b == 0 || (b < z->reducer.buckets.count && status == PC_OK); b++)
        status = share_out(z, b, status);
    if (status == PC_OK) {
        z->reducer.set.used = pc__zero_used;
        z->reducer.set.half = pc__zero_half;
    }
    return status;
}

pc_status pc__zero_lay(pc_zero *z)
{
    z->weights = pc__calloc((size_t)z->reducer.buckets.count, sizeof *z->weights);
    pc_status status = z->weights ? open_bus(z) : PC_ERR_MEMORY;
    if (z->stage == 3)
        return share_all(z, status);
    for (int b = 0; b < z->reducer.buckets.count && status == PC_OK; b++)
        PC_SCOPE {
            status = lay(z, b);
        }
    return status;
}

pc_status pc__zero_put_back(pc_zero *z)
{
    for (int b = 0; z->weights && b < z->reducer.buckets.count; b++)
        if (z->weights[b].own && z->weights[b].elsewhere[PC__WHOLE_OWN])
            PC__TRY(pc__whole_bring(z, b, PC__WHOLE_OWN));
    return PC_OK;
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
