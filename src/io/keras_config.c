/* keras_config.c: model_config: the model's name, its input and its layers in order. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_part.h"

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
        const cJSON *size = cJSON_GetArrayItem(shape, i + 1);
        bool number = cJSON_IsNumber(size) && size->valuedouble >= 1 && size->valuedouble <= PC__KERAS_SIZE_MAX;
        if (!number && !cJSON_IsNull(size))
            return pc__fail(PC_ERR_FORMAT,
                            "%s: the model's input shape in model_config is not made of whole numbers from 1 "
                            "to %d",
                            path, PC__KERAS_SIZE_MAX);
        model->input_shape[i] = number ? (int64_t)size->valuedouble : -1;
    }
    model->input_rank = n;
    return PC_OK;
}

/* Keras 3 says batch_shape, Keras 2 batch_input_shape, on the input layer or on the first real one. */
static const cJSON *input_of(const cJSON *config)
{
    const cJSON *shape = pc__keras_json_get(config, "batch_shape");
    return shape ? shape : pc__keras_json_get(config, "batch_input_shape");
}

static pc_status parse_layer(const char *path, const cJSON *item, int index, pc__keras_model *model)
{
    const char *class_name = pc__keras_json_string(item, "class_name");
    const cJSON *config = pc__keras_json_get(item, "config");
    char what[48], name[PC__KERAS_NAME_MAX];
    snprintf(what, sizeof what, "layer %d", index);
    if (!class_name || !cJSON_IsObject(config))
        return pc__fail(PC_ERR_FORMAT, "%s: %s in model_config has no class_name or config", path, what);
    PC__TRY(pc__keras_json_name(path, what, pc__keras_json_string(config, "name"), name));
    if (index == 0 && input_of(config))
        PC__TRY(parse_input(path, input_of(config), model));
    if (strcmp(class_name, "InputLayer") == 0)
        return index == 0 ? PC_OK
                          : pc__fail(PC_ERR_UNSUPPORTED, "%s: layer '%s' is a second input, which is not supported",
                                     path, name);
    pc__keras_layer *layer = pc__keras_add(model, PC__KERAS_KIND_COUNT);
    if (!layer)
        return PC_ERR_MEMORY;
    memcpy(layer->name, name, sizeof name);
    return pc__keras_layer_parse(&(pc__keras_source){path, layer->name, config}, class_name, layer);
}

static pc_status parse_model(const char *path, const cJSON *json, pc__keras_model *model)
{
    const char *class_name = pc__keras_json_string(json, "class_name");
    const cJSON *config = pc__keras_json_get(json, "config");
    bool chain = class_name && (strcmp(class_name, "Functional") == 0 || strcmp(class_name, "Model") == 0);
    if (!class_name || !config || (!chain && strcmp(class_name, "Sequential") != 0))
        return pc__fail(PC_ERR_UNSUPPORTED,
                        "%s: the model is of class %.64s; supported are Sequential, and Functional as a "
                        "plain chain",
                        path, class_name ? class_name : "(none)");
    /* Keras before 2.3 wrote the list of layers itself. */
    const cJSON *layers = cJSON_IsArray(config) ? config : pc__keras_json_get(config, "layers");
    if (!cJSON_IsArray(layers) || cJSON_GetArraySize(layers) > PC__KERAS_LAYERS_MAX)
        return pc__fail(PC_ERR_FORMAT, "%s: model_config has no list of at most %d layers", path, PC__KERAS_LAYERS_MAX);
    if (cJSON_IsObject(config) && pc__keras_json_get(config, "name"))
        PC__TRY(pc__keras_json_name(path, "the model", pc__keras_json_string(config, "name"), model->name));
    if (chain)
        PC__TRY(pc__keras_chain_check(path, config, layers));
    const cJSON *item;
    int index = 0;
    cJSON_ArrayForEach(item, layers) PC__TRY(parse_layer(path, item, index++, model));
    const cJSON *built = cJSON_IsObject(config) ? pc__keras_json_get(config, "build_input_shape") : NULL;
    if (!model->input_rank && built)
        PC__TRY(parse_input(path, built, model));
    return PC_OK;
}

pc_status pc__keras_config_parse(const char *path, const char *text, pc__keras_model *model)
{
    cJSON *json;
    PC__TRY(pc__keras_json_parse(path, "model_config", text, &json));
    pc_status status = parse_model(path, json, model);
    cJSON_Delete(json);
    return status;
}

/* batch_input_shape on an InputLayer is what Keras 2 and Keras 3 both take. */
void pc__keras_config_print(pc__text *out, const pc__keras_model *model)
{
    pc__text_add(out, "{\"class_name\": \"Sequential\", \"config\": {\"name\": ");
    pc__json_string(out, model->name[0] ? model->name : "sequential");
    pc__text_add(out, ", \"layers\": [{\"class_name\": \"InputLayer\", \"config\": {\"batch_input_shape\": [null");
    for (int i = 0; i < model->input_rank; i++) {
        if (model->input_shape[i] < 0)
            pc__text_add(out, ", null");
        else
            pc__text_add(out, ", %lld", (long long)model->input_shape[i]);
    }
    pc__text_add(out, "], \"dtype\": \"float32\", \"sparse\": false, \"name\": \"input_layer\"}}");
    for (int i = 0; i < model->layer_count; i++) {
        pc__text_add(out, ", ");
        pc__keras_layer_print(out, &model->layers[i]);
    }
    pc__text_add(out, "]}}");
}

#endif
