/* model_file.c: classifiers to and from Keras files. */
#include "train/model_file.h"

static const char note_format[] = "{\"resize\": \"%s\", \"rescale\": %.17g}";

static pc_status put_notes(pc__keras_model *keras, const pc__model_file *model)
{
    PC__TRY(pc__keras_name_classes(keras, model->class_names, model->class_count));
    char note[128];
    snprintf(note, sizeof note, note_format, model->resize == PC_RESIZE_AREA ? "area" : "nearest", model->rescale);
    keras->note = pc__strdup(note);
    return keras->note ? PC_OK : PC_ERR_MEMORY;
}

pc_status pc__model_save(const char *path, const pc__model_file *model)
{
    pc__keras_model keras = {.name = "sequential"};
    int64_t input[3] = {3, model->size, model->size};
    pc_status status = pc__module_to_keras(model->net, input, model->head, model->optimizer, false, &keras);
    if (status == PC_OK)
        status = put_notes(&keras, model);
    if (status == PC_OK)
        status = pc__keras_write(path, &keras);
    pc__keras_free(&keras);
    return status;
}

/* What our note says; a file of Keras's own has none. */
static void read_note(const char *note, pc__model_file *file)
{
    char mode[16];
    double rescale;
    file->resize = PC_RESIZE_NEAREST;
    if (!note || sscanf(note, "{\"resize\": \"%15[a-z]\", \"rescale\": %lf}", mode, &rescale) != 2)
        return;
    if (strcmp(mode, "area") == 0)
        file->resize = PC_RESIZE_AREA;
    if (rescale > 0 && rescale < 1e6)
        file->rescale = rescale;
}

static pc_status check(const char *path, const pc__keras_model *keras)
{
    if (keras->input_rank != 3 || keras->input_shape[2] != 3 || keras->input_shape[0] != keras->input_shape[1] ||
        keras->input_shape[0] < 1 || keras->input_shape[0] > 4096)
        return pc__fail(PC_ERR_UNSUPPORTED,
                        "%s: the model's input is not a square colour picture of known size "
                        "(size, size, 3)",
                        path);
    return PC_OK;
}

/* The number of logits: the units of the last dense layer. */
static int outputs_of(const pc__keras_model *keras)
{
    for (int i = keras->layer_count - 1; i >= 0; i--)
        if (keras->layers[i].kind == PC__KERAS_DENSE)
            return keras->layers[i].units;
    return 0;
}

static pc_status name_classes(const char *path, const pc__keras_model *keras, pc__opened_model *model)
{
    int outputs = outputs_of(keras), count = outputs == 1 ? 2 : outputs;
    if (model->file.head == PC_KERAS_LOGITS || (model->file.head == PC_KERAS_SIGMOID && outputs != 1) || count < 2)
        return pc__fail(PC_ERR_UNSUPPORTED,
                        "%s: the model does not end in a sigmoid of one unit or a softmax of several; it "
                        "is no classifier",
                        path);
    if (keras->class_count && keras->class_count != count)
        return pc__fail(PC_ERR_FORMAT, "%s: the file names %d classes and the network has %d", path, keras->class_count,
                        count);
    model->names = pc__calloc((size_t)count, sizeof *model->names);
    if (!model->names)
        return PC_ERR_MEMORY;
    for (int i = 0; i < count; i++)
        if (keras->class_count)
            snprintf(model->names[i], sizeof model->names[i], "%s", keras->class_names[i]);
        else
            snprintf(model->names[i], sizeof model->names[i], "%d", i);
    model->file.class_count = count;
    model->named = keras->class_count > 0;
    return PC_OK;
}

static pc_status take(const char *path, const pc__keras_model *keras, pc__opened_model *model)
{
    double scale;
    PC__TRY(check(path, keras));
    model->file.net = pc__module_from_keras(keras, path, &model->file.head, &scale);
    if (!model->file.net)
        return pc_error_last()->status;
    model->file.size = (int)keras->input_shape[0];
    model->file.rescale = scale > 0 ? scale : 1 / 255.0;
    read_note(keras->note, &model->file);
    snprintf(model->optimizer, sizeof model->optimizer, "%s", keras->training.optimizer_class);
    pc_module_train(model->file.net, false);
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
    *model = (pc__opened_model){0};
}
