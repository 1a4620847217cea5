/* npy_tensor.c: tensors from and to .npy files. */
#include "io/npy.h"
#include "tensor/read.h"
#include "tensor/tensor.h"

static const pc_dtype dtypes[PC__NPY_TYPE_COUNT] = {
    [PC__NPY_F64] = PC_F64, [PC__NPY_F32] = PC_F32, [PC__NPY_F16] = PC_F16,  [PC__NPY_I64] = PC_I64,
    [PC__NPY_I32] = PC_I32, [PC__NPY_U8] = PC_U8,   [PC__NPY_BOOL] = PC_BOOL};

pc_dtype pc__npy_dtype(pc__npy_type type)
{
    return dtypes[type];
}

pc_tensor *pc_npy_load(const char *path, pc_device device)
{
    PC__NEED_OR(NULL, path);
    pc__npy array;
    if (pc__device_check(device, "pc_npy_load") != PC_OK || pc__npy_read(path, &array) != PC_OK)
        return NULL;
    pc_tensor *t = pc_from_data(array.data, pc_shape_of(array.rank, array.shape), dtypes[array.type], device);
    pc__npy_free(&array);
    return t;
}

pc_status pc_npy_save(const pc_tensor *t, const char *path)
{
    PC__NEED(t);
    PC__NEED(path);
    if (t->dtype == PC_BF16)
        return pc__fail(PC_ERR_DTYPE,
                        "pc_npy_save: %s: .npy files have no bfloat16; save pc_cast(t, PC_F32), which holds "
                        "every value of it",
                        path);
    pc__npy array = {.rank = t->ndim};
    while (dtypes[array.type] != (pc_dtype)t->dtype)
        array.type++;
    memcpy(array.shape, t->shape, sizeof array.shape);
    size_t bytes = (size_t)pc_tensor_count(t) * pc_dtype_size(t->dtype);
    array.data = pc__alloc(bytes);
    if (!array.data)
        return PC_ERR_MEMORY;
    pc_status status = pc__read(t, array.data, bytes, "pc_npy_save");
    if (status == PC_OK)
        status = pc__npy_write(path, &array);
    pc__npy_free(&array);
    return status;
}
