/* model_file.c: classifiers to and from Keras files. */
#include "train/model_file.h"

#include "train/arch.h"
#include "train/label_layer.h"

#include <limits.h>

/* ---- writing */

static pc_status put_note(pc__keras_model *keras, const pc_preparation *p)
{
    pc__text note = {0};
    pc__preparation_note(&note, p);
    if (note.failed) {
        pc__text_free(&note);
        return PC_ERR_MEMORY;
    }
    keras->note = note.data;
    return PC_OK;
}

/* (p * rescale - mean) / std as a scale and an offset for each channel. */
static pc_status put_normal(pc__keras_layer *layer, const pc_preparation *p)
{
    static const char *const words[2] = {"scale", "offset"};
    const int64_t channels = p->channels;
    for (int w = 0; w < 2; w++)
        PC__TRY(pc__keras_weight_make(layer, words[w], 1, &channels));
    for (int64_t c = 0; c < channels; c++) {
        layer->weights[0].value[c] = (float)(p->rescale / p->std[c]);
        layer->weights[1].value[c] = (float)(-p->mean[c] / p->std[c]);
    }
    layer->scale = 1;
    layer->given = true;
    return PC_OK;
}

/* The layer that multiplies the pixels, so that Keras takes raw ones, in front of the others. */
static pc_status put_rescaling(pc__keras_model *keras, const pc__model_file *model)
{
    pc__keras_layer *first = pc__keras_add_front(keras, PC__KERAS_RESCALING);
    if (!first)
        return PC_ERR_MEMORY;
    first->scale = model->preparation.rescale;
    if (pc__preparation_normalizes(&model->preparation))
        PC__TRY(put_normal(first, &model->preparation));
    pc__label_layer_print(&model->preparation, model->class_names, model->class_count, first->name);
    return PC_OK;
}

const char *pc__model_name(const char *arch)
{
    return pc__arch_is_keras(arch) ? "model.h5" : "model.safetensors";
}

pc_status pc__model_save(const char *path, const pc__model_file *model)
{
    if (model->arch)
        return pc__model_save_weights(path, model);
    pc__keras_model keras = {.name = "sequential"};
    const pc__frame frame = pc__preparation_frame(&model->preparation);
    int64_t input[3] = {frame.channels, frame.height, frame.width};
    pc_status status = pc__module_to_keras(model->net, input, model->head, model->optimizer, false, &keras);
    if (model->lr > 0)
        keras.training.learning_rate = model->lr;
    if (status == PC_OK)
        status = put_rescaling(&keras, model);
    if (status == PC_OK)
        status = pc__keras_name_classes(&keras, model->class_names, model->class_count);
    if (status == PC_OK)
        status = put_note(&keras, &model->preparation);
    if (status == PC_OK)
        status = pc__keras_write(path, &keras);
    pc__keras_free(&keras);
    return status;
}

pc_status pc__model_note(const char *path, const pc__model_file *model)
{
    if (model->arch)
        return pc__model_save_weights(path, model);
    pc__keras_model keras = {0};
    pc_status status = pc__keras_name_classes(&keras, model->class_names, model->class_count);
    if (status == PC_OK)
        status = put_note(&keras, &model->preparation);
    pc__label_model_print(&model->preparation, model->class_names, model->class_count, keras.name);
    if (status == PC_OK)
        status = pc__keras_note(path, &keras);
    pc__keras_free(&keras);
    return status;
}

/* ---- reading */

static bool is_open(const pc__keras_model *keras)
{
    return keras->input_shape[0] < 0 || keras->input_shape[1] < 0;
}

/* Pictures of any size: no layer may count on one. */
static pc_status check_open(const char *path, const pc__keras_model *keras)
{
    for (int i = 0; i < keras->node_count; i++) {
        const pc__keras_layer *layer = &keras->layers[keras->nodes[i].layer];
        const int from = keras->edges[keras->nodes[i].first];
        const int64_t *shape = from < 0 ? keras->input_shape : keras->nodes[from].shape;
        const int rank = from < 0 ? keras->input_rank : keras->nodes[from].rank;
        const bool counts = layer->kind == PC__KERAS_FLATTEN || layer->kind == PC__KERAS_RESHAPE;
        if (counts && rank > 1 && (shape[0] < 0 || shape[1] < 0))
            return pc__fail(PC_ERR_UNSUPPORTED,
                            "%s: layer '%.64s' (%s) needs pictures of one size, which the model's input leaves open",
                            path, layer->name, layer->class_name);
    }
    return PC_OK;
}

static pc_status check(const char *path, const pc__keras_model *keras)
{
    const int64_t *shape = keras->input_shape;
    const bool sides = shape[0] != 0 && shape[0] <= PC__MODEL_SIDE_MAX && shape[1] != 0 &&
                       shape[1] <= PC__MODEL_SIDE_MAX; /* -1: open */
    if (!sides || keras->input_rank != 3 || (shape[2] != 1 && shape[2] != 3))
        return pc__fail(PC_ERR_UNSUPPORTED,
                        "%s: the model's input is not a picture: (height, width, 3) for colour, (height, width, 1) or "
                        "(height, width) for grey, of up to %d x %d",
                        path, PC__MODEL_SIDE_MAX, PC__MODEL_SIDE_MAX);
    return is_open(keras) ? check_open(path, keras) : PC_OK;
}

/* The number of logits; 0 where the model does not give a row of them. */
static int outputs_of(const pc__keras_model *keras)
{
    const pc__keras_node *last = &keras->nodes[keras->output];
    return last->rank == 1 && last->shape[0] > 0 && last->shape[0] < INT_MAX ? (int)last->shape[0] : 0;
}

/* Are the numbers that come out logits? What a layer with weights and no activation gives, moved about at most, in a
 * model that was compiled to tell classes apart, or not at all. */
static bool ends_in_logits(const pc__keras_model *keras)
{
    const pc__keras_training *t = &keras->training;
    bool other = t->loss[0] && !t->from_logits && !strstr(t->loss, "crossentropy") && !strstr(t->loss, "hinge");
    for (int node = keras->output; node >= 0 && !other; node = keras->edges[keras->nodes[node].first]) {
        const pc__keras_layer *layer = &keras->layers[keras->nodes[node].layer];
        switch (layer->kind) {
        case PC__KERAS_FLATTEN:
        case PC__KERAS_RESHAPE:
        case PC__KERAS_DROPOUT:
        case PC__KERAS_GLOBAL_AVG_POOL2D:
        case PC__KERAS_GLOBAL_MAX_POOL2D:
            break;
        default:
            return layer->weight_count && layer->activation == PC__KERAS_LINEAR && layer->kind != PC__KERAS_PRELU;
        }
    }
    return false;
}

/* The name of the layer that our files begin with, or "". */
static const char *label_of(const pc__keras_model *keras)
{
    for (int i = 0; i < keras->node_count; i++) {
        const pc__keras_layer *layer = &keras->layers[keras->nodes[i].layer];
        if (keras->edges[keras->nodes[i].first] == PC__KERAS_PICTURE && layer->kind == PC__KERAS_RESCALING)
            return layer->name;
    }
    return "";
}

/* How many class names are in the name of the model or of its first layer, and those. */
static int labelled_classes(const pc__keras_model *keras, char (*names)[PC_CLASS_NAME_MAX], int room)
{
    const int count = pc__label_layer_classes(keras->name, names, room);
    return count ? count : pc__label_layer_classes(label_of(keras), names, room);
}

/* From the file's attributes, or those names, which stay where Keras has saved the file again; else numbers. */
static pc_status name_classes(const char *path, const pc__keras_model *keras, pc__opened_model *model)
{
    int outputs = outputs_of(keras), count = outputs == 1 ? 2 : outputs, labelled;
    bool fits = model->file.head == PC_KERAS_SIGMOID   ? outputs == 1
                : model->file.head == PC_KERAS_SOFTMAX ? outputs > 1
                                                       : ends_in_logits(keras);
    if (!fits || count < 2)
        return pc__fail(PC_ERR_UNSUPPORTED,
                        "%s: the model does not end in a sigmoid of one unit, a softmax of several, or logits; it "
                        "is no classifier",
                        path);
    if (keras->class_count && keras->class_count != count)
        return pc__fail(PC_ERR_FORMAT, "%s: the file names %d classes and the network has %d", path, keras->class_count,
                        count);
    model->names = pc__calloc((size_t)count, sizeof *model->names);
    if (!model->names)
        return PC_ERR_MEMORY;
    model->file.class_count = count;
    labelled = labelled_classes(keras, model->names, count);
    model->named = keras->class_count || labelled == count;
    for (int i = 0; i < count; i++)
        if (keras->class_count)
            snprintf(model->names[i], sizeof model->names[i], "%s", keras->class_names[i]);
        else if (!model->named)
            snprintf(model->names[i], sizeof model->names[i], "%d", i);
    return PC_OK;
}

/* Layers in front are summed up as a preparation. Notes of Paracord 0.1 stand for a factor in front alone, and are
 * followed by the rest of these layers. */
static bool takes_whole_front(const pc__keras_model *keras)
{
    return !keras->note || pc__preparation_is_whole(keras->note);
}

/* What the file says of how its pictures are prepared; our note counts over layers. */
static void find_preparation(const pc__keras_model *keras, const pc__keras_front *front, pc__model_file *file)
{
    pc_preparation *p = &file->preparation;
    const int64_t *shape = keras->input_shape;
    const pc__frame frame = {(int)PC__MAX(shape[0], 0), (int)PC__MAX(shape[1], 0), (int)shape[2]};
    *p = pc__preparation_of(pc__preparation_assumed(), frame);
    if (front->found) {
        p->rescale = front->rescale, p->source = PC_PREPARATION_LAYER;
        for (int c = 0; c < PC_PREPARATION_CHANNELS && !keras->note; c++)
            p->mean[c] = front->mean[c], p->std[c] = front->std[c];
    }
    if (pc__label_layer_read(label_of(keras), p))
        p->source = PC_PREPARATION_LAYER;
    if (pc__label_model_read(keras->name, p))
        p->source = PC_PREPARATION_NOTED;
    if (keras->note) {
        pc__preparation_read(keras->note, p);
        p->source = PC_PREPARATION_NOTED;
    }
}

static pc_status take(const char *path, const pc__keras_model *keras, pc__opened_model *model)
{
    pc__keras_front front;
    PC__TRY(check(path, keras));
    model->file.net = pc__module_from_keras(keras, path, &model->file.head, takes_whole_front(keras), &front);
    if (!model->file.net)
        return pc_error_last()->status;
    find_preparation(keras, &front, &model->file);
    model->file.open = is_open(keras);
    snprintf(model->optimizer, sizeof model->optimizer, "%s", keras->training.optimizer_class);
    pc_module_set_training(model->file.net, false);
    return name_classes(path, keras, model);
}

pc_status pc__model_open(const char *path, pc__opened_model *model)
{
    pc__keras_model keras = {0};
    *model = (pc__opened_model){0};
    PC__TRY(pc__keras_read(path, &keras));
    pc_status status = take(path, &keras, model);
    pc__keras_free(&keras);
    if (status != PC_OK)
        pc__model_close(model);
    return status;
}

void pc__model_close(pc__opened_model *model)
{
    pc_module_free(model->file.net);
    pc__free(model->names);
    pc__free(model->arch);
    *model = (pc__opened_model){0};
}
