/* keras_windows.c: the fields of layers that look at windows of pictures: convolutions, pools, frames. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_part.h"

#include <math.h>

pc_status pc__keras_channels_last(const pc__keras_source *from)
{
    const char *format = pc__keras_json_string(from->config, "data_format");
    if (!format || strcmp(format, "channels_last") == 0)
        return PC_OK;
    return pc__keras_refuse(from->layer, PC_ERR_UNSUPPORTED,
                            "has data_format \"channels_first\", which is not supported");
}

static pc_status padding(const pc__keras_source *from)
{
    const char *text = pc__keras_json_string(from->config, "padding");
    from->layer->same = text && strcmp(text, "same") == 0;
    if (!text || from->layer->same || strcmp(text, "valid") == 0)
        return PC_OK;
    return pc__keras_refuse(from->layer, PC_ERR_UNSUPPORTED,
                            "has a padding other than \"valid\" and \"same\", which is not supported");
}

/* What all convolutions have. */
static pc_status convolution(const pc__keras_source *from)
{
    pc__keras_layer *layer = from->layer;
    PC__TRY(pc__keras_channels_last(from));
    PC__TRY(pc__keras_json_pair(from, "kernel_size", 0, layer->window));
    PC__TRY(pc__keras_json_pair(from, "strides", 1, layer->stride));
    PC__TRY(pc__keras_json_pair(from, "dilation_rate", 1, layer->dilation));
    PC__TRY(padding(from));
    PC__TRY(pc__keras_json_bool(from, "use_bias", true, &layer->use_bias));
    for (int i = 0; i < 2; i++)
        if (layer->window[i] > 1024 || layer->dilation[i] > 1024 || layer->stride[i] > 1024)
            return pc__keras_refuse(layer, PC_ERR_UNSUPPORTED,
                                    "has a kernel_size, strides or dilation_rate over 1024, which is not supported");
    return pc__keras_activation_field(from);
}

pc_status pc__keras_parse_conv2d(const pc__keras_source *from)
{
    pc__keras_layer *layer = from->layer;
    PC__TRY(pc__keras_json_integer(from, "filters", &layer->units));
    layer->groups = 1;
    if (pc__keras_json_get(from->config, "groups"))
        PC__TRY(pc__keras_json_integer(from, "groups", &layer->groups));
    return convolution(from);
}

static pc_status multiplier(const pc__keras_source *from)
{
    from->layer->multiplier = 1;
    if (pc__keras_json_get(from->config, "depth_multiplier"))
        PC__TRY(pc__keras_json_integer(from, "depth_multiplier", &from->layer->multiplier));
    return PC_OK;
}

pc_status pc__keras_parse_depthwise(const pc__keras_source *from)
{
    PC__TRY(multiplier(from));
    return convolution(from);
}

pc_status pc__keras_parse_separable(const pc__keras_source *from)
{
    PC__TRY(pc__keras_json_integer(from, "filters", &from->layer->units));
    PC__TRY(multiplier(from));
    return convolution(from);
}

pc_status pc__keras_parse_pool(const pc__keras_source *from)
{
    pc__keras_layer *layer = from->layer;
    PC__TRY(pc__keras_channels_last(from));
    PC__TRY(pc__keras_json_pair(from, "pool_size", 2, layer->window));
    if (pc__keras_json_get(from->config, "strides"))
        PC__TRY(pc__keras_json_pair(from, "strides", 0, layer->stride));
    else
        memcpy(layer->stride, layer->window, sizeof layer->stride);
    return padding(from);
}

pc_status pc__keras_parse_global_pool(const pc__keras_source *from)
{
    PC__TRY(pc__keras_channels_last(from));
    return pc__keras_json_bool(from, "keepdims", false, &from->layer->keep);
}

static bool edge(const cJSON *item, int *value)
{
    bool good = cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble <= PC__KERAS_SIZE_MAX &&
                item->valuedouble == floor(item->valuedouble);
    *value = good ? (int)item->valuedouble : 0;
    return good;
}

/* n; [rows, columns]; or [[top, bottom], [left, right]]. */
static pc_status frame(const pc__keras_source *from, const char *key)
{
    const cJSON *item = pc__keras_json_get(from->config, key);
    int *border = from->layer->border;
    bool good = !cJSON_IsArray(item) || cJSON_GetArraySize(item) == 2;
    for (int i = 0; i < 2 && good; i++) {
        const cJSON *pair = cJSON_IsArray(item) ? cJSON_GetArrayItem(item, i) : item;
        bool both = !cJSON_IsArray(pair);
        good = (both || cJSON_GetArraySize(pair) == 2) &&
               edge(both ? pair : cJSON_GetArrayItem(pair, 0), &border[2 * i]) &&
               edge(both ? pair : cJSON_GetArrayItem(pair, 1), &border[2 * i + 1]);
    }
    PC__TRY(pc__keras_channels_last(from));
    return good ? PC_OK : pc__keras_refuse(from->layer, PC_ERR_FORMAT, "needs two pairs of whole numbers as %s", key);
}

pc_status pc__keras_parse_padding(const pc__keras_source *from)
{
    return frame(from, "padding");
}

pc_status pc__keras_parse_cropping(const pc__keras_source *from)
{
    return frame(from, "cropping");
}

pc_status pc__keras_parse_up_sampling(const pc__keras_source *from)
{
    const char *how = pc__keras_json_string(from->config, "interpolation");
    PC__TRY(pc__keras_channels_last(from));
    PC__TRY(pc__keras_json_pair(from, "size", 2, from->layer->window));
    if (!how || strcmp(how, "nearest") == 0)
        return PC_OK;
    return pc__keras_refuse(from->layer, PC_ERR_UNSUPPORTED,
                            "has the interpolation '%.40s', which is not supported; \"nearest\" is", how);
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

static void print_convolution(pc__text *out, const pc__keras_layer *layer)
{
    pc__keras_activation_print_field(out, layer);
    pc__text_add(out, ", \"use_bias\": %s", layer->use_bias ? "true" : "false");
    print_window(out, "kernel_size", layer);
    int dilation[2] = {PC__MAX(layer->dilation[0], 1), PC__MAX(layer->dilation[1], 1)};
    if (dilation[0] > 1 || dilation[1] > 1)
        print_pair(out, "dilation_rate", dilation);
}

void pc__keras_print_conv2d(pc__text *out, const pc__keras_layer *layer)
{
    pc__text_add(out, ", \"filters\": %d", layer->units);
    print_convolution(out, layer);
    if (layer->groups > 1)
        pc__text_add(out, ", \"groups\": %d", layer->groups);
}

void pc__keras_print_depthwise(pc__text *out, const pc__keras_layer *layer)
{
    pc__text_add(out, ", \"depth_multiplier\": %d", layer->multiplier);
    print_convolution(out, layer);
}

void pc__keras_print_separable(pc__text *out, const pc__keras_layer *layer)
{
    pc__text_add(out, ", \"filters\": %d, \"depth_multiplier\": %d", layer->units, layer->multiplier);
    print_convolution(out, layer);
}

void pc__keras_print_pool(pc__text *out, const pc__keras_layer *layer)
{
    print_window(out, "pool_size", layer);
}

void pc__keras_print_global_pool(pc__text *out, const pc__keras_layer *layer)
{
    pc__text_add(out, ", \"data_format\": \"channels_last\", \"keepdims\": %s", layer->keep ? "true" : "false");
}

static void print_frame(pc__text *out, const char *key, const pc__keras_layer *layer)
{
    const int *b = layer->border;
    pc__text_add(out, ", \"%s\": [[%d, %d], [%d, %d]], \"data_format\": \"channels_last\"", key, b[0], b[1], b[2],
                 b[3]);
}

void pc__keras_print_padding(pc__text *out, const pc__keras_layer *layer)
{
    print_frame(out, "padding", layer);
}

void pc__keras_print_cropping(pc__text *out, const pc__keras_layer *layer)
{
    print_frame(out, "cropping", layer);
}

void pc__keras_print_up_sampling(pc__text *out, const pc__keras_layer *layer)
{
    print_pair(out, "size", layer->window);
    pc__text_add(out, ", \"data_format\": \"channels_last\", \"interpolation\": \"nearest\"");
}

#endif
