/* augment_batch.c: augmenting whole batches, on the device where the pictures are. */
#include "data/augment.h"

#include "ops/epoch.h"
#include "ops/table.h"

static pc_status check(const pc_augment *plan, const pc_tensor *pictures)
{
    if (pictures->ndim != 4)
        return pc__fail(PC_ERR_SHAPE, "augment: pictures of shape %s; it must be [n, height, width, channels]",
                        PC__SHAPE_OF(pictures));
    PC__TRY(pc__augment_check_size(pictures->shape[1], pictures->shape[2], pictures->shape[3]));
    PC__TRY(pc__augment_check_channels(plan, pictures->shape[3]));
    return pc_augment_check(plan);
}

/* The rows as a tensor where the pictures are. */
static pc_tensor *table_of(const pc__augment_plan *plan, const int64_t *samples, int64_t n, const pc_tensor *pictures)
{
    pc__augment_row *rows = pc__alloc((size_t)n * sizeof *rows);
    if (!rows)
        return NULL;
    pc__epoch_table(plan, samples, n, rows);
    pc_tensor *table = pc_from_data(rows, PC_SHAPE(n, PC__AUGMENT_COLUMNS), PC_F64, pictures->storage->device);
    pc__free(rows);
    return table;
}

pc_tensor *pc_augment_batch(const pc_augment *plan, pc_tensor *pictures, pc_tensor *index, uint64_t seed,
                            uint64_t epoch, const int64_t *samples)
{
    PC__NEED_OR(NULL, plan);
    PC__NEED_OR(NULL, pictures);
    PC__NEED_OR(NULL, samples);
    if (check(plan, pictures) != PC_OK)
        return NULL;
    if (index && (index->ndim != 1 || (index->dtype != PC_I64 && index->dtype != PC_I32)))
        return pc__null(PC_ERR_ARGUMENT, "augment: the index is %s %s; it must be int64 or int32 with one dimension",
                        pc_dtype_name(index->dtype), PC__SHAPE_OF(index));
    const pc__augment_plan ranges =
        pc__augment_plan_of(plan, seed, epoch, (int)pictures->shape[1], (int)pictures->shape[2]);
    const pc__augment_attributes attributes = pc__augment_attributes_of(plan);
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *table = table_of(&ranges, samples, index ? index->shape[0] : pictures->shape[0], pictures);
        pc_tensor *places = index ? pc__as_dtype(index, PC_I64) : NULL;
        if (table && (places || !index))
            result = pc_keep(pc__augment(pictures, table, places, &attributes));
    }
    return result;
}
