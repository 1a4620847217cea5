/* builder.c: cuDNN's descriptors: attributes one by one, and the operations that graphs are made of. */
#include "cuda/cudnn/builder.h"

#if PC__HAVE_CUDNN

cudnnBackendDescriptor_t pc__cudnn_make(pc__cudnn_builder *b, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t made = NULL;
    b->failed |=
        b->count == PC__CUDNN_DESCRIPTORS || pc__cudnn.BackendCreateDescriptor(type, &made) != CUDNN_STATUS_SUCCESS;
    if (made)
        b->made[b->count++] = made;
    return made;
}

void pc__cudnn_set(pc__cudnn_builder *b, cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    b->failed = b->failed || pc__cudnn.BackendSetAttribute(of, name, type, count, values) != CUDNN_STATUS_SUCCESS;
}

void pc__cudnn_set_descriptor(pc__cudnn_builder *b, cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                              cudnnBackendDescriptor_t value)
{
    pc__cudnn_set(b, of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void pc__cudnn_finish(pc__cudnn_builder *b, cudnnBackendDescriptor_t made)
{
    b->failed = b->failed || pc__cudnn.BackendFinalize(made) != CUDNN_STATUS_SUCCESS;
}

void pc__cudnn_destroy(cudnnBackendDescriptor_t *made, int count)
{
    for (int i = 0; i < count; i++)
        if (made[i])
            (void)pc__cudnn.BackendDestroyDescriptor(made[i]);
}

/* --- operations --- */

cudnnBackendDescriptor_t pc__cudnn_tensor_make(pc__cudnn_builder *b, const pc__cudnn_tensor *t)
{
    const int64_t alignment = t->by_value ? (int64_t)sizeof(float) : 16;
    const cudnnBackendDescriptor_t made = pc__cudnn_make(b, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    pc__cudnn_set(b, made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &t->id);
    pc__cudnn_set(b, made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &t->type);
    pc__cudnn_set(b, made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, t->shape);
    pc__cudnn_set(b, made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, t->strides);
    pc__cudnn_set(b, made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    pc__cudnn_set(b, made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &t->between);
    if (t->by_value)
        pc__cudnn_set(b, made, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &t->by_value);
    pc__cudnn_finish(b, made);
    return made;
}

void pc__cudnn_add_operation(pc__cudnn_builder *b, cudnnBackendDescriptor_t made)
{
    b->failed = b->failed || b->operations == PC__CUDNN_OPERATIONS;
    if (!b->failed)
        b->operation[b->operations++] = made;
}

/* NaN stays NaN. */
void pc__cudnn_add_pointwise(pc__cudnn_builder *b, const pc__cudnn_pointwise *p)
{
    const cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN;
    const cudnnBackendDescriptor_t what = pc__cudnn_make(b, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    pc__cudnn_set(b, what, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &p->mode);
    pc__cudnn_set(b, what, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &p->type);
    if (p->mode == CUDNN_POINTWISE_RELU_FWD)
        pc__cudnn_set(b, what, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, &nan);
    if (p->mode == CUDNN_POINTWISE_GEN_INDEX)
        pc__cudnn_set(b, what, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &p->axis);
    pc__cudnn_finish(b, what);
    const cudnnBackendDescriptor_t made = pc__cudnn_make(b, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    pc__cudnn_set_descriptor(b, made, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
    pc__cudnn_set_descriptor(b, made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, p->x);
    if (p->with)
        pc__cudnn_set_descriptor(b, made, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, p->with);
    if (p->choose)
        pc__cudnn_set_descriptor(b, made, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, p->choose);
    pc__cudnn_set_descriptor(b, made, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, p->y);
    pc__cudnn_finish(b, made);
    pc__cudnn_add_operation(b, made);
}

/* Sums are float32. */
void pc__cudnn_add_matmul(pc__cudnn_builder *b, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t with,
                          cudnnBackendDescriptor_t y)
{
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    const cudnnBackendDescriptor_t what = pc__cudnn_make(b, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    pc__cudnn_set(b, what, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    pc__cudnn_finish(b, what);
    const cudnnBackendDescriptor_t made = pc__cudnn_make(b, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    pc__cudnn_set_descriptor(b, made, CUDNN_ATTR_OPERATION_MATMUL_ADESC, x);
    pc__cudnn_set_descriptor(b, made, CUDNN_ATTR_OPERATION_MATMUL_BDESC, with);
    pc__cudnn_set_descriptor(b, made, CUDNN_ATTR_OPERATION_MATMUL_CDESC, y);
    pc__cudnn_set_descriptor(b, made, CUDNN_ATTR_OPERATION_MATMUL_DESC, what);
    pc__cudnn_finish(b, made);
    pc__cudnn_add_operation(b, made);
}

void pc__cudnn_add_reduction(pc__cudnn_builder *b, cudnnReduceTensorOp_t by, cudnnBackendDescriptor_t x,
                             cudnnBackendDescriptor_t y)
{
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    const cudnnBackendDescriptor_t what = pc__cudnn_make(b, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    pc__cudnn_set(b, what, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &by);
    pc__cudnn_set(b, what, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    pc__cudnn_finish(b, what);
    const cudnnBackendDescriptor_t made = pc__cudnn_make(b, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    pc__cudnn_set_descriptor(b, made, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    pc__cudnn_set_descriptor(b, made, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    pc__cudnn_set_descriptor(b, made, CUDNN_ATTR_OPERATION_REDUCTION_DESC, what);
    pc__cudnn_finish(b, made);
    pc__cudnn_add_operation(b, made);
}

void pc__cudnn_add_reshape(pc__cudnn_builder *b, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t y)
{
    const cudnnBackendDescriptor_t made = pc__cudnn_make(b, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    pc__cudnn_set_descriptor(b, made, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    pc__cudnn_set_descriptor(b, made, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    pc__cudnn_finish(b, made);
    pc__cudnn_add_operation(b, made);
}

cudnnBackendDescriptor_t pc__cudnn_graph_of(pc__cudnn_builder *b)
{
    const cudnnBackendDescriptor_t made = pc__cudnn_make(b, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (b->target->handle)
        pc__cudnn_set(b, made, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &b->target->handle);
    pc__cudnn_set(b, made, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, b->operations, b->operation);
    pc__cudnn_finish(b, made);
    return made;
}

#endif
