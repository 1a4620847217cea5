/* keras_weights.c: the weights of all layers out of and into their groups. By order, never by name: the names changed
 * from version to version of Keras. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_part.h"

#include <ctype.h>

int pc__keras_weight_count(const pc__keras_layer *layer)
{
    return (layer->kernel.rank != 0) + (layer->bias.rank != 0);
}

pc__keras_weight *pc__keras_weight_at(pc__keras_layer *layer, int index)
{
    return index == 0 && layer->kernel.rank ? &layer->kernel : &layer->bias;
}

static const char *weight_word(const pc__keras_layer *layer, const pc__keras_weight *weight)
{
    return weight == &layer->kernel ? "kernel" : "bias";
}

static pc_status read_weight(const char *path, hid_t group, const char *name, pc__keras_layer *layer, int index)
{
    char what[PC__KERAS_NAME_MAX + 32];
    float *values;
    pc__keras_weight *weight = pc__keras_weight_at(layer, index);
    snprintf(what, sizeof what, "the %s of layer '%s'", weight_word(layer, weight), layer->name);
    PC__TRY(pc__h5_floats(path, group, name, what, weight->rank, weight->shape, &values));
    pc__free(weight->value);
    weight->value = values;
    return PC_OK;
}

static pc_status read_layer(const char *path, hid_t group, const pc__names *names, pc__keras_layer *layer)
{
    if (names->count != pc__keras_weight_count(layer))
        return pc__fail(PC_ERR_FORMAT, "%s: layer '%s' needs %d weights, but the file has %d", path, layer->name,
                        pc__keras_weight_count(layer), names->count);
    for (int i = 0; i < names->count; i++)
        PC__TRY(read_weight(path, group, names->items[i], layer, i));
    return PC_OK;
}

/* The next layer that has weights, from *index on; NULL at the end. */
static pc__keras_layer *next_weighted(pc__keras_model *model, int *index)
{
    while (*index < model->layer_count) {
        pc__keras_layer *layer = &model->layers[(*index)++];
        if (pc__keras_weight_count(layer))
            return layer;
    }
    return NULL;
}

/* One group of the file; those without weights are passed over, as Keras does. */
static pc_status read_group(const char *path, hid_t parent, const char *name, pc__keras_model *model, int *index)
{
    hid_t group;
    pc__names names = {0};
    PC__TRY(pc__h5_group(path, parent, name, &group));
    pc_status status = pc__h5_names(path, group, "weight_names", &names, NULL);
    if (status == PC_OK && names.count) {
        pc__keras_layer *layer = next_weighted(model, index);
        status =
            layer ? read_layer(path, group, &names, layer)
                  : pc__fail(PC_ERR_FORMAT, "%s: there are weights for a layer '%.64s' that model_config does not have",
                             path, name);
    }
    pc__names_free(&names);
    H5Gclose(group);
    return status;
}

static pc_status at_the_end(const char *path, pc__keras_model *model, int index)
{
    const pc__keras_layer *layer = next_weighted(model, &index);
    if (!layer)
        return PC_OK;
    return pc__fail(PC_ERR_FORMAT, "%s: there are no weights for layer '%s'", path, layer->name);
}

pc_status pc__keras_weights_read(const char *path, hid_t group, pc__keras_model *model)
{
    pc__names layers = {0};
    bool found;
    int index = 0;
    PC__TRY(pc__h5_names(path, group, "layer_names", &layers, &found));
    pc_status status = PC_OK;
    if (!found)
        status =
            pc__fail(PC_ERR_FORMAT, "%s: the attribute 'layer_names' is missing: these are no Keras weights", path);
    for (int i = 0; i < layers.count && status == PC_OK; i++)
        status = read_group(path, group, layers.items[i], model, &index);
    if (status == PC_OK)
        status = at_the_end(path, model, index);
    pc__names_free(&layers);
    return status;
}

/* Keras 3 names the groups of .weights.h5 after the classes: layers/conv2d/vars/0, layers/conv2d_1/vars/0. */
static pc_status read_native(const char *path, hid_t file, pc__keras_layer *layer, int number)
{
    char name[64];
    hid_t group;
    pc__names names = {0};
    snprintf(name, sizeof name, number ? "layers/%s_%d/vars" : "layers/%s/vars",
             layer->kind == PC__KERAS_CONV2D ? "conv2d" : "dense", number);
    PC__TRY(pc__h5_group(path, file, name, &group));
    pc_status status = PC_OK;
    for (int i = 0; i < 16 && status == PC_OK; i++) {
        char variable[4];
        int n = snprintf(variable, sizeof variable, "%d", i);
        if (H5Lexists(group, variable, H5P_DEFAULT) <= 0)
            break;
        status = pc__names_add(&names, variable, (size_t)n);
    }
    if (status == PC_OK)
        status = read_layer(path, group, &names, layer);
    pc__names_free(&names);
    H5Gclose(group);
    return status;
}

pc_status pc__keras_native_weights_read(const char *path, hid_t file, pc__keras_model *model)
{
    int number[PC__KERAS_KIND_COUNT] = {0}, index = 0;
    for (pc__keras_layer *layer; (layer = next_weighted(model, &index));)
        PC__TRY(read_native(path, file, layer, number[layer->kind]++));
    return PC_OK;
}

static pc_status write_layer(const char *path, hid_t parent, const char *model_name, pc__keras_layer *layer)
{
    hid_t group;
    pc__names names = {0};
    PC__TRY(pc__h5_add_group(path, parent, layer->name, &group));
    pc_status status = PC_OK;
    for (int i = 0; i < pc__keras_weight_count(layer) && status == PC_OK; i++) {
        const pc__keras_weight *weight = pc__keras_weight_at(layer, i);
        char name[2 * PC__KERAS_NAME_MAX + 16];
        int n = snprintf(name, sizeof name, "%s/%s/%s", model_name, layer->name, weight_word(layer, weight));
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
