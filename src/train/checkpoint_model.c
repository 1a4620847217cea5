/* checkpoint_model.c: a checkpoint as a classifier. The text has a line for the network and its pictures, and one for
 * how these are prepared; then each class has a line with the bytes of its name, and the name, which may hold any
 * byte. */
#include "train/checkpoint_model.h"

#include "train/arch.h"
#include "train/checkpoint_form.h"

enum { SIDE_MAX = 16384, CLASSES_MAX = 1 << 20 };

char *pc__checkpoint_about(const char *arch, const pc__model_file *model)
{
    pc__text text = {0};
    const pc__frame frame = pc__preparation_frame(&model->preparation);
    pc__text_add(&text, "network %s, pictures %d %d %d, classes %d\n", arch, frame.height, frame.width, frame.channels,
                 model->class_count);
    pc__preparation_print(&text, &model->preparation);
    pc__text_add(&text, "\n");
    for (int i = 0; i < model->class_count; i++)
        pc__text_add(&text, "%d %s\n", (int)strlen(model->class_names[i]), model->class_names[i]);
    if (text.failed)
        pc__text_free(&text);
    return text.data;
}

static pc_status unknown(const char *path)
{
    return pc__fail(PC_ERR_UNSUPPORTED,
                    "%s is a checkpoint of a network that Paracord does not know (pc_fit writes such ones); it is for "
                    "going on with the training only",
                    path);
}

/* The names of the classes from `text`, which ends in a zero byte. */
static bool take_names(const char *text, pc__opened_model *model)
{
    for (int i = 0; i < model->file.class_count; i++) {
        int length, used;
        if (sscanf(text, "%d%n", &length, &used) != 1 || text[used] != ' ' || length < 0 ||
            length >= PC_CLASS_NAME_MAX || strnlen(text + used + 1, (size_t)length + 1) <= (size_t)length)
            return false;
        text += used + 1;
        memcpy(model->names[i], text, (size_t)length);
        text += length;
        if (*text++ != '\n')
            return false;
    }
    return true;
}

static bool is_possible(pc__frame f, int classes)
{
    return f.height >= 1 && f.height <= SIDE_MAX && f.width >= 1 && f.width <= SIDE_MAX &&
           (f.channels == 1 || f.channels == 3) && classes >= 1 && classes <= CLASSES_MAX;
}

/* Everything but the weights. */
static pc_status take_about(const char *path, char *about, pc__opened_model *model)
{
    char arch[40];
    int used = -1;
    pc__model_file *file = &model->file;
    pc__frame frame = {0};
    (void)sscanf(about, "network %39[a-z0-9-], pictures %d %d %d, classes %d%n", arch, &frame.height, &frame.width,
                 &frame.channels, &file->class_count, &used);
    char *note = used < 0 ? NULL : about + used + 1, *end = note && note[-1] == '\n' ? strchr(note, '\n') : NULL;
    if (!end || !is_possible(frame, file->class_count))
        return unknown(path);
    *end = 0;
    file->preparation = pc__preparation_of(pc__preparation_assumed(), frame);
    pc__preparation_read(note, &file->preparation);
    file->preparation.source = PC_PREPARATION_NOTED;
    model->names = pc__calloc((size_t)file->class_count, sizeof *model->names);
    if (!model->names)
        return PC_ERR_MEMORY;
    if (!take_names(end + 1, model))
        return pc__checkpoint_damaged(path, "the names of its classes do not end");
    file->head = file->class_count == 2 ? PC_KERAS_SIGMOID : PC_KERAS_SOFTMAX;
    model->named = true;
    pc_generator generator = pc_generator_get();
    file->net = pc__arch_new(arch, frame, file->class_count == 2 ? 1 : file->class_count, PC_INIT_GLOROT);
    pc_generator_set(generator);
    return file->net ? PC_OK : pc_error_last()->status;
}

static pc_status take_weights(const char *path, const pc__checkpoint_file *file, const pc_module *net)
{
    const int count = pc_module_parameter_list(net, NULL, 0);
    size_t at = 0;
    if (count != file->header.parameters)
        return pc__checkpoint_damaged(path, "its network has another number of layers");
    pc_parameter *list = pc__calloc((size_t)count + 1, sizeof *list);
    if (!list)
        return PC_ERR_MEMORY;
    (void)pc_module_parameter_list(net, list, count);
    pc_status status = PC_OK;
    for (int i = 0; i < count && status == PC_OK; i++)
        status = pc__checkpoint_take(path, file, &at, list[i].tensor);
    pc__free(list);
    return status;
}

static pc_status take(const char *path, const pc__checkpoint_file *file, pc__opened_model *model)
{
    if (!file->header.about)
        return unknown(path);
    char *about = pc__alloc((size_t)file->header.about + 1);
    if (!about)
        return PC_ERR_MEMORY;
    memcpy(about, file->about, (size_t)file->header.about);
    about[file->header.about] = 0;
    pc_status status = take_about(path, about, model);
    pc__free(about);
    PC__TRY(status);
    PC__TRY(take_weights(path, file, model->file.net));
    pc_module_set_training(model->file.net, false);
    return PC_OK;
}

pc_status pc__checkpoint_model(const char *path, pc__opened_model *model)
{
    pc__checkpoint_file file;
    *model = (pc__opened_model){0};
    PC__TRY(pc__checkpoint_open(path, &file));
    pc_status status = take(path, &file, model);
    pc__checkpoint_close(&file);
    if (status != PC_OK)
        pc__model_close(model);
    return status;
}
