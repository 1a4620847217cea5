/* keras_shape.c: shapes through the layers, and so of the weights. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_part.h"

static pc_status slide(const char *path, const pc__keras_layer *layer, pc__keras_flow *flow)
{
    for (int i = 0; i < 2; i++) {
        int64_t size = flow->shape[i], window = layer->window[i], stride = layer->stride[i];
        if (size < 0)
            continue;
        if (!layer->same && size < window)
            return pc__fail(PC_ERR_SHAPE, "%s: layer '%.64s' needs at least %lld %s and gets %lld", path, layer->name,
                            (long long)window, i ? "columns" : "rows", (long long)size);
        flow->shape[i] = layer->same ? (size + stride - 1) / stride : (size - window) / stride + 1;
    }
    return PC_OK;
}

static void flatten(pc__keras_flow *flow)
{
    int64_t all = flow->rank ? 1 : -1;
    for (int i = 0; i < flow->rank; i++)
        if (all >= 0 && (flow->shape[i] < 0 || __builtin_mul_overflow(all, flow->shape[i], &all)))
            all = -1;
    *flow = (pc__keras_flow){.rank = 1, .shape = {all}};
}

/* What the layer takes must have this many dimensions (beside the batch). */
static pc_status want_rank(const char *path, const pc__keras_layer *layer, pc__keras_flow *flow, int rank)
{
    if (flow->rank == rank)
        return PC_OK;
    if (flow->rank)
        return pc__fail(PC_ERR_UNSUPPORTED, "%s: layer '%.64s' (%s) gets %d dimensions instead of %d%s", path,
                        layer->name, pc__keras_class_name(layer->kind), flow->rank, rank,
                        rank == 1 ? "; a Flatten has to be before it" : "");
    *flow = (pc__keras_flow){.rank = rank, .shape = {-1, -1, -1}};
    return PC_OK;
}

static pc_status past_conv2d(const char *path, const pc__keras_layer *layer, pc__keras_flow *flow,
                             pc__keras_weight *kernel)
{
    PC__TRY(want_rank(path, layer, flow, 3));
    *kernel =
        (pc__keras_weight){.rank = 4, .shape = {layer->window[0], layer->window[1], flow->shape[2], layer->units}};
    PC__TRY(slide(path, layer, flow));
    flow->shape[2] = layer->units;
    return PC_OK;
}

static pc_status past_dense(const char *path, const pc__keras_layer *layer, pc__keras_flow *flow,
                            pc__keras_weight *kernel)
{
    PC__TRY(want_rank(path, layer, flow, 1));
    *kernel = (pc__keras_weight){.rank = 2, .shape = {flow->shape[0], layer->units}};
    flow->shape[0] = layer->units;
    return PC_OK;
}

pc_status pc__keras_flow_past(const char *path, const pc__keras_layer *layer, pc__keras_flow *flow,
                              pc__keras_weight *kernel, pc__keras_weight *bias)
{
    *kernel = *bias = (pc__keras_weight){0};
    if (layer->use_bias)
        *bias = (pc__keras_weight){.rank = 1, .shape = {layer->units}};
    switch (layer->kind) {
    case PC__KERAS_CONV2D:
        PC__TRY(past_conv2d(path, layer, flow, kernel));
        break;
    case PC__KERAS_DENSE:
        PC__TRY(past_dense(path, layer, flow, kernel));
        break;
    case PC__KERAS_MAX_POOL2D:
    case PC__KERAS_AVG_POOL2D:
        PC__TRY(want_rank(path, layer, flow, 3));
        PC__TRY(slide(path, layer, flow));
        break;
    case PC__KERAS_FLATTEN:
        flatten(flow);
        break;
    default:
        break;
    }
    if (layer->activation == PC__KERAS_SOFTMAX)
        PC__TRY(want_rank(path, layer, flow, 1));
    return PC_OK;
}

pc_status pc__keras_shapes(const char *path, pc__keras_model *model)
{
    pc__keras_flow flow = {.rank = model->input_rank};
    memcpy(flow.shape, model->input_shape, sizeof flow.shape);
    for (int i = 0; i < model->layer_count; i++) {
        pc__keras_layer *layer = &model->layers[i];
        PC__TRY(pc__keras_flow_past(path, layer, &flow, &layer->kernel, &layer->bias));
    }
    return PC_OK;
}

#endif
