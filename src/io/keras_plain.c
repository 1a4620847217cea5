/* keras_plain.c: the fields of layers that work number by number: normalisations, PReLU. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_part.h"

#include <math.h>

static void put(pc__text *out, const char *key, double value)
{
    pc__text_add(out, ", \"%s\": ", key);
    pc__json_number(out, value);
}

/* The axis as a number or a list of one. Whether it is the last is seen where the shape is known. */
static pc_status axis(const pc__keras_source *from)
{
    const cJSON *item = pc__keras_json_get(from->config, "axis");
    bool named = cJSON_GetObjectItemCaseSensitive(from->config, "axis") != NULL;
    if (cJSON_IsArray(item) && cJSON_GetArraySize(item) == 1)
        item = cJSON_GetArrayItem(item, 0);
    from->layer->axis = -1;
    if (!named)
        return PC_OK;
    if (!cJSON_IsNumber(item) || fabs(item->valuedouble) > 8 || item->valuedouble != floor(item->valuedouble) ||
        item->valuedouble == 0)
        return pc__keras_refuse(from->layer, PC_ERR_UNSUPPORTED, "has an axis that is not one, which is not supported");
    from->layer->axis = (int)item->valuedouble;
    return PC_OK;
}

pc_status pc__keras_parse_normalization(const pc__keras_source *from)
{
    pc__keras_layer *layer = from->layer;
    PC__TRY(axis(from));
    PC__TRY(pc__keras_json_bool(from, "invert", false, &layer->invert));
    layer->given = pc__keras_json_get(from->config, "mean") != NULL;
    if (!layer->given)
        return PC_OK;
    PC__TRY(pc__keras_numbers(layer, "mean", pc__keras_json_get(from->config, "mean")));
    return pc__keras_numbers(layer, "variance", pc__keras_json_get(from->config, "variance"));
}

/* As numbers in the config, whether they came from there or from the weights: then no Keras needs `count`. */
void pc__keras_print_normalization(pc__text *out, const pc__keras_layer *layer)
{
    pc__text_add(out, ", \"axis\": %d, \"invert\": %s", layer->axis ? layer->axis : -1,
                 layer->invert ? "true" : "false");
    pc__keras_print_numbers(out, layer);
}

static pc_status epsilon(const pc__keras_source *from)
{
    from->layer->epsilon = pc__keras_json_number(from->config, "epsilon", 1e-3);
    PC__TRY(axis(from));
    PC__TRY(pc__keras_json_bool(from, "center", true, &from->layer->center));
    PC__TRY(pc__keras_json_bool(from, "scale", true, &from->layer->gain));
    if (from->layer->epsilon >= 0 && from->layer->epsilon < 1e6)
        return PC_OK;
    return pc__keras_refuse(from->layer, PC_ERR_FORMAT, "needs a number from 0 as epsilon");
}

pc_status pc__keras_parse_batch_norm(const pc__keras_source *from)
{
    bool renorm;
    PC__TRY(epsilon(from));
    from->layer->momentum = pc__keras_json_number(from->config, "momentum", 0.99);
    PC__TRY(pc__keras_json_bool(from, "renorm", false, &renorm));
    return renorm ? pc__keras_refuse(from->layer, PC_ERR_UNSUPPORTED, "has renorm, which is not supported") : PC_OK;
}

pc_status pc__keras_parse_layer_norm(const pc__keras_source *from)
{
    bool rms;
    PC__TRY(epsilon(from));
    PC__TRY(pc__keras_json_bool(from, "rms_scaling", false, &rms));
    return rms ? pc__keras_refuse(from->layer, PC_ERR_UNSUPPORTED, "has rms_scaling, which is not supported") : PC_OK;
}

static void print_epsilon(pc__text *out, const pc__keras_layer *layer)
{
    put(out, "epsilon", layer->epsilon);
    pc__text_add(out, ", \"axis\": %d, \"center\": %s, \"scale\": %s", layer->axis ? layer->axis : -1,
                 layer->center ? "true" : "false", layer->gain ? "true" : "false");
}

void pc__keras_print_batch_norm(pc__text *out, const pc__keras_layer *layer)
{
    print_epsilon(out, layer);
    put(out, "momentum", layer->momentum);
}

void pc__keras_print_layer_norm(pc__text *out, const pc__keras_layer *layer)
{
    print_epsilon(out, layer);
}

/* shared_axes: dimensions, counted from 1, along which there is one slope. */
pc_status pc__keras_parse_prelu(const pc__keras_source *from)
{
    pc__keras_layer *layer = from->layer;
    const cJSON *axes = pc__keras_json_get(from->config, "shared_axes"), *item;
    layer->rank = 3;
    cJSON_ArrayForEach(item, axes)
    {
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= 1 && item->valuedouble <= 3))
            return pc__keras_refuse(layer, PC_ERR_FORMAT, "has shared_axes that are no dimensions");
        layer->target[(int)item->valuedouble - 1] = 1;
    }
    return PC_OK;
}

void pc__keras_print_prelu(pc__text *out, const pc__keras_layer *layer)
{
    bool any = false;
    for (int i = 0; i < 3; i++)
        if (layer->target[i]) {
            pc__text_add(out, any ? ", %d" : ", \"shared_axes\": [%d", i + 1);
            any = true;
        }
    pc__text_add(out, any ? "]" : "");
}

#endif
