/* keras_activation.c: activations as a layer's field and as layers of their own. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_part.h"

#include <math.h>

/* Other names: Keras's own, those of its ops (keras.ops.relu6 in a Functional model), and of Keras 2. */
static const struct alias {
    const char *name;
    pc__keras_activation activation;
} aliases[] = {
    {"swish", PC__KERAS_SILU},
    {"hard_swish", PC__KERAS_HARD_SILU},
    {"Relu", PC__KERAS_RELU},
    {"Relu6", PC__KERAS_RELU6},
    {"Sigmoid", PC__KERAS_SIGMOID},
    {"Tanh", PC__KERAS_TANH},
    {"Softmax", PC__KERAS_SOFTMAX},
    {"LeakyRelu", PC__KERAS_LEAKY_RELU},
    {"Elu", PC__KERAS_ELU},
    {"Selu", PC__KERAS_SELU},
    {"Gelu", PC__KERAS_GELU},
    {"Silu", PC__KERAS_SILU},
    {"Softplus", PC__KERAS_SOFTPLUS},
    {"Softsign", PC__KERAS_SOFTSIGN},
    {"HardSigmoid", PC__KERAS_HARD_SIGMOID},
    {"HardSilu", PC__KERAS_HARD_SILU},
    {"HardTanh", PC__KERAS_HARD_TANH},
    {"Exp", PC__KERAS_EXPONENTIAL},
    {"LogSigmoid", PC__KERAS_LOG_SIGMOID},
    {"LogSoftmax", PC__KERAS_LOG_SOFTMAX},
    {"ReLU", PC__KERAS_RELU},
    {"LeakyReLU", PC__KERAS_LEAKY_RELU},
    {"ELU", PC__KERAS_ELU},
};

static bool find(const char *name, pc__keras_activation *activation)
{
    for (int i = 0; i < PC__KERAS_ACTIVATION_COUNT; i++) {
        const char *own = pc__keras_activation_name((pc__keras_activation)i);
        if (own && strcmp(name, own) == 0) {
            *activation = (pc__keras_activation)i;
            return true;
        }
    }
    for (int i = 0; i < PC__COUNT(aliases); i++)
        if (strcmp(name, aliases[i].name) == 0) {
            *activation = aliases[i].activation;
            return true;
        }
    return false;
}

static pc_status unknown(const pc__keras_source *from, const char *name)
{
    return pc__keras_refuse(from->layer, PC_ERR_UNSUPPORTED, "has the activation '%.40s', which is not supported",
                            name ? name : "?");
}

static pc_status number(const pc__keras_source *from, const char *key, double missing, double *value)
{
    *value = pc__keras_json_number(from->config, key, missing);
    return isfinite(*value) ? PC_OK : pc__keras_refuse(from->layer, PC_ERR_FORMAT, "needs a number as %s", key);
}

static pc_status relu(const pc__keras_source *from)
{
    PC__TRY(number(from, "max_value", 0, &from->layer->limit));
    PC__TRY(number(from, "negative_slope", 0, &from->layer->slope));
    PC__TRY(number(from, "threshold", 0, &from->layer->threshold));
    bool limited = pc__keras_json_get(from->config, "max_value") != NULL;
    if (limited && (from->layer->limit <= 0 || from->layer->threshold < 0))
        return pc__keras_refuse(from->layer, PC_ERR_UNSUPPORTED,
                                "has a max_value that is not above 0, or a threshold below 0 with one");
    return PC_OK;
}

static pc_status last_axis(const pc__keras_source *from)
{
    const cJSON *axis = pc__keras_json_get(from->config, "axis");
    if (cJSON_IsArray(axis) && cJSON_GetArraySize(axis) == 1)
        axis = cJSON_GetArrayItem(axis, 0);
    if (!axis || (cJSON_IsNumber(axis) && axis->valuedouble == -1))
        return PC_OK;
    return pc__keras_refuse(from->layer, PC_ERR_UNSUPPORTED, "has an axis other than -1, which is not supported");
}

pc_status pc__keras_activation_object(const pc__keras_source *from, const char *class_name)
{
    pc__keras_layer *layer = from->layer;
    bool rough;
    if (!find(class_name, &layer->activation))
        return unknown(from, class_name);
    switch (layer->activation) {
    case PC__KERAS_RELU:
        return relu(from);
    case PC__KERAS_LEAKY_RELU: /* Keras 2 says alpha */
        PC__TRY(number(from, "alpha", strcmp(class_name, "LeakyReLU") == 0 ? 0.3 : 0.2, &layer->slope));
        return number(from, "negative_slope", layer->slope, &layer->slope);
    case PC__KERAS_ELU:
        return number(from, "alpha", 1, &layer->slope);
    case PC__KERAS_GELU:
        PC__TRY(pc__keras_json_bool(from, "approximate", true, &rough));
        layer->activation = rough ? PC__KERAS_GELU_TANH : PC__KERAS_GELU;
        return PC_OK;
    case PC__KERAS_SOFTMAX:
    case PC__KERAS_LOG_SOFTMAX:
        return last_axis(from);
    default:
        return PC_OK;
    }
}

pc_status pc__keras_activation_layer(const pc__keras_source *from)
{
    return pc__keras_activation_object(from, from->layer->class_name);
}

static double default_slope(pc__keras_activation activation)
{
    return activation == PC__KERAS_LEAKY_RELU ? 0.2 : activation == PC__KERAS_ELU ? 1 : 0;
}

/* A name alone has the function's own defaults. */
static pc_status by_name(const pc__keras_source *from, const char *name)
{
    pc__keras_layer *layer = from->layer;
    if (!name || !find(name, &layer->activation))
        return unknown(from, name);
    if (layer->activation == PC__KERAS_HARD_SIGMOID && from->version == 2)
        layer->activation = PC__KERAS_HARD_SIGMOID_2;
    layer->slope = default_slope(layer->activation);
    return PC_OK;
}

/* A name, null, a serialised function ({"class_name": "function", "config": "relu"}), or a layer. */
pc_status pc__keras_activation_field(const pc__keras_source *from)
{
    const cJSON *item = pc__keras_json_get(from->config, "activation");
    if (!item)
        return PC_OK;
    if (!cJSON_IsObject(item))
        return by_name(from, cJSON_GetStringValue(item));
    const cJSON *config = pc__keras_json_get(item, "config");
    const char *class_name = pc__keras_json_string(item, "class_name");
    if (cJSON_IsString(config))
        return by_name(from, cJSON_GetStringValue(config));
    if (class_name && cJSON_IsObject(config))
        return pc__keras_activation_object(&(pc__keras_source){from->layer, config, from->version}, class_name);
    return by_name(from, class_name);
}

const char *pc__keras_activation_class(const pc__keras_layer *layer)
{
    bool plain = layer->slope == 0 && layer->limit == 0 && layer->threshold == 0;
    switch (layer->activation) {
    case PC__KERAS_RELU:
        return plain ? "Activation" : "ReLU";
    case PC__KERAS_LEAKY_RELU:
        return "LeakyReLU";
    case PC__KERAS_ELU:
        return "ELU";
    default:
        return pc__keras_activation_name(layer->activation) ? "Activation" : NULL;
    }
}

static void put(pc__text *out, const char *key, double value)
{
    pc__text_add(out, ", \"%s\": ", key);
    pc__json_number(out, value);
}

void pc__keras_activation_print(pc__text *out, const pc__keras_layer *layer)
{
    const char *class_name = pc__keras_activation_class(layer);
    if (strcmp(class_name, "Activation") == 0) {
        pc__text_add(out, ", \"activation\": \"%s\"", pc__keras_activation_name(layer->activation));
    } else if (strcmp(class_name, "ReLU") == 0) {
        put(out, "negative_slope", layer->slope);
        put(out, "threshold", layer->threshold);
        if (layer->limit != 0)
            put(out, "max_value", layer->limit);
    } else if (strcmp(class_name, "LeakyReLU") == 0) {
        put(out, "negative_slope", layer->slope); /* Keras 2 calls it alpha; Keras 3 takes that too */
    } else {
        put(out, "alpha", layer->slope);
    }
}

/* A name alone means it, with the function's own numbers. */
static bool is_plain(const pc__keras_layer *layer)
{
    switch (layer->activation) {
    case PC__KERAS_RELU:
    case PC__KERAS_LEAKY_RELU:
    case PC__KERAS_ELU:
        return layer->slope == default_slope(layer->activation) && layer->limit == 0 && layer->threshold == 0;
    default:
        return true;
    }
}

void pc__keras_activation_print_field(pc__text *out, const pc__keras_layer *layer)
{
    char name[PC__KERAS_NAME_MAX];
    const char *class_name = pc__keras_activation_class(layer);
    if (is_plain(layer)) {
        pc__text_add(out, ", \"activation\": \"%s\"", pc__keras_activation_name(layer->activation));
        return;
    }
    pc__keras_snake(class_name, name);
    pc__text_add(out, ", \"activation\": {\"module\": \"keras.layers\", \"class_name\": \"%s\", \"config\": {",
                 class_name);
    pc__text_add(out, "\"name\": \"%s\"", name);
    pc__keras_activation_print(out, layer);
    pc__text_add(out, "}, \"registered_name\": null}");
}

#endif
