/* model_about.c: what a network is, as text. It has a line for the network and its pictures, and one for how these are
 * prepared; then each class has a line with the bytes of its name, and the name, which may hold any byte. Where it is no
 * UTF-8, which the notes of files are, the number is below 0 and the bytes are in hexadecimal. A described network's
 * description is behind them. */
#include "train/model_about.h"

#include "train/arch.h"
#include "train/described.h"

static const char described[] = "described";

enum { SIDE_MAX = 16384, CLASSES_MAX = 1 << 20 };

static void put_name(pc__text *text, const char *name)
{
    const int n = (int)strlen(name);
    if (pc__is_utf8(name)) {
        pc__text_add(text, "%d %s\n", n, name);
        return;
    }
    pc__text_add(text, "%d ", -n);
    for (int i = 0; i < n; i++)
        pc__text_add(text, "%02x", (unsigned char)name[i]);
    pc__text_add(text, "\n");
}

char *pc__model_about(const char *arch, const pc__model_file *model)
{
    pc__text text = {0};
    const pc__frame frame = pc__preparation_frame(&model->preparation);
    pc__text_add(&text, "network %s, pictures %d %d %d, classes %d\n", pc__is_description(arch) ? described : arch,
                 frame.height, frame.width, frame.channels, model->class_count);
    pc__preparation_print(&text, &model->preparation);
    pc__text_add(&text, "\n");
    for (int i = 0; i < model->class_count; i++)
        put_name(&text, model->class_names[i]);
    if (pc__is_description(arch))
        pc__text_add(&text, "%s", arch);
    if (text.failed)
        pc__text_free(&text);
    return text.data;
}

/* n bytes, which in hexadecimal are two letters each; false where that is not so. */
static bool take_name(const char *text, int n, bool hex, char *name)
{
    unsigned byte;
    for (int i = 0; hex && i < n; i++) {
        if (sscanf(text + 2 * i, "%2x", &byte) != 1 || !byte)
            return false;
        name[i] = (char)byte;
    }
    if (!hex)
        memcpy(name, text, (size_t)n);
    return true;
}

/* The names of the classes from `text`, which ends in a zero byte; where they end, or NULL. */
static const char *take_names(const char *text, pc__opened_model *model)
{
    for (int i = 0; i < model->file.class_count; i++) {
        int length, used;
        if (sscanf(text, "%d%n", &length, &used) != 1 || text[used] != ' ' || length <= -PC_CLASS_NAME_MAX ||
            length >= PC_CLASS_NAME_MAX)
            return NULL;
        text += used + 1;
        const bool hex = length < 0;
        const int n = hex ? -length : length, letters = hex ? 2 * n : n;
        if (strnlen(text, (size_t)letters + 1) <= (size_t)letters || !take_name(text, n, hex, model->names[i]))
            return NULL;
        text += letters;
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
