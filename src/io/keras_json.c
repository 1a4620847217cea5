/* keras_json.c: fields out of parsed JSON; a layer whose field is wrong is refused by name of the field. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_part.h"

#include <math.h>

/* cJSON itself refuses nesting beyond its limit of 1000. It parses with its own allocator and says NULL for all
 * failures alike. */
pc_status pc__keras_json_parse(const char *path, const char *what, const char *text, cJSON **json)
{
    const char *end = NULL;
    *json = cJSON_ParseWithOpts(text, &end, true);
    if (*json)
        return PC_OK;
    size_t at = end ? (size_t)(end - text) : 0;
    return pc__fail(PC_ERR_FORMAT, "%s: %s is not valid JSON (near byte %zu: '%.24s')", path, what, at, end ? end : "");
}

const cJSON *pc__keras_json_get(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return item && !cJSON_IsNull(item) ? item : NULL;
}

const char *pc__keras_json_string(const cJSON *object, const char *key)
{
    return cJSON_GetStringValue(pc__keras_json_get(object, key));
}

double pc__keras_json_number(const cJSON *object, const char *key, double missing)
{
    const cJSON *item = pc__keras_json_get(object, key);
    if (!item)
        return missing;
    return cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
}

bool pc__keras_json_size(const cJSON *item, int *value)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 1 && item->valuedouble <= PC__KERAS_SIZE_MAX) ||
        item->valuedouble != floor(item->valuedouble))
        return false;
    *value = (int)item->valuedouble;
    return true;
}

pc_status pc__keras_json_integer(const pc__keras_source *from, const char *key, int *value)
{
    if (pc__keras_json_size(pc__keras_json_get(from->config, key), value))
        return PC_OK;
    return pc__keras_refuse(from->layer, PC_ERR_FORMAT, "needs a whole number from 1 to %d as %s", PC__KERAS_SIZE_MAX,
                            key);
}

pc_status pc__keras_json_pair(const pc__keras_source *from, const char *key, int fallback, int pair[2])
{
    const cJSON *item = pc__keras_json_get(from->config, key);
    pair[0] = pair[1] = fallback;
    if (!item && fallback)
        return PC_OK;
    if (cJSON_IsObject(item))
        item = pc__keras_json_get(item, "items"); /* a tuple of TensorFlow's encoder */
    const cJSON *first = cJSON_IsArray(item) ? cJSON_GetArrayItem(item, 0) : item;
    const cJSON *second = cJSON_IsArray(item) ? cJSON_GetArrayItem(item, 1) : item;
    if ((!cJSON_IsArray(item) || cJSON_GetArraySize(item) == 2) && pc__keras_json_size(first, &pair[0]) &&
        pc__keras_json_size(second, &pair[1]))
        return PC_OK;
    return pc__keras_refuse(from->layer, PC_ERR_FORMAT, "needs two whole numbers from 1 to %d as %s",
                            PC__KERAS_SIZE_MAX, key);
}

pc_status pc__keras_json_bool(const pc__keras_source *from, const char *key, bool fallback, bool *value)
{
    const cJSON *item = pc__keras_json_get(from->config, key);
    *value = item ? cJSON_IsTrue(item) : fallback;
    if (!item || cJSON_IsBool(item))
        return PC_OK;
    return pc__keras_refuse(from->layer, PC_ERR_FORMAT, "needs true or false as %s", key);
}

bool pc__keras_json_shape(const cJSON *shape, int *rank, int64_t sizes[3])
{
    int n = cJSON_GetArraySize(shape) - 1;
    if (!cJSON_IsArray(shape) || n < 1 || n > 3)
        return false;
    for (int i = 0; i < n; i++) {
        const cJSON *size = cJSON_GetArrayItem(shape, i + 1);
        bool number = cJSON_IsNumber(size) && size->valuedouble >= 1 && size->valuedouble <= 1e15;
        if (!number && !cJSON_IsNull(size))
            return false;
        sizes[i] = number ? (int64_t)size->valuedouble : -1;
    }
    *rank = n;
    return true;
}

pc_status pc__keras_json_name(const char *path, const char *what, const char *text, char name[PC__KERAS_NAME_MAX])
{
    if (!text || !text[0])
        return pc__fail(PC_ERR_FORMAT, "%s: %s has no name in model_config", path, what);
    if (strlen(text) >= PC__KERAS_NAME_MAX)
        return pc__fail(PC_ERR_UNSUPPORTED, "%s: %s has a name of over %d bytes: '%.40s...'", path, what,
                        PC__KERAS_NAME_MAX - 1, text);
    memcpy(name, text, strlen(text) + 1);
    return PC_OK;
}

#endif
