/* buckets.c: which gradients lie together. Gradients come in about the opposite order of the parameters, so buckets are
 * cut from the end. */
#include "parallel/buckets.h"

#include "ops/table.h"

enum { ALIGNED = 256 };

static size_t room_for(int64_t count, const pc_tensor *like)
{
    const size_t bytes = (size_t)count * pc_dtype_size((pc_dtype)like->dtype);
    return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

static size_t room_of(const pc_tensor *parameter)
{
    return room_for(pc_tensor_count(parameter), parameter);
}

static bool fits(const pc_tensor *a, const pc_tensor *b)
{
    return a->dtype == b->dtype && pc_device_equal(pc_tensor_device(a), pc_tensor_device(b));
}

/* Parameters from..to, the last one first. */
static pc_status add(pc__buckets *b, int from, int to, size_t bytes)
{
    PC__TRY(pc__grow((void **)&b->bucket, &b->room, b->count, sizeof *b->bucket));
    const size_t size = pc_dtype_size((pc_dtype)b->parameter[to]->dtype);
    b->bucket[b->count] = (pc__bucket){.first = from, .last = to, .count = (int64_t)(bytes / size)};
    size_t at = 0;
    for (int i = to; i >= from; i--) {
        b->of[i] = b->count;
        b->offset[i] = (int64_t)(at / size);
        at += room_of(b->parameter[i]);
    }
    b->bucket[b->count].numbers = (int64_t)(at / size);
    b->count++;
    return PC_OK;
}

pc_status pc__buckets_make(pc__buckets *buckets, pc_tensor *const *parameters, int count, double bytes, int parts,
                           bool numbered)
{
    *buckets = (pc__buckets){.parameter = parameters,
                             .parameters = count,
                             .watch = pc__calloc((size_t)count, sizeof *buckets->watch),
                             .offset = pc__calloc((size_t)count, sizeof *buckets->offset),
                             .of = pc__calloc((size_t)count, sizeof *buckets->of)};
    if (!buckets->watch || !buckets->of || !buckets->offset)
        return PC_ERR_MEMORY;
    for (int to = count - 1; to >= 0;) {
        size_t total = room_of(parameters[to]);
        int from = to;
        while (from > 0 && (double)total < bytes && fits(parameters[from - 1], parameters[to]))
            total += room_of(parameters[--from]);
        if (numbered)
            total += room_for(to - from + 1, parameters[to]);
        const size_t whole = (size_t)parts * ALIGNED;
        PC__TRY(add(buckets, from, to, (total + whole - 1) / whole * whole));
        to = from - 1;
    }
    return PC_OK;
}

void pc__buckets_free(pc__buckets *buckets)
{
    for (int b = 0; b < buckets->count && buckets->watch; b++)
        pc__bucket_close(buckets, b);
    pc__free(buckets->bucket);
    pc__free(buckets->watch);
    pc__free(buckets->offset);
    pc__free(buckets->of);
}

pc_tensor *pc__bucket_view(const pc__buckets *buckets, int i, pc_tensor *flat)
{
    pc__meta meta;
    pc__meta_like(&meta, buckets->parameter[i], (pc_dtype)flat->dtype);
    meta.view_of = flat;
    meta.offset = buckets->offset[i];
    return pc__tensor_unscoped(&meta, pc_tensor_device(flat));
}

pc_tensor *pc__bucket_part(const pc__buckets *buckets, int b, int parts, pc_dtype dtype)
{
    pc__meta meta;
    const int64_t n = buckets->bucket[b].count / parts;
    pc__meta_contiguous(&meta, dtype, 1, &n);
    return pc__tensor_unscoped(&meta, pc__bucket_device(buckets, b));
}

pc_status pc__bucket_clear_gaps(const pc__buckets *buckets, int b, pc_tensor *flat)
{
    const pc__bucket *bucket = &buckets->bucket[b];
    pc_status status = PC_OK;
    for (int i = bucket->last; i >= bucket->first && status == PC_OK; i--) {
        const int64_t end = buckets->offset[i] + pc_tensor_count(buckets->parameter[i]);
        const int64_t next = i > bucket->first ? buckets->offset[i - 1] : bucket->count;
        if (next > end)
            PC_SCOPE {
                status = pc_fill(pc_slice(flat, 0, end, next, 1), 0);
            }
    }
    return status;
}

pc_status pc__bucket_open(pc__buckets *buckets, int b)
{
    pc__bucket *bucket = &buckets->bucket[b];
    if (bucket->flat)
        return PC_OK;
    bucket->flat = pc__bucket_part(buckets, b, 1, pc__bucket_dtype(buckets, b));
    pc_status status = bucket->flat ? pc__bucket_clear_gaps(buckets, b, bucket->flat) : pc_error_last()->status;
    for (int i = bucket->first; i <= bucket->last && status == PC_OK; i++) {
        buckets->watch[i].place = pc__bucket_view(buckets, i, bucket->flat);
        status = buckets->watch[i].place ? PC_OK : pc_error_last()->status;
    }
    if (status != PC_OK)
        pc__bucket_close(buckets, b);
    return status;
}

void pc__bucket_close(pc__buckets *buckets, int b)
{
    pc__bucket *bucket = &buckets->bucket[b];
    for (int i = bucket->first; i <= bucket->last; i++) {
        pc_tensor_free(buckets->watch[i].place);
        buckets->watch[i].place = NULL;
    }
    pc_tensor_free(bucket->flat);
    bucket->flat = NULL;
}
