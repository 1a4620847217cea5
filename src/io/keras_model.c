/* keras_model.c: the description itself. */
#include "io/keras.h"

#include <stdarg.h>

pc__keras_layer *pc__keras_add_layer(pc__keras_model *model, pc__keras_kind kind)
{
    if (pc__grow((void **)&model->layers, &model->layer_capacity, model->layer_count, sizeof *model->layers) != PC_OK)
        return NULL;
    pc__keras_layer *layer = &model->layers[model->layer_count++];
    *layer = (pc__keras_layer){.kind = kind, .stored = -1};
    snprintf(layer->class_name, sizeof layer->class_name, "%s", pc__keras_class_name(kind));
    return layer;
}

pc_status pc__keras_add_node(pc__keras_model *model, int layer, const int *from, int count)
{
    PC__TRY(pc__grow((void **)&model->nodes, &model->node_capacity, model->node_count, sizeof *model->nodes));
    int first = model->edge_count;
    for (int i = 0; i < count; i++) {
        PC__TRY(pc__grow((void **)&model->edges, &model->edge_capacity, model->edge_count, sizeof *model->edges));
        model->edges[model->edge_count++] = from[i];
    }
    model->nodes[model->node_count] = (pc__keras_node){.layer = layer, .first = first, .count = count};
    model->output = model->node_count++;
    return PC_OK;
}

pc__keras_layer *pc__keras_add(pc__keras_model *model, pc__keras_kind kind)
{
    int before = model->node_count ? model->output : PC__KERAS_PICTURE;
    if (!pc__keras_add_layer(model, kind) || pc__keras_add_node(model, model->layer_count - 1, &before, 1) != PC_OK)
        return NULL;
    return &model->layers[model->layer_count - 1];
}

pc__keras_layer *pc__keras_add_front(pc__keras_model *model, pc__keras_kind kind)
{
    int picture = PC__KERAS_PICTURE, output = model->output;
    if (!pc__keras_add_layer(model, kind) || pc__keras_add_node(model, model->layer_count - 1, &picture, 1) != PC_OK)
        return NULL;
    pc__keras_layer layer = model->layers[model->layer_count - 1];
    pc__keras_node node = model->nodes[model->node_count - 1];
    memmove(model->layers + 1, model->layers, (size_t)(model->layer_count - 1) * sizeof layer);
    memmove(model->nodes + 1, model->nodes, (size_t)(model->node_count - 1) * sizeof node);
    for (int i = 0; i < model->node_count; i++)
        model->nodes[i].layer++;
    for (int i = 0; i < model->edge_count; i++)
        model->edges[i]++; /* PC__KERAS_PICTURE becomes 0, the new node */
    model->layers[0] = layer;
    node.layer = 0;
    model->nodes[0] = node;
    model->edges[node.first] = PC__KERAS_PICTURE;
    model->output = model->node_count > 1 ? output + 1 : 0;
    return model->layers;
}

bool pc__keras_is_chain(const pc__keras_model *model)
{
    bool chain = model->layer_count == model->node_count && model->output == model->node_count - 1;
    for (int i = 0; chain && i < model->node_count; i++) {
        const pc__keras_node *node = &model->nodes[i];
        chain = node->layer == i && node->count == 1 && model->edges[node->first] == i - 1;
    }
    return chain;
}

int64_t pc__keras_weight_size(const pc__keras_weight *weight)
{
    int64_t size = weight->rank > 0;
    for (int i = 0; i < weight->rank; i++)
        if (__builtin_mul_overflow(size, weight->shape[i], &size))
            return INT64_MAX / 2;
    return size;
}

pc_status pc__keras_weight_make(pc__keras_layer *layer, const char *word, int rank, const int64_t *shape)
{
    pc__keras_weight *weight = &layer->weights[layer->weight_count];
    *weight = (pc__keras_weight){.word = word, .rank = rank};
    memcpy(weight->shape, shape, (size_t)rank * sizeof *shape);
    weight->value = pc__calloc((size_t)pc__keras_weight_size(weight), sizeof *weight->value);
    layer->weight_count += weight->value != NULL;
    return weight->value ? PC_OK : PC_ERR_MEMORY;
}

pc__keras_weight *pc__keras_weight_named(pc__keras_layer *layer, const char *word)
{
    for (int i = 0; i < layer->weight_count; i++)
        if (strcmp(layer->weights[i].word, word) == 0)
            return &layer->weights[i];
    return NULL;
}

const char *pc__keras_activation_name(pc__keras_activation activation)
{
    static const char *const names[] = {
#define NAME(code, name) [code] = name,
        PC__KERAS_ACTIVATIONS(NAME)};
    return (unsigned)activation < PC__KERAS_ACTIVATION_COUNT ? names[activation] : NULL;
}

const char *pc__keras_class_name(pc__keras_kind kind)
{
    static const char *const names[] = {PC__KERAS_KINDS(NAME)};
#undef NAME
    return (unsigned)kind < PC__KERAS_KIND_COUNT ? names[kind] : "";
}

pc_status pc__keras_refuse(pc__keras_layer *layer, pc_status status, const char *format, ...)
{
    if (layer->refused)
        return status;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(layer->problem, sizeof layer->problem, format, arguments);
    va_end(arguments);
    layer->refused = status;
    return status;
}

void pc__keras_layer_free(pc__keras_layer *layer)
{
    for (int i = 0; i < PC__KERAS_WEIGHTS_MAX; i++) {
        pc__free(layer->weights[i].value);
        pc__free(layer->weights[i].slot[0]);
        pc__free(layer->weights[i].slot[1]);
    }
    pc__free(layer->raw);
    pc__free(layer->location);
}

void pc__keras_free(pc__keras_model *model)
{
    for (int i = 0; i < model->layer_count; i++)
        pc__keras_layer_free(&model->layers[i]);
    for (int i = 0; i < model->class_count; i++)
        pc__free(model->class_names[i]);
    pc__free(model->class_names);
    pc__free(model->layers);
    pc__free(model->nodes);
    pc__free(model->edges);
    pc__free(model->note);
    pc__free(model->problem);
    *model = (pc__keras_model){0};
}
