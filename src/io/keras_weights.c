/* keras_weights.c: the weights of all layers out of and into their groups in a .h5 file. By order, as Keras takes them:
 * the names changed from version to version. But where a name says what a weight is, it must be that. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_part.h"

#include <ctype.h>

/* Normalization's and Rescaling's numbers, where they are in the config; they are always written so. */
bool pc__keras_in_config(const pc__keras_layer *layer)
{
    return layer->given;
}

int pc__keras_count_slot(const pc__keras_layer *layer)
{
    return layer->kind == PC__KERAS_NORMALIZATION && !layer->given;
}

/* How many weights the file has for a layer. */
static int stored_weights(const pc__keras_layer *layer)
{
    return pc__keras_in_config(layer) ? 0 : layer->weight_count + pc__keras_count_slot(layer);
}

pc_status pc__keras_weight_read(const char *path, pc__h5_node group, const char *name, pc__keras_layer *layer,
                                int index)
{
    char what[PC__KERAS_NAME_MAX + 32];
    float *values;
    pc__keras_weight *weight = &layer->weights[index];
    snprintf(what, sizeof what, "the %s of layer '%s'", weight->word, layer->name);
    PC__TRY(pc__h5_floats(path, group, name, what, weight->rank, weight->shape, &values));
    pc__free(weight->value);
    weight->value = values;
    return PC_OK;
}

/* One weight of a group in the order in which Keras writes them; index past the layer's weights: its count. */
typedef struct place {
    pc__keras_layer *layer;
    int index;
} place;

typedef struct places {
    place *items;
    int count, capacity;
} places;

static pc_status add_place(places *list, pc__keras_layer *layer, int index)
{
    PC__TRY(pc__grow((void **)&list->items, &list->capacity, list->count, sizeof *list->items));
    list->items[list->count++] = (place){layer, index};
    return PC_OK;
}

/* Of all layers of a group those that are trained come first, then the rest. */
static pc_status collect(pc__keras_model *model, int group, places *list)
{
    for (int pass = 0; pass < 2; pass++)
        for (int l = 0; l < model->layer_count; l++) {
            pc__keras_layer *layer = &model->layers[l];
            for (int i = 0; layer->group == group && i < stored_weights(layer); i++) {
                bool rest = layer->frozen || i >= layer->weight_count || layer->weights[i].fixed;
                if (rest == (pass == 1))
                    PC__TRY(add_place(list, layer, i));
            }
        }
    return PC_OK;
}

/* The last part of a weight's name without ":0" or "_1", when it is a word that layers use. */
static bool says(const char *name, const char *word)
{
    static const char *const words[] = {
        "kernel",           "bias", "gamma",    "beta",  "moving_mean", "moving_variance", "depthwise_kernel",
        "pointwise_kernel", "mean", "variance", "count", "alpha"};
    const char *last = strrchr(name, '/');
    last = last ? last + 1 : name;
    size_t n = strcspn(last, ":");
    while (n && isdigit((unsigned char)last[n - 1]))
        n--;
    n -= n && last[n - 1] == '_';
    for (int i = 0; i < PC__COUNT(words); i++)
        if (strlen(words[i]) == n && strncmp(words[i], last, n) == 0) {
            const char *end = strstr(word, words[i]); /* a depthwise_kernel may be called kernel */
            return strcmp(word, words[i]) == 0 || (end && strcmp(end, words[i]) == 0 && i == 0);
        }
    return true;
}

static pc_status read_places(const char *path, pc__h5_node group, const pc__names *names, const places *list)
{
    for (int i = 0; i < names->count; i++) {
        pc__keras_layer *layer = list->items[i].layer;
        int index = list->items[i].index;
        const char *word = index < layer->weight_count ? layer->weights[index].word : "count";
        if (!says(names->items[i], word))
            return pc__fail(PC_ERR_FORMAT, "%s: the %s of layer '%s' should come where the file has '%.64s'", path,
                            word, layer->name, names->items[i]);
        if (index < layer->weight_count)
            PC__TRY(pc__keras_weight_read(path, group, names->items[i], layer, index));
    }
    return PC_OK;
}

/* The next group of layers that has weights, from *group on; false at the end. */
static pc_status next_weighted(pc__keras_model *model, int *group, places *list)
{
    int last = -1;
    for (int i = 0; i < model->layer_count; i++)
        last = PC__MAX(last, model->layers[i].group);
    list->count = 0;
    while (*group <= last && !list->count)
        PC__TRY(collect(model, (*group)++, list));
    return PC_OK;
}

/* One group of the file; those without weights are passed over, as Keras does. */
static pc_status read_group(const char *path, pc__h5_node parent, const char *name, pc__keras_model *model, int *at,
                            places *list)
{
    pc__h5_node group;
    pc__names names = {0};
    PC__TRY(pc__h5_group(path, parent, name, &group));
    pc_status status = pc__h5_names(path, group, "weight_names", &names, NULL);
    if (status == PC_OK && names.count) {
        status = next_weighted(model, at, list);
        const pc__keras_layer *first = list->count ? list->items[0].layer : NULL;
        if (status == PC_OK && !first)
            status = pc__fail(PC_ERR_FORMAT,
                              "%s: there are weights for a layer '%.64s' that model_config does not have", path, name);
        else if (status == PC_OK && names.count != list->count)
            status = pc__fail(PC_ERR_FORMAT, "%s: layer '%s' needs %d weights, but the file has %d", path, first->name,
                              list->count, names.count);
        if (status == PC_OK)
            status = read_places(path, group, &names, list);
    }
    pc__names_free(&names);
    pc__h5_close(group);
    return status;
}

static pc_status layer_names(const char *path, pc__h5_node group, pc__names *layers)
{
    bool found;
    PC__TRY(pc__h5_names(path, group, "layer_names", layers, &found));
    if (found)
        return PC_OK;
    return pc__fail(PC_ERR_FORMAT, "%s: the attribute 'layer_names' is missing: these are no Keras weights", path);
}

pc_status pc__keras_weights_read(const char *path, pc__h5_node group, pc__keras_model *model)
{
    pc__names layers = {0};
    places list = {0};
    int at = 0;
    pc_status status = layer_names(path, group, &layers);
    for (int i = 0; i < layers.count && status == PC_OK; i++)
        status = read_group(path, group, layers.items[i], model, &at, &list);
    if (status == PC_OK)
        status = next_weighted(model, &at, &list);
    if (status == PC_OK && list.count)
        status = pc__fail(PC_ERR_FORMAT, "%s: there are no weights for layer '%s'", path, list.items[0].layer->name);
    pc__free(list.items);
    pc__names_free(&layers);
    return status;
}

int64_t pc__keras_add_elements(pc__h5_node group, const char *name, int64_t to)
{
    pc__keras_weight weight = {0};
    pc__h5_shape(group, name, &weight.rank, weight.shape);
    if (to < 0 || weight.rank < 0)
        return -1;
    const int64_t n = weight.rank > 0 ? pc__keras_weight_size(&weight) : 1;
    return to > INT64_MAX - n ? INT64_MAX : to + n;
}

/* Elements of all weights of a group, for a layer that may not be known. */
static pc_status count_group(const char *path, pc__h5_node parent, const char *name, int64_t *elements)
{
    pc__h5_node group;
    pc__names names = {0};
    *elements = 0;
    PC__TRY(pc__h5_group(path, parent, name, &group));
    pc_status status = pc__h5_names(path, group, "weight_names", &names, NULL);
    for (int i = 0; i < names.count && status == PC_OK; i++)
        *elements = pc__keras_add_elements(group, names.items[i], *elements);
    pc__names_free(&names);
    pc__h5_close(group);
    return status;
}

/* For layers that are alone in their group: its name is theirs. */
pc_status pc__keras_weights_count(const char *path, pc__h5_node group, pc__keras_model *model)
{
    pc__names layers = {0};
    pc_status status = layer_names(path, group, &layers);
    for (int i = 0; i < layers.count && status == PC_OK; i++)
        for (int l = 0; l < model->layer_count; l++)
            if (strcmp(model->layers[l].name, layers.items[i]) == 0 && status == PC_OK)
                status = count_group(path, group, layers.items[i], &model->layers[l].stored);
    pc__names_free(&layers);
    return status;
}

static pc_status write_layer(const char *path, hid_t parent, const char *model_name, pc__keras_layer *layer)
{
    hid_t group;
    pc__names names = {0};
    PC__TRY(pc__h5_add_group(path, parent, layer->name, &group));
    pc_status status = PC_OK;
    const bool elsewhere = layer->kind == PC__KERAS_NORMALIZATION || pc__keras_in_config(layer);
    int count = elsewhere ? 0 : layer->weight_count;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < count && status == PC_OK; i++) {
            const pc__keras_weight *weight = &layer->weights[i];
            char name[2 * PC__KERAS_NAME_MAX + 32];
            if ((layer->frozen || weight->fixed) != (pass == 1))
                continue;
            int n = snprintf(name, sizeof name, "%s/%s/%s", model_name, layer->name, weight->word);
            status = pc__h5_put(path, group, name, weight->rank, weight->shape, H5T_IEEE_F32LE, weight->value);
            if (status == PC_OK)
                status = pc__names_add(&names, name, (size_t)n);
        }
    if (status == PC_OK)
        status = pc__h5_put_names(path, group, "weight_names", names.items, names.count);
    pc__names_free(&names);
    H5Gclose(group);
    return status;
}

pc_status pc__keras_weights_write(const char *path, hid_t group, pc__keras_model *model)
{
    const char *name = model->name[0] ? model->name : "sequential";
    pc__names names = {0};
    pc_status status = PC_OK;
    for (int i = 0; i < model->layer_count && status == PC_OK; i++)
        status = pc__names_add(&names, model->layers[i].name, strlen(model->layers[i].name));
    if (status == PC_OK)
        status = pc__h5_put_names(path, group, "layer_names", names.items, names.count);
    for (int i = 0; i < model->layer_count && status == PC_OK; i++)
        status = write_layer(path, group, name, &model->layers[i]);
    pc__names_free(&names);
    return status;
}

#endif
