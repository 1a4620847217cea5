/* keras_front.c: x / 127.5 - 1, Rescaling, Normalization and their like in front of a network, as one preparation. */
#include "io/keras_front.h"

#include <math.h>

#define DEVIATION_LEAST 1e-7 /* Keras divides by no less */
#define CHANNELS PC__KERAS_FRONT_CHANNELS

/* x * scale + offset, by channel. */
typedef struct line {
    double scale[CHANNELS], offset[CHANNELS];
} line;

static bool takes_from(const pc__keras_model *model, int node, int from)
{
    for (int k = 0; k < model->nodes[node].count; k++)
        if (model->edges[model->nodes[node].first + k] == from)
            return true;
    return false;
}

/* The one node that takes from `node`; -1 where there are several or none. */
static int only_taker(const pc__keras_model *model, int node)
{
    int taker = -1;
    for (int i = 0; i < model->node_count; i++)
        if (takes_from(model, i, node)) {
            if (taker >= 0)
                return -1;
            taker = i;
        }
    return taker;
}

/* The same, through channels that are taken apart and put together in another order. */
static int behind(const pc__keras_model *model, int node)
{
    int stack = -1;
    for (int i = 0; i < model->node_count; i++) {
        if (!takes_from(model, i, node))
            continue;
        const pc__keras_layer *layer = &model->layers[model->nodes[i].layer];
        const int next = layer->kind == PC__KERAS_CHANNELS && !layer->invert ? only_taker(model, i) : -1;
        if (next < 0 || (stack >= 0 && next != stack))
            return only_taker(model, node);
        stack = next;
    }
    return stack;
}

static double value_of(const pc__keras_layer *layer, int weight, int channel)
{
    const pc__keras_weight *w = &layer->weights[weight];
    return (double)w->value[w->shape[0] == 1 ? 0 : channel];
}

static void normalization(const pc__keras_layer *layer, int channel, double *scale, double *offset)
{
    const double mean = value_of(layer, 0, channel);
    const double deviation = fmax(sqrt(value_of(layer, 1, channel)), DEVIATION_LEAST);
    *scale = layer->invert ? deviation : 1 / deviation;
    *offset = layer->invert ? mean : -mean / deviation;
}

/* What a layer does, when it is no more than that. */
static bool line_of(const pc__keras_layer *layer, int64_t channels, line *does)
{
    const bool normalizes = layer->kind == PC__KERAS_NORMALIZATION;
    if (!normalizes && layer->kind != PC__KERAS_RESCALING)
        return false;
    for (int w = 0; w < layer->weight_count; w++) {
        const int64_t n = layer->weights[w].shape[0];
        if (!layer->weights[w].value || channels < 1 || channels > CHANNELS || (n != 1 && n != channels))
            return false;
    }
    if (normalizes && layer->weight_count != 2)
        return false;
    bool good = true;
    for (int c = 0; c < CHANNELS; c++) {
        const int from = c < channels ? c : 0;
        does->scale[c] = layer->scale, does->offset[c] = layer->offset;
        if (normalizes)
            normalization(layer, from, &does->scale[c], &does->offset[c]);
        else if (layer->weight_count)
            does->scale[c] = value_of(layer, 0, from), does->offset[c] = value_of(layer, 1, from);
        good = good && isfinite(does->scale[c]) && isfinite(does->offset[c]) && does->scale[c] != 0;
    }
    return good;
}

static bool same(const double values[CHANNELS])
{
    return values[0] == values[1] && values[1] == values[2];
}

/* In the words of a preparation. Where channels are scaled apart, `factor` is what all of them have in common. */
static void put(const line *all, double factor, pc__keras_front *front)
{
    front->rescale = same(all->scale) ? all->scale[0] : factor;
    for (int c = 0; c < CHANNELS; c++) {
        front->std[c] = front->rescale / all->scale[c];
        front->mean[c] = all->offset[c] == 0 ? 0 : -all->offset[c] * front->std[c];
    }
}

static bool prepares(const pc__keras_layer *layer)
{
    return layer->kind == PC__KERAS_RESCALING || layer->kind == PC__KERAS_NORMALIZATION;
}

/* Every way from the picture comes to a Rescaling or Normalization before it comes to other weights or to the end. `raw`
 * has room for each node: what it takes was not prepared. Nodes come behind those that they take from. */
static bool all_prepare(const pc__keras_model *model, bool *raw)
{
    bool found = false;
    for (int i = 0; i < model->node_count; i++) {
        const pc__keras_node *node = &model->nodes[i];
        const pc__keras_layer *layer = &model->layers[node->layer];
        raw[i] = false;
        for (int k = node->first; k < node->first + node->count; k++)
            raw[i] = raw[i] || model->edges[k] == PC__KERAS_PICTURE || raw[model->edges[k]];
        if (raw[i] && !prepares(layer) && (layer->weight_count || i == model->output))
            return false;
        found = found || (raw[i] && prepares(layer));
        raw[i] = raw[i] && !prepares(layer);
    }
    return found;
}

pc_status pc__keras_front_find(const pc__keras_model *model, int last, bool whole, bool *cut, pc__keras_front *front)
{
    const int64_t channels = model->input_rank == 3 ? model->input_shape[2] : 0;
    line all = {{1, 1, 1}, {0, 0, 0}}, one;
    double factor = 1;
    int node = behind(model, PC__KERAS_PICTURE);
    *front = (pc__keras_front){.cut = 0};
    while (node >= 0 && node != last && line_of(&model->layers[model->nodes[node].layer], channels, &one) &&
           (whole || (!front->cut && same(one.scale) && same(one.offset) && one.offset[0] == 0))) {
        factor *= same(one.scale) && same(all.scale) ? one.scale[0] : 1;
        for (int c = 0; c < CHANNELS; c++) {
            all.scale[c] *= one.scale[c];
            all.offset[c] = all.offset[c] * one.scale[c] + one.offset[c];
        }
        cut[node] = true;
        front->cut++;
        node = only_taker(model, node);
    }
    put(&all, factor, front);
    bool *raw = pc__calloc((size_t)model->node_count + 1, sizeof *raw);
    front->found = raw && (front->cut || all_prepare(model, raw));
    pc__free(raw);
    return raw ? PC_OK : PC_ERR_MEMORY;
}
