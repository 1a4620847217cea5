/* keras_chain.c: is a Functional model one plain chain, its layers in order? */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_part.h"

/* The layer that one inbound node names, or NULL: Keras 2 has [[["conv2d", 0, 0, {}]]], Keras 3 {"args": [{"config":
 * {"keras_history": ["conv2d", 0, 0]}}], "kwargs": {}}. */
static const char *source_of(const cJSON *node)
{
    if (cJSON_IsArray(node) && cJSON_GetArraySize(node) == 1)
        return cJSON_GetStringValue(cJSON_GetArrayItem(cJSON_GetArrayItem(node, 0), 0));
    const cJSON *arguments = pc__keras_json_get(node, "args");
    if (!cJSON_IsArray(arguments) || cJSON_GetArraySize(arguments) != 1)
        return NULL;
    const cJSON *config = pc__keras_json_get(cJSON_GetArrayItem(arguments, 0), "config");
    return cJSON_GetStringValue(cJSON_GetArrayItem(pc__keras_json_get(config, "keras_history"), 0));
}

/* Does ["dense", 0, 0] or [["dense", 0, 0]] name this layer alone? */
static bool is_end(const cJSON *ends, const char *name)
{
    const cJSON *first = cJSON_GetArrayItem(ends, 0);
    if (cJSON_IsArray(first) && cJSON_GetArraySize(ends) != 1)
        return false;
    const char *end = cJSON_GetStringValue(cJSON_IsArray(first) ? cJSON_GetArrayItem(first, 0) : first);
    return end && strcmp(end, name) == 0;
}

pc_status pc__keras_chain_check(const char *path, const cJSON *config, const cJSON *layers)
{
    const char *before = NULL, *stray = NULL;
    const cJSON *layer;
    cJSON_ArrayForEach(layer, layers)
    {
        const char *name = pc__keras_json_string(layer, "name");
        const cJSON *nodes = pc__keras_json_get(layer, "inbound_nodes");
        const char *source = cJSON_GetArraySize(nodes) == 1 ? source_of(cJSON_GetArrayItem(nodes, 0)) : NULL;
        bool first = !before && cJSON_GetArraySize(nodes) == 0;
        if (!name || (!first && (!before || !source || strcmp(source, before) != 0))) {
            stray = name ? name : "(no name)";
            break;
        }
        before = name;
    }
    if (!stray && before && is_end(pc__keras_json_get(config, "output_layers"), before))
        return PC_OK;
    return pc__fail(PC_ERR_UNSUPPORTED,
                    "%s: the model is Functional and not one plain chain (at layer '%.64s'); supported "
                    "are Sequential models and chains",
                    path,
                    stray    ? stray
                    : before ? before
                             : "(none)");
}

#endif
