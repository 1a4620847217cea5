/* loader_tensors.c: loaders of the rows of tensors. */
#include "data/rows.h"

static pc_status check(pc_tensor *const *tensors, int count)
{
    if (count < 1 || count > PC_FIELDS_MAX)
        return pc__fail(PC_ERR_ARGUMENT, "pc_loader_new_tensors: %d tensors: give 1 to %d", count, PC_FIELDS_MAX);
    for (int k = 0; k < count; k++) {
        if (!tensors[k])
            return pc__fail(PC_ERR_ARGUMENT, "pc_loader_new_tensors: tensor %d is NULL", k);
        if (tensors[k]->ndim == 0)
            return pc__fail(PC_ERR_SHAPE, "pc_loader_new_tensors: tensor %d has no dimensions, and so no rows", k);
        if (tensors[k]->shape[0] != tensors[0]->shape[0])
            return pc__fail(PC_ERR_SHAPE, "pc_loader_new_tensors: %lld rows in tensor 0, and %lld in tensor %d",
                            (long long)tensors[0]->shape[0], (long long)tensors[k]->shape[0], k);
    }
    return PC_OK;
}

static pc_status hold(pc_tensor *t, pc__row_array *a)
{
    PC_SCOPE {
        a->held = pc_tensor_retain(pc_contiguous(pc_to(t, PC_DEVICE_CPU, (pc_dtype)t->dtype, false)));
    }
    if (!a->held)
        return pc_error_last()->status;
    a->memory = pc_data(a->held);
    a->field = (pc_field){(pc_dtype)t->dtype, pc_shape_of(t->ndim - 1, t->shape + 1)};
    return a->memory ? PC_OK : pc_error_last()->status;
}

pc_loader *pc_loader_new_tensors(pc_tensor *const *tensors, int count, pc_batch_options options)
{
    PC__NEED_OR(NULL, tensors);
    pc__row_array arrays[PC_FIELDS_MAX] = {0};
    pc_status status = check(tensors, count);
    for (int k = 0; k < count && status == PC_OK; k++)
        status = hold(tensors[k], &arrays[k]);
    if (status == PC_OK)
        return pc__loader_of_rows(arrays, count, tensors[0]->shape[0], 0, &options);
    pc__row_arrays_close(arrays, PC_FIELDS_MAX);
    return NULL;
}

pc_loader *pc_loader_new_pair(pc_tensor *x, pc_tensor *y, pc_batch_options options)
{
    PC__NEED_OR(NULL, x);
    if (!y && pc_failed()) /* what made it NULL */
        return NULL;
    return pc_loader_new_tensors((pc_tensor *[]){x, y}, y ? 2 : 1, options);
}
