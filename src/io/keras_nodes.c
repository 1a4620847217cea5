/* keras_nodes.c: what the inbound nodes of a Functional model's layers say: which tensors a layer is called with, and
 * which numbers beside them (x / 127.5 - 1). */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_part.h"

#include <math.h>

#define DEPTH_MAX 8

/* ["conv2d", node, tensor, {...}] */
static bool is_reference(const cJSON *item)
{
    return cJSON_IsArray(item) && cJSON_GetArraySize(item) >= 3 && cJSON_IsString(cJSON_GetArrayItem(item, 0)) &&
           cJSON_IsNumber(cJSON_GetArrayItem(item, 1)) && cJSON_IsNumber(cJSON_GetArrayItem(item, 2));
}

static void add_reference(pc__keras_inbound *inbound, const cJSON *reference, const cJSON *shape)
{
    const cJSON *node = cJSON_GetArrayItem(reference, 1), *tensor = cJSON_GetArrayItem(reference, 2);
    if (!is_reference(reference) || inbound->count == PC__COUNT(inbound->from) || tensor->valuedouble != 0 ||
        !(node->valuedouble >= 0 && node->valuedouble < PC__KERAS_LAYERS_MAX)) {
        inbound->odd = true; /* the second tensor of a layer: of none that is known here */
        return;
    }
    inbound->from[inbound->count].layer = cJSON_GetStringValue(cJSON_GetArrayItem(reference, 0));
    inbound->from[inbound->count].node = (int)node->valuedouble;
    inbound->from[inbound->count++].shape = shape;
}

static void add_constant(pc__keras_inbound *inbound, double value)
{
    if (inbound->constants++)
        inbound->odd = true;
    inbound->constant = value;
    inbound->constant_first = inbound->count == 0;
}

static bool is_class(const cJSON *item, const char *name)
{
    const char *class_name = pc__keras_json_string(item, "class_name");
    return class_name && !strcmp(class_name, name);
}

/* An array of numbers, as Keras 3 writes one: {"class_name": "__numpy__", "config": {"value": [[1, 2, 3]]}}. */
static const cJSON *numbers_of(const cJSON *item)
{
    const bool array = is_class(item, "__numpy__") || is_class(item, "__tensor__");
    return array ? pc__keras_json_get(pc__keras_json_get(item, "config"), "value") : NULL;
}

/* ::-1 */
static bool is_reversal(const cJSON *item)
{
    const cJSON *config = pc__keras_json_get(item, "config");
    return is_class(item, "__slice__") && !pc__keras_json_get(config, "start") && !pc__keras_json_get(config, "stop") &&
           pc__keras_json_number(config, "step", 1) == -1;
}

/* Keras 3: tensors, numbers, arrays of numbers, and lists of all of them. */
static void add_argument(pc__keras_inbound *inbound, const cJSON *item, int depth)
{
    const cJSON *config = pc__keras_json_get(item, "config");
    const cJSON *history = pc__keras_json_get(config, "keras_history");
    if (history) {
        add_reference(inbound, history, pc__keras_json_get(config, "shape"));
    } else if (numbers_of(item)) {
        add_constant(inbound, 0);
        inbound->list = numbers_of(item);
    } else if (is_class(item, "__ellipsis__") && depth == 1) {
        inbound->ellipsis = true;
    } else if (is_reversal(item) && inbound->ellipsis) {
        inbound->reversal = true;
    } else if (cJSON_IsArray(item) && depth < DEPTH_MAX) {
        const cJSON *inner;
        cJSON_ArrayForEach(inner, item) add_argument(inbound, inner, depth + 1);
    } else if (cJSON_IsNumber(item)) {
        add_constant(inbound, item->valuedouble);
    } else if (!cJSON_IsNull(item)) {
        inbound->odd = true;
    }
}

/* Keyword arguments: what changes nothing at inference. */
static void add_keywords(pc__keras_inbound *inbound, const cJSON *keywords)
{
    const cJSON *item;
    inbound->odd = inbound->odd || (keywords && !cJSON_IsObject(keywords) && !cJSON_IsNull(keywords));
    if (!cJSON_IsObject(keywords))
        return;
    cJSON_ArrayForEach(item, keywords)
    {
        bool quiet = cJSON_IsNull(item) || strcmp(item->string, "name") == 0 ||
                     (strcmp(item->string, "training") == 0 && cJSON_IsFalse(item));
        if (strcmp(item->string, "y") == 0 && cJSON_IsNumber(item))
            add_constant(inbound, item->valuedouble); /* Keras 2: tf.math.truediv(x, y=127.5) */
        else if (!quiet)
            inbound->odd = true;
    }
}

void pc__keras_inbound_parse(const cJSON *node, pc__keras_inbound *inbound)
{
    *inbound = (pc__keras_inbound){0};
    const cJSON *item;
    if (cJSON_IsObject(node)) {
        cJSON_ArrayForEach(item, pc__keras_json_get(node, "args")) add_argument(inbound, item, 0);
        add_keywords(inbound, pc__keras_json_get(node, "kwargs"));
        return;
    }
    if (is_reference(node)) { /* late Keras 2: one tensor without a list around it */
        add_reference(inbound, node, NULL);
        add_keywords(inbound, cJSON_GetArrayItem(node, 3));
        return;
    }
    cJSON_ArrayForEach(item, node)
    {
        add_reference(inbound, item, NULL);
        add_keywords(inbound, cJSON_GetArrayItem(item, 3));
    }
    inbound->odd = inbound->odd || !cJSON_IsArray(node);
}

pc_status pc__keras_channels(pc__keras_layer *layer, const pc__keras_inbound *inbound)
{
    const double at = inbound->constant;
    const bool one = inbound->constants == 1 && !inbound->list && !inbound->constant_first && at == floor(at);
    layer->invert = inbound->reversal;
    layer->target[0] = one && fabs(at) < 1e6 ? (int64_t)at : 0;
    if (inbound->count == 1 && inbound->ellipsis && one != inbound->reversal)
        return PC_OK;
    return pc__keras_refuse(
        layer, PC_ERR_UNSUPPORTED,
        "(GetItem) takes a part of its input that is not supported; x[..., 0] and x[..., ::-1] are");
}

#endif
