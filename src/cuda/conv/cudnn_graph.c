/* cudnn_graph.c: a convolution as a graph of cuDNN's: the operation itself, forward with bias and ReLU behind it; and
 * running a plan for it, which names the same operands. */
#include "cuda/conv/cudnn.h"

#if PC__HAVE_CUDNN

#include "cuda/runtime/view.h"

/* Names of the operands, and of what only lies between operations. */
enum { ID_X = 1, ID_WEIGHT, ID_Y, ID_BIAS, ID_CONVOLVED, ID_ADDED };

/* --- the graph --- */

static cudnnDataType_t type_of(const pc__conv_shape *s)
{
    return s->dtype == PC__CUDA_F16    ? CUDNN_DATA_HALF
           : s->dtype == PC__CUDA_BF16 ? CUDNN_DATA_BFLOAT16
                                       : CUDNN_DATA_FLOAT;
}

/* Shape [n][c][h][w], in memory too in the format of planes, else channels last. What lies between operations is float32
 * and nowhere. */
static cudnnBackendDescriptor_t tensor(pc__cudnn_builder *b, const pc__conv_shape *s, int64_t id, int64_t n, int64_t c,
                                       int64_t h, int64_t w)
{
    const bool between = id >= ID_CONVOLVED, planes = s->format == PC__CONV_PLANES;
    return pc__cudnn_tensor_make(
        b, &(pc__cudnn_tensor){.id = id,
                               .type = between ? CUDNN_DATA_FLOAT : type_of(s),
                               .shape = {n, c, h, w},
                               .strides = {h * w * c, planes ? h * w : 1, planes ? w : w * c, planes ? 1 : c},
                               .between = between});
}

static cudnnBackendDescriptor_t result_tensor(pc__cudnn_builder *b, const pc__conv_shape *s, int64_t id)
{
    return tensor(b, s, id, s->n, s->o, s->oh, s->ow);
}

/* Taps, steps and borders; sums in float32. */
static cudnnBackendDescriptor_t window(pc__cudnn_builder *b, const pc__conv_shape *s)
{
    const int64_t dimensions = 2, padding[2] = {s->ph, s->pw}, strides[2] = {s->sh, s->sw},
                  dilation[2] = {s->dh ? s->dh : 1, s->dw ? s->dw : 1};
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

static void convolution(pc__cudnn_builder *b, const pc__conv_shape *s, cudnnBackendDescriptor_t y)
{
    const float one = 1, zero = 0;
    const cudnnBackendDescriptor_t made = pc__cudnn_make(b, names[s->direction].operation);
    pc__cudnn_set(b, made, names[s->direction].alpha, CUDNN_TYPE_FLOAT, 1, &one);
    pc__cudnn_set(b, made, names[s->direction].beta, CUDNN_TYPE_FLOAT, 1, &zero);
    pc__cudnn_set_descriptor(b, made, names[s->direction].window, window(b, s));
    pc__cudnn_set_descriptor(b, made, names[s->direction].x, tensor(b, s, ID_X, s->n, s->c, s->h, s->w));
    pc__cudnn_set_descriptor(b, made, names[s->direction].weight,
                             tensor(b, s, ID_WEIGHT, s->o, s->groups ? s->c / s->groups : s->c, s->kh, s->kw));
    pc__cudnn_set_descriptor(b, made, names[s->direction].y, y);
    pc__cudnn_finish(b, made);
    pc__cudnn_add_operation(b, made);
}

cudnnBackendDescriptor_t pc__conv_cudnn_graph(pc__cudnn_builder *b, const pc__conv_shape *s)
{
    const bool forward = s->direction == PC__CONV_FORWARD, bias = forward && s->bias, relu = forward && s->relu;
    pc__cudnn_pointwise p = {.type = CUDNN_DATA_FLOAT, .y = result_tensor(b, s, bias || relu ? ID_CONVOLVED : ID_Y)};
    convolution(b, s, p.y);
    if (bias) {
        p.mode = CUDNN_POINTWISE_ADD, p.x = p.y, p.with = tensor(b, s, ID_BIAS, 1, s->o, 1, 1);
        p.y = result_tensor(b, s, relu ? ID_ADDED : ID_Y);
        pc__cudnn_add_pointwise(b, &p);
    }
    if (relu) {
        p.mode = CUDNN_POINTWISE_RELU_FWD, p.x = p.y, p.with = NULL, p.y = result_tensor(b, s, ID_Y);
        pc__cudnn_add_pointwise(b, &p);
    }
    return pc__cudnn_graph_of(b);
}

/* --- running --- */

cudnnStatus_t pc__conv_cudnn_run(int device, cudaStream_t queue, const pc__cudnn_plan *plan,
                                 const pc__conv_shape *shape, const pc__cudnn_operands *o, char *words, size_t n)
{
    const bool forward = shape->direction == PC__CONV_FORWARD;
    const void *const y = forward ? o->result : o->dy;
    const void *const x = shape->direction == PC__CONV_INPUT ? o->result : o->x;
    const void *const weight = shape->direction == PC__CONV_WEIGHTS ? o->result : o->weight;
    const void *const pointers[4] = {x, weight, y, o->bias};
    const int64_t ids[4] = {ID_X, ID_WEIGHT, ID_Y, ID_BIAS}, count = forward && shape->bias && !plan->bare ? 4 : 3;
    return pc__cudnn_execute(
        device, queue,
        &(pc__cudnn_run){
            .plan = plan->plan, .count = count, .ids = ids, .pointers = pointers, .workspace = o->workspace},
        words, n);
}

#endif
