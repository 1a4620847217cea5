/* lacking.c: what ranks tell each other of parameters that they have no gradient of. */
#include "parallel/lacking.h"

#include <paracord/ops.h>

pc_status pc__lacking_open(pc__reducer *r, bool apart)
{
    r->number_of = pc__calloc((size_t)r->count, sizeof *r->number_of);
    if (!r->number_of)
        return PC_ERR_MEMORY;
    if (!apart)
        return PC_OK;
    pc__meta meta;
    const int64_t n = r->count;
    pc__meta_contiguous(&meta, PC_F32, 1, &n);
    r->numbers = pc__tensor_unscoped(&meta, pc__bucket_device(&r->buckets, 0));
    return r->numbers ? pc_fill(r->numbers, 0) : pc_error_last()->status;
}

void pc__lacking_close(pc__reducer *r)
{
    for (int i = 0; r->number_of && i < r->count; i++)
        pc_tensor_free(r->number_of[i]);
    pc_tensor_free(r->numbers);
    pc__free(r->number_of);
}

/* Of parameters i..i + n - 1 of one bucket. The caller owns it. */
static pc_tensor *numbers_of(const pc__reducer *r, int i, int64_t n)
{
    const pc__bucket *bucket = &r->buckets.bucket[r->buckets.of[i]];
    pc_tensor *line = r->numbers ? r->numbers : bucket->flat;
    pc__meta meta;
    pc__meta_contiguous(&meta, (pc_dtype)line->dtype, 1, &n);
    meta.view_of = line;
    meta.offset = r->numbers ? i : bucket->numbers + i - bucket->first;
    return pc__tensor_unscoped(&meta, pc_tensor_device(line));
}

static pc_status write(const pc__reducer *r, int i, int64_t n, double value)
{
    pc_tensor *numbers = numbers_of(r, i, n);
    const pc_status status = numbers ? pc_fill(numbers, value) : pc_error_last()->status;
    pc_tensor_free(numbers);
    return status;
}

/* What earlier passes have said of it stands where they are added to. */
pc_status pc__lacking_note(pc__reducer *r, int i)
{
    pc__leaf_watch *watch = &r->buckets.watch[i];
    if (r->how.adds && r->how.adds(r))
        return PC_OK;
    if (!r->number_of[i])
        r->number_of[i] = numbers_of(r, i, 1);
    if (!r->number_of[i])
        return pc_error_last()->status;
    watch->given = false;
    watch->others = r->number_of[i];
    return pc_fill(r->number_of[i], 0);
}

pc_status pc__lacking_tell(pc__reducer *r, int first, int last)
{
    for (int i = first; i <= last; i++) {
        const int from = i;
        while (i <= last && r->buckets.watch[i].given)
            i++;
        if (i > from)
            PC__TRY(write(r, from, i - from, 1));
    }
    return PC_OK;
}

pc_tensor *pc__lacking_number(const pc__reducer *r, int i)
{
    return r->buckets.watch[i].given ? NULL : r->buckets.watch[i].others;
}
