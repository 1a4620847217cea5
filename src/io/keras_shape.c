/* keras_shape.c: shapes through the nodes of a model, and so of the weights. */
#include "io/keras_shape.h"

#define SIZES_MAX ((int64_t)1 << 36) /* of one dimension: what the next layer makes of it still fits */

pc__same pc__keras_same(int64_t size, int64_t window, int64_t dilation, int64_t stride)
{
    int64_t reach = (window - 1) * dilation + 1, out = (size + stride - 1) / stride;
    int64_t total = PC__MAX((out - 1) * stride + reach - size, 0);
    return (pc__same){total / 2, total - total / 2};
}

int pc__keras_axis(const pc__keras_layer *layer, int rank)
{
    if (layer->axis == 0 || layer->axis == -1)
        return rank - 1;
    int at = layer->axis < 0 ? rank + layer->axis : layer->axis - 1;
    return at >= 0 && at < rank ? at : -1;
}

static pc__keras_flow flow_of(const pc__keras_model *model, int node)
{
    pc__keras_flow flow = {0};
    flow.rank = node < 0 ? model->input_rank : model->nodes[node].rank;
    memcpy(flow.shape, node < 0 ? model->input_shape : model->nodes[node].shape, sizeof flow.shape);
    return flow;
}

/* What the file states of a shape must be what comes out here: else one of both is misread. */
static pc_status agree(pc__keras_layer *layer, pc__keras_node *node, const pc__keras_flow *out)
{
    bool same = !node->rank || !out->rank || node->rank == out->rank;
    for (int i = 0; same && i < node->rank && out->rank; i++)
        same = node->shape[i] < 0 || out->shape[i] < 0 || node->shape[i] == out->shape[i];
    if (!same)
        return pc__keras_refuse(layer, PC_ERR_FORMAT, "does not give the shape that the file says it gives");
    for (int i = 0; i < out->rank; i++)
        if (out->shape[i] > SIZES_MAX)
            return pc__keras_refuse(layer, PC_ERR_FORMAT, "gives an absurd shape");
    if (out->rank) {
        node->rank = out->rank;
        memcpy(node->shape, out->shape, sizeof node->shape);
    }
    return PC_OK;
}

pc_status pc__keras_node_shape(pc__keras_model *model, int node, pc__keras_wants *wants)
{
    pc__keras_node *at = &model->nodes[node];
    pc__keras_layer *layer = &model->layers[at->layer];
    *wants = (pc__keras_wants){0};
    if (layer->kind == PC__KERAS_UNKNOWN || layer->refused)
        return layer->refused ? layer->refused
                              : PC_ERR_UNSUPPORTED; /* its shape is what the file states, if anything */
    pc__keras_flow out = {0}, *in = pc__calloc((size_t)at->count + 1, sizeof *in);
    if (!in)
        return PC_ERR_MEMORY;
    for (int i = 0; i < at->count; i++)
        in[i] = flow_of(model, model->edges[at->first + i]);
    pc_status status = pc__keras_rules[layer->kind](layer, in, at->count, &out, wants);
    pc__free(in);
    if (status == PC_OK)
        status = agree(layer, at, &out);
    return status;
}

/* A layer that is used again must want the same weights. */
static void give(pc__keras_layer *layer, const pc__keras_wants *wants, bool again)
{
    for (int i = 0; i < wants->count; i++) {
        pc__keras_weight *weight = &layer->weights[i];
        const pc__keras_weight *want = &wants->items[i];
        if (again && memcmp(weight->shape, want->shape, sizeof want->shape) != 0) {
            (void)pc__keras_refuse(layer, PC_ERR_UNSUPPORTED, "is used for inputs of different shapes");
            return;
        }
        weight->word = want->word, weight->fixed = want->fixed, weight->rank = want->rank;
        memcpy(weight->shape, want->shape, sizeof weight->shape);
    }
    layer->weight_count = wants->count;
}

pc_status pc__keras_shapes(pc__keras_model *model)
{
    pc__keras_wants wants;
    bool *seen = pc__calloc((size_t)model->layer_count + 1, sizeof *seen);
    pc_status status = seen ? PC_OK : PC_ERR_MEMORY;
    for (int i = 0; i < model->node_count && status == PC_OK; i++) {
        int layer = model->nodes[i].layer;
        status = pc__keras_node_shape(model, i, &wants);
        if (status == PC_OK)
            give(&model->layers[layer], &wants, seen[layer]);
        seen[layer] = true;
        if (status != PC_ERR_MEMORY)
            status = PC_OK;
    }
    pc__free(seen);
    return status;
}
