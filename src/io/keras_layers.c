/* keras_layers.c: the layers that are understood: one row each, and its fields out of and into model_config. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_part.h"

#include <math.h>

static pc_status unsupported(const pc__keras_source *from, const char *what)
{
    return pc__fail(PC_ERR_UNSUPPORTED, "%s: layer '%.64s' %s, which is not supported", from->path, from->layer, what);
}

static pc_status unknown_activation(const pc__keras_source *from, const char *name)
{
    pc__text list = {0};
    for (int i = 0; i < PC__KERAS_ACTIVATION_COUNT; i++)
        pc__text_add(&list, "%s%s", i ? ", " : "", pc__keras_activation_name((pc__keras_activation)i));
    pc_status status = PC_ERR_MEMORY;
    if (!list.failed)
        status = pc__fail(PC_ERR_UNSUPPORTED,
                          "%s: layer '%.64s' has the activation '%.40s', which is not supported; "
                          "supported are %s",
                          from->path, from->layer, name, list.data);
    pc__text_free(&list);
    return status;
}

/* A name, null, or a serialised function: {"class_name": "function", "config": "relu"}. */
static pc_status parse_activation(const pc__keras_source *from, pc__keras_activation *activation)
{
    const cJSON *item = pc__keras_json_get(from->config, "activation");
    const char *name = cJSON_IsObject(item) ? pc__keras_json_string(item, "config") : cJSON_GetStringValue(item);
    if (!name && cJSON_IsObject(item))
        name = pc__keras_json_string(item, "class_name");
    if (!item)
        name = "linear";
    for (int i = 0; name && i < PC__KERAS_ACTIVATION_COUNT; i++)
        if (strcmp(name, pc__keras_activation_name((pc__keras_activation)i)) == 0) {
            *activation = (pc__keras_activation)i;
            return PC_OK;
        }
    return unknown_activation(from, name ? name : "?");
}

static pc_status check_channels_last(const pc__keras_source *from)
{
    const char *format = pc__keras_json_string(from->config, "data_format");
    if (!format || strcmp(format, "channels_last") == 0)
        return PC_OK;
    return unsupported(from, "has data_format \"channels_first\"");
}

static pc_status parse_padding(const pc__keras_source *from, bool *same)
{
    const char *padding = pc__keras_json_string(from->config, "padding");
    *same = padding && strcmp(padding, "same") == 0;
    if (!padding || *same || strcmp(padding, "valid") == 0)
        return PC_OK;
    return unsupported(from, "has a padding other than \"valid\" and \"same\"");
}

static pc_status parse_conv2d(const pc__keras_source *from, pc__keras_layer *layer)
{
    int dilation[2];
    PC__TRY(check_channels_last(from));
    PC__TRY(pc__keras_json_integer(from, "filters", &layer->units));
    PC__TRY(pc__keras_json_pair(from, "kernel_size", 0, layer->window));
    PC__TRY(pc__keras_json_pair(from, "strides", 1, layer->stride));
    PC__TRY(pc__keras_json_pair(from, "dilation_rate", 1, dilation));
    PC__TRY(parse_padding(from, &layer->same));
    PC__TRY(pc__keras_json_bool(from, "use_bias", true, &layer->use_bias));
    if (dilation[0] != 1 || dilation[1] != 1)
        return unsupported(from, "has a dilation_rate other than 1");
    if (pc__keras_json_number(from->config, "groups", 1) != 1)
        return unsupported(from, "has groups other than 1");
    return parse_activation(from, &layer->activation);
}

static pc_status parse_dense(const pc__keras_source *from, pc__keras_layer *layer)
{
    PC__TRY(pc__keras_json_integer(from, "units", &layer->units));
    PC__TRY(pc__keras_json_bool(from, "use_bias", true, &layer->use_bias));
    return parse_activation(from, &layer->activation);
}

static pc_status parse_pool(const pc__keras_source *from, pc__keras_layer *layer)
{
    PC__TRY(check_channels_last(from));
    PC__TRY(pc__keras_json_pair(from, "pool_size", 2, layer->window));
    if (pc__keras_json_get(from->config, "strides"))
        PC__TRY(pc__keras_json_pair(from, "strides", 0, layer->stride));
    else
        memcpy(layer->stride, layer->window, sizeof layer->stride);
    return parse_padding(from, &layer->same);
}

static pc_status parse_flatten(const pc__keras_source *from, pc__keras_layer *layer)
{
    (void)layer;
    return check_channels_last(from);
}

static pc_status parse_dropout(const pc__keras_source *from, pc__keras_layer *layer)
{
    layer->rate = pc__keras_json_number(from->config, "rate", NAN);
    if (pc__keras_json_get(from->config, "noise_shape"))
        return unsupported(from, "has a noise_shape");
    if (layer->rate >= 0 && layer->rate < 1)
        return PC_OK;
    return pc__fail(PC_ERR_FORMAT, "%s: layer '%.64s' needs a number from 0 to below 1 as rate", from->path,
                    from->layer);
}

static pc_status parse_activation_layer(const pc__keras_source *from, pc__keras_layer *layer)
{
    return parse_activation(from, &layer->activation);
}

static pc_status parse_relu(const pc__keras_source *from, pc__keras_layer *layer)
{
    layer->activation = PC__KERAS_RELU;
    bool plain = !pc__keras_json_get(from->config, "max_value") &&
                 pc__keras_json_number(from->config, "negative_slope", 0) == 0 &&
                 pc__keras_json_number(from->config, "threshold", 0) == 0;
    return plain ? PC_OK : unsupported(from, "has a max_value, negative_slope or threshold");
}

static pc_status parse_softmax(const pc__keras_source *from, pc__keras_layer *layer)
{
    const cJSON *axis = pc__keras_json_get(from->config, "axis");
    if (cJSON_IsArray(axis) && cJSON_GetArraySize(axis) == 1)
        axis = cJSON_GetArrayItem(axis, 0);
    layer->activation = PC__KERAS_SOFTMAX;
    bool last = !axis || (cJSON_IsNumber(axis) && axis->valuedouble == -1);
    return last ? PC_OK : unsupported(from, "has an axis other than -1");
}

static pc_status parse_rescaling(const pc__keras_source *from, pc__keras_layer *layer)
{
    layer->scale = pc__keras_json_number(from->config, "scale", NAN);
    layer->offset = pc__keras_json_number(from->config, "offset", 0);
    bool plain = isfinite(layer->scale) && isfinite(layer->offset);
    return plain ? PC_OK : unsupported(from, "has a scale or offset that is not one number");
}

static void print_pair(pc__text *out, const char *key, const int pair[2])
{
    pc__text_add(out, ", \"%s\": [%d, %d]", key, pair[0], pair[1]);
}

static void print_window(pc__text *out, const char *key, const pc__keras_layer *layer)
{
    print_pair(out, key, layer->window);
    print_pair(out, "strides", layer->stride);
    pc__text_add(out, ", \"padding\": \"%s\", \"data_format\": \"channels_last\"", layer->same ? "same" : "valid");
}

static void print_units(pc__text *out, const char *key, const pc__keras_layer *layer)
{
    pc__text_add(out, ", \"%s\": %d, \"activation\": \"%s\", \"use_bias\": %s", key, layer->units,
                 pc__keras_activation_name(layer->activation), layer->use_bias ? "true" : "false");
}

static void print_conv2d(pc__text *out, const pc__keras_layer *layer)
{
    print_units(out, "filters", layer);
    print_window(out, "kernel_size", layer);
}

static void print_dense(pc__text *out, const pc__keras_layer *layer)
{
    print_units(out, "units", layer);
}

static void print_pool(pc__text *out, const pc__keras_layer *layer)
{
    print_window(out, "pool_size", layer);
}

static void print_flatten(pc__text *out, const pc__keras_layer *layer)
{
    (void)layer;
    pc__text_add(out, ", \"data_format\": \"channels_last\"");
}

static void print_dropout(pc__text *out, const pc__keras_layer *layer)
{
    pc__text_add(out, ", \"rate\": ");
    pc__json_number(out, layer->rate);
}

static void print_activation(pc__text *out, const pc__keras_layer *layer)
{
    pc__text_add(out, ", \"activation\": \"%s\"", pc__keras_activation_name(layer->activation));
}

static void print_rescaling(pc__text *out, const pc__keras_layer *layer)
{
    pc__text_add(out, ", \"scale\": ");
    pc__json_number(out, layer->scale);
    pc__text_add(out, ", \"offset\": ");
    pc__json_number(out, layer->offset);
}

/* The first row of a kind is the one that is written. */
static const struct row {
    pc__keras_kind kind;
    const char *class_name;
    pc_status (*parse)(const pc__keras_source *from, pc__keras_layer *layer);
    void (*print)(pc__text *out, const pc__keras_layer *layer);
} rows[] = {
    {PC__KERAS_CONV2D, "Conv2D", parse_conv2d, print_conv2d},
    {PC__KERAS_DENSE, "Dense", parse_dense, print_dense},
    {PC__KERAS_MAX_POOL2D, "MaxPooling2D", parse_pool, print_pool},
    {PC__KERAS_AVG_POOL2D, "AveragePooling2D", parse_pool, print_pool},
    {PC__KERAS_FLATTEN, "Flatten", parse_flatten, print_flatten},
    {PC__KERAS_DROPOUT, "Dropout", parse_dropout, print_dropout},
    {PC__KERAS_ACTIVATION, "Activation", parse_activation_layer, print_activation},
    {PC__KERAS_ACTIVATION, "ReLU", parse_relu, NULL},
    {PC__KERAS_ACTIVATION, "Softmax", parse_softmax, NULL},
    {PC__KERAS_RESCALING, "Rescaling", parse_rescaling, print_rescaling},
};

static const struct row *row_of(pc__keras_kind kind)
{
    for (int i = 0; i < PC__COUNT(rows); i++)
        if (rows[i].kind == kind)
            return &rows[i];
    return NULL;
}

const char *pc__keras_class_name(pc__keras_kind kind)
{
    const struct row *row = row_of(kind);
    return row ? row->class_name : NULL;
}

static pc_status unknown_class(const pc__keras_source *from, const char *class_name)
{
    pc__text list = {0};
    for (int i = 0; i < PC__COUNT(rows); i++)
        pc__text_add(&list, ", %s", rows[i].class_name);
    pc_status status = PC_ERR_MEMORY;
    if (!list.failed)
        status = pc__fail(PC_ERR_UNSUPPORTED,
                          "%s: layer '%.64s' of class %.64s is not supported; supported are InputLayer%s", from->path,
                          from->layer, class_name, list.data);
    pc__text_free(&list);
    return status;
}

pc_status pc__keras_layer_parse(const pc__keras_source *from, const char *class_name, pc__keras_layer *layer)
{
    for (int i = 0; i < PC__COUNT(rows); i++)
        if (strcmp(class_name, rows[i].class_name) == 0) {
            bool trainable;
            layer->kind = rows[i].kind;
            PC__TRY(pc__keras_json_bool(from, "trainable", true, &trainable));
            layer->frozen = !trainable && (layer->kind == PC__KERAS_CONV2D || layer->kind == PC__KERAS_DENSE);
            return rows[i].parse(from, layer);
        }
    return unknown_class(from, class_name);
}

void pc__keras_layer_print(pc__text *out, const pc__keras_layer *layer)
{
    const struct row *row = row_of(layer->kind);
    pc__text_add(out, "{\"class_name\": \"%s\", \"config\": {\"name\": ", row->class_name);
    pc__json_string(out, layer->name);
    pc__text_add(out, ", \"trainable\": %s, \"dtype\": \"float32\"", layer->frozen ? "false" : "true");
    row->print(out, layer);
    pc__text_add(out, "}}");
}

#endif
