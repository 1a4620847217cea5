/* keras_layers.c: the classes that are understood: one row each. Their fields are read and written by keras_windows.c,
 * keras_plain.c and keras_activation.c. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_part.h"

#include <math.h>

static pc_status parse_dense(const pc__keras_source *from)
{
    PC__TRY(pc__keras_json_integer(from, "units", &from->layer->units));
    PC__TRY(pc__keras_json_bool(from, "use_bias", true, &from->layer->use_bias));
    return pc__keras_activation_field(from);
}

static void print_dense(pc__text *out, const pc__keras_layer *layer)
{
    pc__text_add(out, ", \"units\": %d", layer->units);
    pc__keras_activation_print_field(out, layer);
    pc__text_add(out, ", \"use_bias\": %s", layer->use_bias ? "true" : "false");
}

static pc_status parse_flatten(const pc__keras_source *from)
{
    return pc__keras_channels_last(from);
}

static void print_flatten(pc__text *out, const pc__keras_layer *layer)
{
    (void)layer;
    pc__text_add(out, ", \"data_format\": \"channels_last\"");
}

/* Up to three numbers from `least` on, into target. */
static pc_status parse_target(const pc__keras_source *from, const char *key, bool with_batch, int least, int most)
{
    pc__keras_layer *layer = from->layer;
    const cJSON *list = pc__keras_json_get(from->config, key);
    int n = cJSON_GetArraySize(list) - with_batch;
    bool good = cJSON_IsArray(list) && n >= 1 && n <= 3;
    for (int i = 0, open = 0; good && i < n; i++) {
        const cJSON *item = cJSON_GetArrayItem(list, i + with_batch);
        double value = cJSON_IsNumber(item) ? item->valuedouble : 0;
        open += value < 0;
        good = value >= least && value <= most && value != 0 && value == floor(value) && open < 2;
        layer->target[i] = good ? (int64_t)value : 0;
    }
    layer->rank = n;
    return good ? PC_OK
                : pc__keras_refuse(layer, PC_ERR_UNSUPPORTED, "has a %s that is not one to three whole numbers", key);
}

static pc_status parse_reshape(const pc__keras_source *from)
{
    bool op = pc__keras_json_get(from->config, "newshape") != NULL;
    return parse_target(from, op ? "newshape" : "target_shape", op, -1, PC__KERAS_SIZE_MAX);
}

static pc_status parse_permute(const pc__keras_source *from)
{
    pc__keras_layer *layer = from->layer;
    PC__TRY(parse_target(from, "dims", false, 1, 3));
    unsigned seen = 0;
    for (int i = 0; i < layer->rank; i++)
        seen |= 1U << layer->target[i];
    return seen == (2U << layer->rank) - 2
               ? PC_OK
               : pc__keras_refuse(layer, PC_ERR_FORMAT, "has dims that are no order of its %d dimensions", layer->rank);
}

static void print_target(pc__text *out, const pc__keras_layer *layer, const char *key)
{
    for (int i = 0; i < layer->rank; i++)
        pc__text_add(out, "%s%s%s%lld", i ? "" : ", \"", i ? ", " : key, i ? "" : "\": [", (long long)layer->target[i]);
    pc__text_add(out, "]");
}

static void print_reshape(pc__text *out, const pc__keras_layer *layer)
{
    print_target(out, layer, "target_shape");
}

static void print_permute(pc__text *out, const pc__keras_layer *layer)
{
    print_target(out, layer, "dims");
}

static pc_status parse_dropout(const pc__keras_source *from)
{
    pc__keras_layer *layer = from->layer;
    layer->rate = pc__keras_json_number(from->config, "rate", NAN);
    if (pc__keras_json_get(from->config, "noise_shape"))
        return pc__keras_refuse(layer, PC_ERR_UNSUPPORTED, "has a noise_shape, which is not supported");
    if (layer->rate >= 0 && layer->rate < 1)
        return PC_OK;
    return pc__keras_refuse(layer, PC_ERR_FORMAT, "needs a number from 0 to below 1 as rate");
}

static pc_status parse_spatial(const pc__keras_source *from)
{
    PC__TRY(pc__keras_channels_last(from));
    return parse_dropout(from);
}

static void print_dropout(pc__text *out, const pc__keras_layer *layer)
{
    pc__text_add(out, ", \"rate\": ");
    pc__json_number(out, layer->rate);
}

static pc_status parse_noise(const pc__keras_source *from)
{
    char *text = cJSON_PrintUnformatted(from->config);
    from->layer->raw = text ? pc__strdup(text) : NULL;
    cJSON_free(text);
    return from->layer->raw ? PC_OK : PC_ERR_MEMORY;
}

static pc_status parse_activation(const pc__keras_source *from)
{
    if (pc__keras_json_get(from->config, "activation"))
        return pc__keras_activation_field(from);
    return pc__keras_refuse(from->layer, PC_ERR_FORMAT, "has no activation");
}

static pc_status parse_join(const pc__keras_source *from)
{
    (void)from;
    return PC_OK;
}

/* keras.ops.flip(x, -1) */
static pc_status parse_flip(const pc__keras_source *from)
{
    from->layer->invert = true;
    if (pc__keras_json_number(from->config, "axis", 0) == -1)
        return PC_OK;
    return pc__keras_refuse(from->layer, PC_ERR_UNSUPPORTED, "(Flip) has an axis that is not supported; -1 is");
}

static pc_status parse_stack(const pc__keras_source *from)
{
    if (pc__keras_json_number(from->config, "axis", 0) == -1)
        return PC_OK;
    return pc__keras_refuse(from->layer, PC_ERR_UNSUPPORTED, "(Stack) has an axis that is not supported; -1 is");
}

static pc_status parse_concatenate(const pc__keras_source *from)
{
    double axis = pc__keras_json_number(from->config, "axis", -1);
    from->layer->axis = (int)(fabs(axis) <= 4 ? axis : 0);
    if (axis == from->layer->axis && axis != 0)
        return PC_OK;
    return pc__keras_refuse(from->layer, PC_ERR_UNSUPPORTED, "has an axis that is not supported");
}

static void print_nothing(pc__text *out, const pc__keras_layer *layer)
{
    (void)out, (void)layer;
}

static void print_concatenate(pc__text *out, const pc__keras_layer *layer)
{
    pc__text_add(out, ", \"axis\": %d", layer->axis ? layer->axis : -1);
}

/* The first row of a kind is the one that is written. */
static const struct row {
    pc__keras_kind kind;
    const char *class_name;
    pc__keras_parse parse;
    pc__keras_print print;
} rows[] = {
    {PC__KERAS_CONV2D, "Conv2D", pc__keras_parse_conv2d, pc__keras_print_conv2d},
    {PC__KERAS_CONV2D, "Convolution2D", pc__keras_parse_conv2d, NULL},
    {PC__KERAS_DEPTHWISE_CONV2D, "DepthwiseConv2D", pc__keras_parse_depthwise, pc__keras_print_depthwise},
    {PC__KERAS_SEPARABLE_CONV2D, "SeparableConv2D", pc__keras_parse_separable, pc__keras_print_separable},
    {PC__KERAS_SEPARABLE_CONV2D, "SeparableConvolution2D", pc__keras_parse_separable, NULL},
    {PC__KERAS_DENSE, "Dense", parse_dense, print_dense},
    {PC__KERAS_MAX_POOL2D, "MaxPooling2D", pc__keras_parse_pool, pc__keras_print_pool},
    {PC__KERAS_MAX_POOL2D, "MaxPool2D", pc__keras_parse_pool, NULL},
    {PC__KERAS_AVG_POOL2D, "AveragePooling2D", pc__keras_parse_pool, pc__keras_print_pool},
    {PC__KERAS_AVG_POOL2D, "AvgPool2D", pc__keras_parse_pool, NULL},
    {PC__KERAS_GLOBAL_MAX_POOL2D, "GlobalMaxPooling2D", pc__keras_parse_global_pool, pc__keras_print_global_pool},
    {PC__KERAS_GLOBAL_MAX_POOL2D, "GlobalMaxPool2D", pc__keras_parse_global_pool, NULL},
    {PC__KERAS_GLOBAL_AVG_POOL2D, "GlobalAveragePooling2D", pc__keras_parse_global_pool, pc__keras_print_global_pool},
    {PC__KERAS_GLOBAL_AVG_POOL2D, "GlobalAvgPool2D", pc__keras_parse_global_pool, NULL},
    {PC__KERAS_ZERO_PADDING2D, "ZeroPadding2D", pc__keras_parse_padding, pc__keras_print_padding},
    {PC__KERAS_CROPPING2D, "Cropping2D", pc__keras_parse_cropping, pc__keras_print_cropping},
    {PC__KERAS_UP_SAMPLING2D, "UpSampling2D", pc__keras_parse_up_sampling, pc__keras_print_up_sampling},
    {PC__KERAS_FLATTEN, "Flatten", parse_flatten, print_flatten},
    {PC__KERAS_RESHAPE, "Reshape", parse_reshape, print_reshape},
    {PC__KERAS_PERMUTE, "Permute", parse_permute, print_permute},
    {PC__KERAS_DROPOUT, "Dropout", parse_dropout, print_dropout},
    {PC__KERAS_SPATIAL_DROPOUT2D, "SpatialDropout2D", parse_spatial, print_dropout},
    {PC__KERAS_NOISE, "GaussianNoise", parse_noise, NULL},
    {PC__KERAS_NOISE, "GaussianDropout", parse_noise, NULL},
    {PC__KERAS_NOISE, "AlphaDropout", parse_noise, NULL},
    {PC__KERAS_NOISE, "ActivityRegularization", parse_noise, NULL},
    {PC__KERAS_NOISE, "RandomFlip", parse_noise, NULL},
    {PC__KERAS_NOISE, "RandomRotation", parse_noise, NULL},
    {PC__KERAS_NOISE, "RandomZoom", parse_noise, NULL},
    {PC__KERAS_NOISE, "RandomTranslation", parse_noise, NULL},
    {PC__KERAS_NOISE, "RandomContrast", parse_noise, NULL},
    {PC__KERAS_NOISE, "RandomBrightness", parse_noise, NULL},
    {PC__KERAS_ACTIVATION, "Activation", parse_activation, pc__keras_activation_print},
    {PC__KERAS_ACTIVATION, "ReLU", pc__keras_activation_layer, NULL},
    {PC__KERAS_ACTIVATION, "LeakyReLU", pc__keras_activation_layer, NULL},
    {PC__KERAS_ACTIVATION, "ELU", pc__keras_activation_layer, NULL},
    {PC__KERAS_ACTIVATION, "Softmax", pc__keras_activation_layer, NULL},
    {PC__KERAS_PRELU, "PReLU", pc__keras_parse_prelu, pc__keras_print_prelu},
    {PC__KERAS_RESCALING, "Rescaling", pc__keras_parse_rescaling, pc__keras_print_rescaling},
    {PC__KERAS_NORMALIZATION, "Normalization", pc__keras_parse_normalization, pc__keras_print_normalization},
    {PC__KERAS_BATCH_NORM, "BatchNormalization", pc__keras_parse_batch_norm, pc__keras_print_batch_norm},
    {PC__KERAS_BATCH_NORM, "BatchNormalizationV1", pc__keras_parse_batch_norm, NULL},
    {PC__KERAS_LAYER_NORM, "LayerNormalization", pc__keras_parse_layer_norm, pc__keras_print_layer_norm},
    {PC__KERAS_ADD, "Add", parse_join, print_nothing},
    {PC__KERAS_SUBTRACT, "Subtract", parse_join, print_nothing},
    {PC__KERAS_MULTIPLY, "Multiply", parse_join, print_nothing},
    {PC__KERAS_AVERAGE, "Average", parse_join, print_nothing},
    {PC__KERAS_MAXIMUM, "Maximum", parse_join, print_nothing},
    {PC__KERAS_MINIMUM, "Minimum", parse_join, print_nothing},
    {PC__KERAS_CONCATENATE, "Concatenate", parse_concatenate, print_concatenate},
    {PC__KERAS_CHANNELS, "GetItem", parse_join, NULL}, /* the node says which */
    {PC__KERAS_CHANNELS, "Flip", parse_flip, NULL},
    {PC__KERAS_STACK, "Stack", parse_stack, NULL},
};

static const struct row *row_of(pc__keras_kind kind)
{
    for (int i = 0; i < PC__COUNT(rows); i++)
        if (rows[i].kind == kind)
            return &rows[i];
    return NULL;
}

/* keras.ops.relu6(x) in a Functional model is a class of its own, with the fields of the layer. */
static bool is_activation_op(const char *class_name)
{
    static const char *const names[] = {"Relu",     "Relu6",    "Sigmoid",    "Tanh",       "LeakyRelu", "Elu",
                                        "Selu",     "Gelu",     "Silu",       "Softplus",   "Softsign",  "HardSigmoid",
                                        "HardSilu", "HardTanh", "LogSigmoid", "LogSoftmax", "Exp"};
    for (int i = 0; i < PC__COUNT(names); i++)
        if (strcmp(class_name, names[i]) == 0)
            return true;
    return false;
}

static pc_status parse_row(const pc__keras_source *from, const struct row *row)
{
    pc__keras_layer *layer = from->layer;
    bool trainable;
    layer->kind = row->kind;
    PC__TRY(pc__keras_json_bool(from, "trainable", true, &trainable));
    layer->frozen = !trainable;
    return row->parse(from);
}

pc_status pc__keras_layer_parse(const pc__keras_source *from, const char *class_name)
{
    pc__keras_layer *layer = from->layer;
    pc_status status = PC_OK;
    const struct row *row = NULL;
    layer->kind = PC__KERAS_UNKNOWN;
    snprintf(layer->class_name, sizeof layer->class_name, "%s", class_name);
    for (int i = 0; i < PC__COUNT(rows) && !row; i++)
        row = strcmp(class_name, rows[i].class_name) == 0 ? &rows[i] : NULL;
    if (row) {
        status = parse_row(from, row);
    } else if (is_activation_op(class_name)) {
        layer->kind = PC__KERAS_ACTIVATION;
        status = pc__keras_activation_layer(from);
    } else if (strcmp(class_name, "TrueDivide") == 0 || strcmp(class_name, "Divide") == 0) {
        layer->kind = PC__KERAS_RESCALING; /* by a number, which the node says */
        layer->scale = 1;
    } else {
        status = pc__keras_refuse(layer, PC_ERR_UNSUPPORTED, "of class %.63s is not supported", class_name);
    }
    return status == PC_ERR_MEMORY ? status : PC_OK;
}

pc_status pc__keras_layer_printable(pc__keras_layer *layer)
{
    if (layer->kind == PC__KERAS_UNKNOWN)
        return pc__keras_refuse(layer, PC_ERR_UNSUPPORTED, "of class %.63s is not supported", layer->class_name);
    if (layer->kind == PC__KERAS_CHANNELS || layer->kind == PC__KERAS_STACK)
        return pc__keras_refuse(layer, PC_ERR_UNSUPPORTED,
                                "(%s) is an op of Keras 3 and no layer, and cannot be written", layer->class_name);
    bool alone = layer->kind == PC__KERAS_ACTIVATION;
    const char *name = alone ? pc__keras_activation_class(layer) : pc__keras_activation_name(layer->activation);
    if (!name)
        return pc__keras_refuse(layer, PC_ERR_UNSUPPORTED, "has an activation that Keras 3 has no name for");
    return PC_OK;
}

void pc__keras_layer_print(pc__text *out, const pc__keras_layer *layer)
{
    const struct row *row = row_of(layer->kind);
    const char *class_name = layer->kind == PC__KERAS_ACTIVATION ? pc__keras_activation_class(layer)
                             : layer->raw                        ? layer->class_name
                                                                 : row->class_name;
    pc__text_add(out, "{\"class_name\": \"%s\", \"config\": ", class_name);
    if (layer->raw) {
        pc__text_add(out, "%s", layer->raw);
        return;
    }
    pc__text_add(out, "{\"name\": ");
    pc__json_string(out, layer->name);
    if (layer->weight_count) /* SpatialDropout2D does not take it */
        pc__text_add(out, ", \"trainable\": %s", layer->frozen ? "false" : "true");
    pc__text_add(out, ", \"dtype\": \"float32\"");
    row->print(out, layer);
    pc__text_add(out, "}");
}

#endif
