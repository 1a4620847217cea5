/* keras_native.c: weights in Keras 3's own layout, that of .weights.h5 and of model.weights.h5 in a .keras file. Groups
 * are named after classes and counted: layers/conv2d/vars/0, layers/sequential/layers/conv2d_1/vars/1. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_part.h"

pc_status pc__keras_native_locate(const char *class_name, const char *inside, pc__names *used, char **location)
{
    char word[PC__KERAS_NAME_MAX];
    int number = 0;
    pc__text text = {0};
    pc__keras_snake(strcmp(class_name, "Model") == 0 ? "Functional" : class_name, word);
    for (int i = 0; i < used->count; i++)
        number += strcmp(used->items[i], word) == 0;
    PC__TRY(pc__names_add(used, word, strlen(word)));
    pc__text_add(&text, number ? "%s%slayers/%s_%d" : "%s%slayers/%s", inside, inside[0] ? "/" : "", word, number);
    *location = text.data;
    if (!text.failed)
        return PC_OK;
    pc__text_free(&text);
    *location = NULL;
    return PC_ERR_MEMORY;
}

/* The group of a layer's variables; false when there is none, or it cannot be had. */
static bool open_variables(const char *path, pc__h5_node file, const pc__keras_layer *layer, pc__h5_node *group)
{
    pc__text name = {0};
    pc__text_add(&name, "%s/vars", layer->location ? layer->location : "");
    bool good = !name.failed && layer->location && layer->location[0] && pc__h5_has(file, name.data) &&
                pc__h5_group(path, file, name.data, group) == PC_OK;
    pc__text_free(&name);
    return good;
}

static bool has_variable(pc__h5_node group, int number, char name[12])
{
    snprintf(name, 12, "%d", number);
    return pc__h5_has(group, name);
}

static pc_status read_layer(const char *path, pc__h5_node file, pc__keras_layer *layer)
{
    pc__h5_node group;
    char name[12];
    int count = 0, needs = layer->weight_count + pc__keras_count_slot(layer);
    if (!open_variables(path, file, layer, &group))
        return pc_failed() ? pc_error_last()->status
                           : pc__fail(PC_ERR_FORMAT, "%s: there are no weights for layer '%s' (in the group '%.100s')",
                                      path, layer->name, layer->location ? layer->location : "");
    while (count < 16 && has_variable(group, count, name))
        count++;
    pc_status status = PC_OK;
    if (count != needs)
        status = pc__fail(PC_ERR_FORMAT, "%s: layer '%s' needs %d weights, but the file has %d", path, layer->name,
                          needs, count);
    for (int i = 0; i < layer->weight_count && status == PC_OK; i++)
        if (has_variable(group, i, name))
            status = pc__keras_weight_read(path, group, name, layer, i);
    pc__h5_close(group);
    return status;
}

pc_status pc__keras_native_read(const char *path, pc__h5_node file, pc__keras_model *model)
{
    for (int i = 0; i < model->layer_count; i++)
        if (model->layers[i].weight_count && !pc__keras_in_config(&model->layers[i]))
            PC__TRY(read_layer(path, file, &model->layers[i]));
    return PC_OK;
}

pc_status pc__keras_native_count(const char *path, pc__h5_node file, pc__keras_model *model)
{
    for (int i = 0; i < model->layer_count; i++) {
        pc__h5_node group;
        char name[12];
        pc__keras_layer *layer = &model->layers[i];
        if (!open_variables(path, file, layer, &group)) {
            if (pc_failed())
                return pc_error_last()->status;
            continue;
        }
        layer->stored = 0;
        for (int k = 0; k < 64 && has_variable(group, k, name); k++)
            layer->stored = pc__keras_add_elements(group, name, layer->stored);
        pc__h5_close(group);
    }
    return PC_OK;
}

#endif
