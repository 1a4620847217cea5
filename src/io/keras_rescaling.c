/* keras_rescaling.c: x * scale + offset, with one number of each or one for each channel: the layer Rescaling, and
 * arithmetic with numbers in a Functional model (x / 127.5 - 1, (x - mean) / std). */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_part.h"

#include <math.h>

/* The innermost list of [[[[1, 2, 3]]]], or a number. */
static const cJSON *innermost(const cJSON *item)
{
    while (cJSON_IsArray(item) && cJSON_GetArraySize(item) == 1)
        item = cJSON_GetArrayItem(item, 0);
    return item;
}

static int64_t size_of(const cJSON *item)
{
    item = innermost(item);
    return cJSON_IsArray(item) ? cJSON_GetArraySize(item) : 1;
}

pc_status pc__keras_numbers(pc__keras_layer *layer, const char *word, const cJSON *list)
{
    const cJSON *item = innermost(list);
    const int64_t n = size_of(list);
    if (!item || n < 1)
        return pc__keras_refuse(layer, PC_ERR_FORMAT, "has no numbers as %s", word);
    PC__TRY(pc__keras_weight_make(layer, word, 1, &n));
    float *to = layer->weights[layer->weight_count - 1].value;
    item = cJSON_IsArray(item) ? item->child : item;
    for (int64_t i = 0; i < n; i++, item = item->next) {
        if (!cJSON_IsNumber(item))
            return pc__keras_refuse(layer, PC_ERR_UNSUPPORTED,
                                    "has no numbers as %s, one for each channel; others are not supported", word);
        to[i] = (float)item->valuedouble;
    }
    return PC_OK;
}

void pc__keras_print_numbers(pc__text *out, const pc__keras_layer *layer)
{
    for (int w = 0; w < layer->weight_count; w++) {
        pc__text_add(out, ", \"%s\": [", layer->weights[w].word);
        for (int64_t i = 0; i < layer->weights[w].shape[0]; i++) {
            pc__text_add(out, "%s", i ? ", " : "");
            pc__json_number(out, (double)layer->weights[w].value[i]);
        }
        pc__text_add(out, "]");
    }
}

/* One of both is a list: the other becomes one too. */
static pc_status by_channel(pc__keras_layer *layer, const cJSON *scale, const cJSON *offset)
{
    const cJSON *lists[2] = {scale, offset};
    static const char *const words[2] = {"scale", "offset"};
    const double others[2] = {layer->scale, layer->offset};
    layer->given = true;
    layer->scale = 1, layer->offset = 0;
    for (int i = 0; i < 2; i++) {
        const int64_t n = size_of(lists[1 - i]);
        if (lists[i])
            PC__TRY(pc__keras_numbers(layer, words[i], lists[i]));
        else
            PC__TRY(pc__keras_weight_make(layer, words[i], 1, &n));
        for (int64_t k = 0; k < n && !lists[i]; k++)
            layer->weights[i].value[k] = (float)others[i];
    }
    const pc__keras_weight *w = layer->weights;
    bool good = w[0].shape[0] == w[1].shape[0];
    for (int i = 0; i < 2; i++)
        for (int64_t k = 0; k < w[i].shape[0]; k++)
            good = good && isfinite(w[i].value[k]);
    return good ? PC_OK : pc__keras_refuse(layer, PC_ERR_FORMAT, "has scales and offsets that do not fit each other");
}

pc_status pc__keras_parse_rescaling(const pc__keras_source *from)
{
    pc__keras_layer *layer = from->layer;
    const cJSON *scale = pc__keras_json_get(from->config, "scale"),
                *offset = pc__keras_json_get(from->config, "offset");
    const bool scales = cJSON_IsArray(scale), offsets = cJSON_IsArray(offset);
    layer->scale = scales ? 1 : pc__keras_json_number(from->config, "scale", NAN);
    layer->offset = offsets ? 0 : pc__keras_json_number(from->config, "offset", 0);
    if (!isfinite(layer->scale) || !isfinite(layer->offset))
        return pc__keras_refuse(layer, PC_ERR_UNSUPPORTED,
                                "has a scale or offset that is no number, which is not supported");
    return scales || offsets ? by_channel(layer, scales ? scale : NULL, offsets ? offset : NULL) : PC_OK;
}

void pc__keras_print_rescaling(pc__text *out, const pc__keras_layer *layer)
{
    if (layer->weight_count) {
        pc__keras_print_numbers(out, layer);
        return;
    }
    pc__text_add(out, ", \"scale\": ");
    pc__json_number(out, layer->scale);
    pc__text_add(out, ", \"offset\": ");
    pc__json_number(out, layer->offset);
}

/* ---- arithmetic */

static pc_status no_way(pc__keras_layer *layer)
{
    return pc__keras_refuse(layer, PC_ERR_UNSUPPORTED, "(%s) is used with a number in a way that is not supported",
                            layer->class_name);
}

static pc_status turn_over(pc__keras_layer *layer, pc__keras_weight *weight, bool sign)
{
    for (int64_t i = 0; i < weight->shape[0]; i++) {
        if (!sign && weight->value[i] == 0)
            return no_way(layer);
        weight->value[i] = sign ? -weight->value[i] : 1 / weight->value[i];
    }
    return PC_OK;
}

/* With a list of numbers, one for each channel. */
static pc_status with_list(pc__keras_layer *layer, const cJSON *list, bool first)
{
    const bool divides = layer->kind == PC__KERAS_RESCALING, subtracts = layer->kind == PC__KERAS_SUBTRACT;
    const bool scales = divides || layer->kind == PC__KERAS_MULTIPLY;
    if (!scales && !subtracts && layer->kind != PC__KERAS_ADD)
        return no_way(layer);
    if (divides && first)
        return no_way(layer);
    layer->kind = PC__KERAS_RESCALING;
    layer->scale = subtracts && first ? -1 : 1, layer->offset = 0;
    PC__TRY(by_channel(layer, scales ? list : NULL, scales ? NULL : list));
    return divides               ? turn_over(layer, &layer->weights[0], false)
           : subtracts && !first ? turn_over(layer, &layer->weights[1], true)
                                 : PC_OK;
}

static pc_status with_number(pc__keras_layer *layer, double c, bool first)
{
    double scale = 1, offset = 0;
    bool good = isfinite(c);
    if (layer->kind == PC__KERAS_ADD)
        offset = c;
    else if (layer->kind == PC__KERAS_SUBTRACT)
        scale = first ? -1 : 1, offset = first ? c : -c;
    else if (layer->kind == PC__KERAS_MULTIPLY)
        scale = c;
    else if (layer->kind == PC__KERAS_RESCALING && !first && c != 0) /* a division */
        scale = 1 / c;
    else
        good = false;
    if (!good)
        return no_way(layer);
    layer->kind = PC__KERAS_RESCALING;
    layer->scale = scale;
    layer->offset = offset;
    return PC_OK;
}

pc_status pc__keras_constant(pc__keras_layer *layer, const pc__keras_inbound *inbound)
{
    if (layer->arithmetic) /* of a model that is called again */
        return PC_OK;
    layer->arithmetic = true;
    if (!inbound->list)
        return with_number(layer, inbound->constant, inbound->constant_first);
    if (size_of(inbound->list) > 1)
        return with_list(layer, inbound->list, inbound->constant_first);
    const cJSON *one = innermost(inbound->list);
    return with_number(layer, cJSON_IsNumber(one) ? one->valuedouble : (double)NAN, inbound->constant_first);
}

#endif
