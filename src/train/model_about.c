/* model_about.c: what a network is, as text. It has a line for the network and its pictures, and one for how these are
 * prepared; then each class has a line with the bytes of its name, and the name, which may hold any byte. A described
 * network's description is behind them. */
#include "train/model_about.h"

#include "train/arch.h"
#include "train/described.h"

static const char described[] = "described";

enum { SIDE_MAX = 16384, CLASSES_MAX = 1 << 20 };

char *pc__model_about(const char *arch, const pc__model_file *model)
{
    pc__text text = {0};
    const pc__frame frame = pc__preparation_frame(&model->preparation);
    pc__text_add(&text, "network %s, pictures %d %d %d, classes %d\n", pc__is_description(arch) ? described : arch,
                 frame.height, frame.width, frame.channels, model->class_count);
    pc__preparation_print(&text, &model->preparation);
    pc__text_add(&text, "\n");
    for (int i = 0; i < model->class_count; i++)
        pc__text_add(&text, "%d %s\n", (int)strlen(model->class_names[i]), model->class_names[i]);
    if (pc__is_description(arch))
        pc__text_add(&text, "%s", arch);
    if (text.failed)
        pc__text_free(&text);
    return text.data;
}

/* The names of the classes from `text`, which ends in a zero byte; where they end, or NULL. */
static const char *take_names(const char *text, pc__opened_model *model)
{
    for (int i = 0; i < model->file.class_count; i++) {
        int length, used;
        if (sscanf(text, "%d%n", &length, &used) != 1 || text[used] != ' ' || length < 0 ||
            length >= PC_CLASS_NAME_MAX || strnlen(text + used + 1, (size_t)length + 1) <= (size_t)length)
            return NULL;
        text += used + 1;
        memcpy(model->names[i], text, (size_t)length);
        text += length;
        if (*text++ != '\n')
            return NULL;
    }
    return text;
}

static bool is_possible(pc__frame f, int classes)
{
    return f.height >= 1 && f.height <= SIDE_MAX && f.width >= 1 && f.width <= SIDE_MAX &&
           (f.channels == 1 || f.channels == 3) && classes >= 1 && classes <= CLASSES_MAX;
}

pc_status pc__model_of_about(const char *path, char *about, pc__opened_model *model)
{
    char arch[40];
    int used = -1;
    pc__model_file *file = &model->file;
    pc__frame frame = {0};
    (void)sscanf(about, "network %39[a-z0-9_-], pictures %d %d %d, classes %d%n", arch, &frame.height, &frame.width,
                 &frame.channels, &file->class_count, &used);
    char *note = used < 0 ? NULL : about + used + 1, *end = note && note[-1] == '\n' ? strchr(note, '\n') : NULL;
    if (!end || !is_possible(frame, file->class_count))
        return PC_ERR_UNSUPPORTED;
    *end = 0;
    file->preparation = pc__preparation_of(pc__preparation_assumed(), frame);
    pc__preparation_read(note, &file->preparation);
    file->preparation.source = PC_PREPARATION_NOTED;
    model->names = pc__calloc((size_t)file->class_count, sizeof *model->names);
    if (!model->names)
        return PC_ERR_MEMORY;
    const char *rest = take_names(end + 1, model);
    if (!rest)
        return pc__fail(PC_ERR_FORMAT, "%s is damaged: the names of its classes do not end", path);
    file->head = file->class_count == 2 ? PC_KERAS_SIGMOID : PC_KERAS_SOFTMAX;
    model->named = true;
    model->arch = pc__strdup(strcmp(arch, described) == 0 ? rest : arch);
    if (!model->arch)
        return PC_ERR_MEMORY;
    file->arch = model->arch;
    pc_generator generator = pc_generator_get();
    file->net = pc__arch_new(file->arch, frame, file->class_count == 2 ? 1 : file->class_count, PC_INIT_GLOROT);
    pc_generator_set(generator);
    return file->net ? PC_OK : pc_error_last()->status;
}
