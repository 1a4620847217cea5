/* augment.c: byte pictures of one size, transformed by a row of numbers each, as floats. No gradient. */
#include "ops/augment.h"

#include "ops/table.h"

pc_status pc__augment_check_size(int64_t height, int64_t width, int64_t channels)
{
    if (height < 1 || width < 1 || height > PC__AUGMENT_SIDE_MAX || width > PC__AUGMENT_SIDE_MAX || channels < 1 ||
        channels > 4 || height * width * channels > INT32_MAX)
        return pc__fail(PC_ERR_ARGUMENT,
                        "augmentation of a picture of %lld x %lld pixels and %lld channels: sides are 1 to "
                        "%d, channels 1 to 4, 2 GiB in all",
                        (long long)width, (long long)height, (long long)channels, PC__AUGMENT_SIDE_MAX);
    return PC_OK;
}

pc_tensor *pc__augment(pc_tensor *pictures, pc_tensor *table, pc_tensor *index,
                       const pc__augment_attributes *attributes)
{
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *in[3] = {pictures ? pc_contiguous(pictures) : NULL, table ? pc_contiguous(table) : NULL,
                            index ? pc_contiguous(index) : NULL};
        result = pc_keep(pc__call(PC__OP_augment, in, index ? 3 : 2, attributes, sizeof *attributes));
    }
    return result;
}

static pc_status check_dtypes(const pc_call *call)
{
    static const struct {
        const char *name;
        pc_dtype dtype;
    } wanted[3] = {{"pictures are", PC_U8}, {"table is", PC_F64}, {"index is", PC_I64}};
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i]->dtype != wanted[i].dtype)
            return pc__fail(PC_ERR_DTYPE, "augment: the %s %s; it takes %s", wanted[i].name,
                            pc_dtype_name(call->in[i]->dtype), pc_dtype_name(wanted[i].dtype));
    return PC_OK;
}

pc_status pc__infer_augment(pc_call *call, pc__meta *out)
{
    const pc_tensor *pictures = call->in[0], *table = call->in[1], *index = call->n_in > 2 ? call->in[2] : NULL;
    PC__TRY(check_dtypes(call));
    if (pictures->ndim != 4)
        return pc__fail(PC_ERR_SHAPE, "augment: pictures of shape %s; it must be [n, height, width, channels]",
                        PC__SHAPE_OF(pictures));
    PC__TRY(pc__augment_check_size(pictures->shape[1], pictures->shape[2], pictures->shape[3]));
    if (index && index->ndim != 1)
        return pc__fail(PC_ERR_SHAPE, "augment: an index of shape %s; it must have one dimension", PC__SHAPE_OF(index));
    const int64_t n = index ? index->shape[0] : pictures->shape[0];
    if (table->ndim != 2 || table->shape[0] != n || table->shape[1] != PC__AUGMENT_COLUMNS)
        return pc__fail(PC_ERR_SHAPE, "augment: a table of shape %s; for %lld pictures it is [%lld, %d]",
                        PC__SHAPE_OF(table), (long long)n, (long long)n, PC__AUGMENT_COLUMNS);
    pc__meta_channels_last(&out[0], PC_F32, (int64_t[]){n, pictures->shape[3], pictures->shape[1], pictures->shape[2]});
    return PC_OK;
}
