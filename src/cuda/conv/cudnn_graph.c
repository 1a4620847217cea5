/* cudnn_graph.c: a convolution as a graph of cuDNN's: the operation itself, forward with bias and ReLU behind it; and
 * running a plan for it, which names the same operands. */
#include "cuda/conv/cudnn_builder.h"

#if PC__HAVE_CUDNN

#include "cuda/runtime/view.h"

/* Names of the operands, and of what only lies between operations. */
enum { ID_X = 1, ID_WEIGHT, ID_Y, ID_BIAS, ID_CONVOLVED, ID_ADDED };

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

/* --- the graph --- */

static cudnnDataType_t type_of(const pc__conv_shape *s)
{
    return s->dtype == PC__CUDA_F16    ? CUDNN_DATA_HALF
           : s->dtype == PC__CUDA_BF16 ? CUDNN_DATA_BFLOAT16
                                       : CUDNN_DATA_FLOAT;
}

/* Shape [n][c][h][w], in memory too in the format of planes, else channels last. What lies between operations is float32
 * and nowhere. */
static cudnnBackendDescriptor_t tensor(pc__cudnn_builder *b, int64_t id, int64_t n, int64_t c, int64_t h, int64_t w)
{
    const bool between = id >= ID_CONVOLVED;
    const cudnnDataType_t type = between ? CUDNN_DATA_FLOAT : type_of(b->shape);
    const bool planes = b->shape->format == PC__CONV_PLANES;
    const int64_t shape[4] = {n, c, h, w}, alignment = 16;
    const int64_t strides[4] = {h * w * c, planes ? h * w : 1, planes ? w : w * c, planes ? 1 : c};
    const cudnnBackendDescriptor_t made = pc__cudnn_make(b, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    pc__cudnn_set(b, made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    pc__cudnn_set(b, made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    pc__cudnn_set(b, made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, shape);
    pc__cudnn_set(b, made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
    pc__cudnn_set(b, made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    pc__cudnn_set(b, made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &between);
    pc__cudnn_finish(b, made);
    return made;
}

static cudnnBackendDescriptor_t result_tensor(pc__cudnn_builder *b, int64_t id)
{
    const pc__conv_shape *s = b->shape;
    return tensor(b, id, s->n, s->o, s->oh, s->ow);
}

/* Taps, steps and borders; sums in float32. */
static cudnnBackendDescriptor_t window(pc__cudnn_builder *b)
{
    const pc__conv_shape *s = b->shape;
    const int64_t dimensions = 2, padding[2] = {s->ph, s->pw}, strides[2] = {s->sh, s->sw}, dilation[2] = {1, 1};
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const cudnnBackendDescriptor_t made = pc__cudnn_make(b, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    pc__cudnn_set(b, made, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dimensions);
    pc__cudnn_set(b, made, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    pc__cudnn_set(b, made, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    pc__cudnn_set(b, made, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, padding);
    pc__cudnn_set(b, made, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, padding);
    pc__cudnn_set(b, made, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides);
    pc__cudnn_set(b, made, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilation);
    pc__cudnn_finish(b, made);
    return made;
}

/* The names that cuDNN has for the same things in the three directions. */
static const struct {
    cudnnBackendDescriptorType_t operation;
    cudnnBackendAttributeName_t alpha, beta, window, x, weight, y;
} names[PC__CONV_DIRECTIONS] = {
    [PC__CONV_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    [PC__CONV_INPUT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    [PC__CONV_WEIGHTS] = {
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}};

static cudnnBackendDescriptor_t convolution(pc__cudnn_builder *b, cudnnBackendDescriptor_t y)
{
    const pc__conv_shape *s = b->shape;
    const float one = 1, zero = 0;
    const cudnnBackendDescriptor_t made = pc__cudnn_make(b, names[s->direction].operation);
    pc__cudnn_set(b, made, names[s->direction].alpha, CUDNN_TYPE_FLOAT, 1, &one);
    pc__cudnn_set(b, made, names[s->direction].beta, CUDNN_TYPE_FLOAT, 1, &zero);
    pc__cudnn_set_descriptor(b, made, names[s->direction].window, window(b));
    pc__cudnn_set_descriptor(b, made, names[s->direction].x, tensor(b, ID_X, s->n, s->c, s->h, s->w));
    pc__cudnn_set_descriptor(b, made, names[s->direction].weight, tensor(b, ID_WEIGHT, s->o, s->c, s->kh, s->kw));
    pc__cudnn_set_descriptor(b, made, names[s->direction].y, y);
    pc__cudnn_finish(b, made);
    return made;
}

/* to = mode(from, with); `with` NULL: of one operand. NaN stays NaN. */
static cudnnBackendDescriptor_t pointwise(pc__cudnn_builder *b, cudnnPointwiseMode_t mode,
                                          cudnnBackendDescriptor_t from, cudnnBackendDescriptor_t with,
                                          cudnnBackendDescriptor_t to)
{
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN;
    const cudnnBackendDescriptor_t what = pc__cudnn_make(b, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    pc__cudnn_set(b, what, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    pc__cudnn_set(b, what, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type);
    if (mode == CUDNN_POINTWISE_RELU_FWD)
        pc__cudnn_set(b, what, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, &nan);
    pc__cudnn_finish(b, what);
    const cudnnBackendDescriptor_t made = pc__cudnn_make(b, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    pc__cudnn_set_descriptor(b, made, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
    pc__cudnn_set_descriptor(b, made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, from);
    if (with)
        pc__cudnn_set_descriptor(b, made, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, with);
    pc__cudnn_set_descriptor(b, made, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to);
    pc__cudnn_finish(b, made);
    return made;
}

cudnnBackendDescriptor_t pc__cudnn_graph(pc__cudnn_builder *b)
{
    const pc__conv_shape *s = b->shape;
    const bool forward = s->direction == PC__CONV_FORWARD, bias = forward && s->bias, relu = forward && s->relu;
    cudnnBackendDescriptor_t operations[3], at = result_tensor(b, bias || relu ? ID_CONVOLVED : ID_Y);
    int64_t count = 0;
    operations[count++] = convolution(b, at);
    if (bias) {
        const cudnnBackendDescriptor_t added = result_tensor(b, relu ? ID_ADDED : ID_Y);
        operations[count++] = pointwise(b, CUDNN_POINTWISE_ADD, at, tensor(b, ID_BIAS, 1, s->o, 1, 1), added);
        at = added;
    }
    if (relu)
        operations[count++] = pointwise(b, CUDNN_POINTWISE_RELU_FWD, at, NULL, result_tensor(b, ID_Y));
    const cudnnBackendDescriptor_t made = pc__cudnn_make(b, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (b->target->handle)
        pc__cudnn_set(b, made, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &b->target->handle);
    pc__cudnn_set(b, made, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, operations);
    pc__cudnn_finish(b, made);
    return made;
}

/* --- running --- */

cudnnStatus_t pc__cudnn_run(cudnnHandle_t handle, const pc__cudnn_plan *plan, const pc__conv_shape *shape,
                            const pc__cudnn_operands *o)
{
    const bool forward = shape->direction == PC__CONV_FORWARD;
    const void *const y = forward ? o->result : o->dy;
    const void *const x = shape->direction == PC__CONV_INPUT ? o->result : o->x;
    const void *const weight = shape->direction == PC__CONV_WEIGHTS ? o->result : o->weight;
    const void *const pointers[4] = {x, weight, y, o->bias};
    const int64_t ids[4] = {ID_X, ID_WEIGHT, ID_Y, ID_BIAS}, count = forward && shape->bias && !plan->bare ? 4 : 3;
    pc__cudnn_builder b = {0};
    const cudnnBackendDescriptor_t pack = pc__cudnn_make(&b, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pc__cudnn_set(&b, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids);
    pc__cudnn_set(&b, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers);
    pc__cudnn_set(&b, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &o->workspace);
    pc__cudnn_finish(&b, pack);
    const cudnnStatus_t status = b.failed ? CUDNN_STATUS_BAD_PARAM : pc__cudnn.BackendExecute(handle, plan->plan, pack);
    pc__cudnn_destroy(b.made, b.count);
    return status;
}

#endif
