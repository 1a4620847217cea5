/* buckets.c: which gradients lie together. Gradients come in about the opposite order of the parameters, so buckets are
 * cut from the end. */
#include "dist/buckets.h"

#include "ops/table.h"

enum { ALIGNED = 256 };

static size_t room_of(const pc_tensor *parameter)
{
    const size_t bytes = (size_t)pc_tensor_count(parameter) * pc_dtype_size((pc_dtype)parameter->dtype);
    return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

static bool fits(const pc_tensor *a, const pc_tensor *b)
{
    return a->dtype == b->dtype && pc_device_equal(pc_tensor_device(a), pc_tensor_device(b));
}

pc_tensor *pc__bucket_view(pc_tensor *flat, const pc_tensor *parameter, int64_t offset)
{
    pc__meta meta;
    pc__meta_like(&meta, parameter, (pc_dtype)parameter->dtype);
    meta.view_of = flat;
    meta.offset = offset;
    return pc__tensor_unscoped(&meta, pc_tensor_device(flat));
}

/* Parameters from..to, the last one first. */
static pc_status fill(pc__buckets *b, pc_tensor *const *parameters, int from, int to, size_t bytes)
{
    PC__TRY(pc__grow((void **)&b->bucket, &b->room, b->count, sizeof *b->bucket));
    pc__bucket *bucket = &b->bucket[b->count];
    const pc_dtype dtype = (pc_dtype)parameters[to]->dtype;
    const int64_t n = (int64_t)(bytes / pc_dtype_size(dtype));
    *bucket = (pc__bucket){.first = from, .last = to};
    bucket->flat = pc_tensor_retain(pc_zeros(pc_shape_of(1, &n), dtype, pc_tensor_device(parameters[to])));
    if (!bucket->flat)
        return pc_error_last()->status;
    b->count++;
    size_t at = 0;
    for (int i = to; i >= from; i--) {
        b->of[i] = b->count - 1;
        b->watch[i].place = pc__bucket_view(bucket->flat, parameters[i], (int64_t)(at / pc_dtype_size(dtype)));
        if (!b->watch[i].place)
            return pc_error_last()->status;
        at += room_of(parameters[i]);
    }
    return PC_OK;
}

pc_status pc__buckets_make(pc__buckets *buckets, pc_tensor *const *parameters, int count, double bytes, int parts)
{
    buckets->watch = pc__calloc((size_t)count, sizeof *buckets->watch);
    buckets->of = pc__calloc((size_t)count, sizeof *buckets->of);
    if (!buckets->watch || !buckets->of)
        return PC_ERR_MEMORY;
    for (int to = count - 1; to >= 0;) {
        size_t total = room_of(parameters[to]);
        int from = to;
        while (from > 0 && (double)total < bytes && fits(parameters[from - 1], parameters[to]))
            total += room_of(parameters[--from]);
        const size_t whole = (size_t)parts * ALIGNED;
        PC__TRY(fill(buckets, parameters, from, to, (total + whole - 1) / whole * whole));
        to = from - 1;
    }
    return PC_OK;
}

void pc__buckets_free(pc__buckets *buckets, int parameters)
{
    for (int i = 0; i < parameters && buckets->watch; i++)
        pc_tensor_free(buckets->watch[i].place);
    for (int i = 0; i < buckets->count; i++)
        pc_tensor_free(buckets->bucket[i].flat);
    pc__free(buckets->bucket);
    pc__free(buckets->watch);
    pc__free(buckets->of);
}
