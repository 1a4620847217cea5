/* keras_config.c: model_config: the model's name, its input, its layers and how they are joined. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_part.h"

#define INPUT "input_layer"

/* [None, height, width, channels] without the batch. */
static pc_status parse_input(const char *path, const cJSON *shape, pc__keras_model *model)
{
    int n = cJSON_GetArraySize(shape) - 1;
    if (!cJSON_IsArray(shape) || n < 1 || n > 3)
        return pc__fail(PC_ERR_UNSUPPORTED,
                        "%s: the model's input has %d dimensions without the batch; supported are 1 "
                        "(features), 2 and 3 (height, width, channels)",
                        path, PC__MAX(n, 0));
    for (int i = 0; i < n; i++) {
        int size;
        const cJSON *item = cJSON_GetArrayItem(shape, i + 1);
        bool number = pc__keras_json_size(item, &size);
        if (!number && !cJSON_IsNull(item))
            return pc__fail(PC_ERR_FORMAT,
                            "%s: the model's input shape in model_config is not made of whole numbers from 1 "
                            "to %d",
                            path, PC__KERAS_SIZE_MAX);
        model->input_shape[i] = number ? size : -1;
    }
    model->input_rank = n;
    return PC_OK;
}

/* Keras 3 says batch_shape, Keras 2 batch_input_shape, on the input layer or on the first real one; where that is a
 * model, in there. */
static const cJSON *input_shape(const cJSON *layers, const char *name, int depth)
{
    const cJSON *item, *first = layers ? layers->child : NULL;
    cJSON_ArrayForEach(item, layers)
    {
        const char *own = pc__keras_json_string(item, "name");
        if (name && own && strcmp(own, name) == 0)
            first = item;
    }
    const cJSON *config = pc__keras_json_get(first, "config");
    const char *class_name = pc__keras_json_string(first, "class_name");
    const cJSON *shape = pc__keras_json_get(config, "batch_shape");
    shape = shape ? shape : pc__keras_json_get(config, "batch_input_shape");
    if (shape || !class_name || !pc__keras_model_class(class_name) || depth > 8)
        return shape;
    return input_shape(cJSON_IsArray(config) ? config : pc__keras_json_get(config, "layers"), NULL, depth + 1);
}

/* Of ["input", 0, 0] or [["input", 0, 0]]. */
static const char *input_name(const cJSON *ends)
{
    while (cJSON_IsArray(ends) && ends->child && !cJSON_IsString(ends->child))
        ends = ends->child;
    return cJSON_GetStringValue(cJSON_IsArray(ends) ? ends->child : NULL);
}

static pc_status parse_model(const char *path, const cJSON *json, pc__keras_model *model)
{
    const char *class_name = pc__keras_json_string(json, "class_name");
    const cJSON *config = pc__keras_json_get(json, "config");
    char kind = class_name ? pc__keras_model_class(class_name) : 0;
    if (!kind || !config)
        return pc__fail(PC_ERR_UNSUPPORTED, "%s: the model is of class %.64s; supported are Sequential and Functional",
                        path, class_name ? class_name : "(none)");
    /* Keras before 2.3 wrote the list of layers itself. */
    const cJSON *layers = cJSON_IsArray(config) ? config : pc__keras_json_get(config, "layers");
    if (cJSON_IsObject(config) && pc__keras_json_get(config, "name"))
        PC__TRY(pc__keras_json_name(path, "the model", pc__keras_json_string(config, "name"), model->name));
    const cJSON *shape = input_shape(layers, input_name(pc__keras_json_get(config, "input_layers")), 0);
    shape = shape ? shape : cJSON_IsObject(config) ? pc__keras_json_get(config, "build_input_shape") : NULL;
    if (shape)
        PC__TRY(pc__keras_set_aside(parse_input(path, shape, model), model));
    return pc__keras_graph_parse(path, layers, kind == 'F' ? config : NULL, model);
}

pc_status pc__keras_config_parse(const char *path, const char *text, pc__keras_model *model)
{
    cJSON *json;
    PC__TRY(pc__keras_json_parse(path, "model_config", text, &json));
    pc_status status = parse_model(path, json, model);
    cJSON_Delete(json);
    return status;
}

static void print_input(pc__text *out, const pc__keras_model *model)
{
    /* batch_input_shape on an InputLayer is what Keras 2 and Keras 3 both take. */
    pc__text_add(out, "{\"class_name\": \"InputLayer\", \"config\": {\"batch_input_shape\": [null");
    for (int i = 0; i < model->input_rank; i++) {
        if (model->input_shape[i] < 0)
            pc__text_add(out, ", null");
        else
            pc__text_add(out, ", %lld", (long long)model->input_shape[i]);
    }
    pc__text_add(out, "], \"dtype\": \"float32\", \"sparse\": false, \"name\": \"" INPUT "\"}");
}

/* Which call of its layer a node is. */
static int call_number(const pc__keras_model *model, int node)
{
    int number = 0;
    for (int i = 0; i < node; i++)
        number += model->nodes[i].layer == model->nodes[node].layer;
    return number;
}

static void print_reference(pc__text *out, const pc__keras_model *model, int node, const char *end)
{
    pc__text_add(out, "[");
    pc__json_string(out, node < 0 ? INPUT : model->layers[model->nodes[node].layer].name);
    pc__text_add(out, ", %d, 0%s]", node < 0 ? 0 : call_number(model, node), end);
}

/* All calls of a layer, in the form that Keras 2 wrote and Keras 3 reads. */
static void print_calls(pc__text *out, const pc__keras_model *model, int layer)
{
    const char *comma = "";
    pc__text_add(out, ", \"name\": ");
    pc__json_string(out, model->layers[layer].name);
    pc__text_add(out, ", \"inbound_nodes\": [");
    for (int i = 0; i < model->node_count; i++) {
        const pc__keras_node *node = &model->nodes[i];
        if (node->layer != layer)
            continue;
        pc__text_add(out, "%s[", comma);
        comma = ", ";
        for (int k = 0; k < node->count; k++) {
            pc__text_add(out, "%s", k ? ", " : "");
            print_reference(out, model, model->edges[node->first + k], ", {}");
        }
        pc__text_add(out, "]");
    }
    pc__text_add(out, "]");
}

static void print_functional(pc__text *out, const pc__keras_model *model)
{
    pc__text_add(out, ", \"layers\": [");
    print_input(out, model);
    pc__text_add(out, ", \"name\": \"" INPUT "\", \"inbound_nodes\": []}");
    for (int i = 0; i < model->layer_count; i++) {
        pc__text_add(out, ", ");
        pc__keras_layer_print(out, &model->layers[i]);
        print_calls(out, model, i);
        pc__text_add(out, "}");
    }
    pc__text_add(out, "], \"input_layers\": [[\"" INPUT "\", 0, 0]], \"output_layers\": [");
    print_reference(out, model, model->output, "");
    pc__text_add(out, "]}}");
}

static void print_sequential(pc__text *out, const pc__keras_model *model)
{
    pc__text_add(out, ", \"layers\": [");
    print_input(out, model);
    pc__text_add(out, "}");
    for (int i = 0; i < model->layer_count; i++) {
        pc__text_add(out, ", ");
        pc__keras_layer_print(out, &model->layers[i]);
        pc__text_add(out, "}");
    }
    pc__text_add(out, "]}}");
}

void pc__keras_config_print(pc__text *out, const pc__keras_model *model)
{
    bool chain = pc__keras_is_chain(model);
    pc__text_add(out, "{\"class_name\": \"%s\", \"config\": {\"name\": ", chain ? "Sequential" : "Functional");
    pc__json_string(out, model->name[0] ? model->name : chain ? "sequential" : "functional");
    if (chain)
        print_sequential(out, model);
    else
        print_functional(out, model);
}

#endif
