/* classifier.c: a trained network opened for use, and how it is used: preparation and class names. */
#include "train/classifier.h"

#include "base/base.h"
#include "io/codec.h"
#include "train/model_path.h"

#include <sys/stat.h>

static void drop_net(pc_classifier *c)
{
    if (c->net != c->model.file.net)
        pc_module_free(c->net);
    c->net = NULL;
}

/* The module that takes what pc_augment's rescale leaves. */
static pc_status make_net(pc_classifier *c, const pc_preparation *p)
{
    pc_module *own = c->model.file.net;
    pc_module *net = pc__preparation_normalizes(p) ? pc__preparation_module(p, own) : own;
    if (!net)
        return pc_error_last()->status;
    pc_module_set_training(net, false);
    drop_net(c);
    c->net = net;
    return PC_OK;
}

pc_classifier *pc_classifier_open(const char *model_path, const char *device)
{
    PC__NEED_OR(NULL, model_path);
    pc_classifier *c = pc__calloc(1, sizeof *c);
    struct stat info;
    if (!c)
        return NULL;
    bool fine = pc_device_parse(device ? device : "auto", &c->device) == PC_OK &&
                pc__model_find(model_path, &c->path) == PC_OK && pc__model_open_any(c->path, &c->model) == PC_OK &&
                pc_module_to(c->model.file.net, c->device, PC_F32) == PC_OK &&
                make_net(c, &c->model.file.preparation) == PC_OK;
    if (!fine) {
        pc_classifier_free(c);
        return NULL;
    }
    c->bytes = stat(c->path, &info) == 0 && S_ISREG(info.st_mode) ? (int64_t)info.st_size : 0;
    return c;
}

void pc_classifier_free(pc_classifier *c)
{
    if (!c)
        return;
    drop_net(c);
    pc__model_close(&c->model);
    pc__free(c->path);
    pc__free(c);
}

int pc_classifier_class_count(const pc_classifier *c)
{
    return c ? c->model.file.class_count : 0;
}

const char *pc_classifier_class_name(const pc_classifier *c, int label)
{
    PC__NEED_OR(NULL, c);
    return label >= 0 && label < pc_classifier_class_count(c) ? c->model.names[label] : NULL;
}

pc_preparation pc_classifier_preparation(const pc_classifier *c)
{
    PC__NEED_OR(pc__preparation_assumed(), c);
    return c->model.file.preparation;
}

/* Is the size of the pictures all that differs? */
static bool sized_alone(const pc_preparation *a, const pc_preparation *b)
{
    return (a->height != b->height || a->width != b->width) && a->rescale == b->rescale && a->resize == b->resize &&
           a->no_exif == b->no_exif && a->shorter == b->shorter && memcmp(a->mean, b->mean, sizeof a->mean) == 0 &&
           memcmp(a->std, b->std, sizeof a->std) == 0;
}

pc_status pc_classifier_set_preparation(pc_classifier *c, const pc_preparation *p)
{
    PC__NEED(c);
    PC__NEED(p);
    PC__TRY(pc__preparation_check(p));
    pc_preparation *own = &c->model.file.preparation;
    pc__frame frame = pc__preparation_frame(own);
    if (c->model.file.open) {
        if (p->height < 0 || p->width < 0 || p->height > PC__MODEL_SIDE_MAX || p->width > PC__MODEL_SIDE_MAX ||
            !p->height != !p->width)
            return pc__fail(PC_ERR_ARGUMENT, "pictures of %d x %d: height and width are 1 to %d, or both 0", p->height,
                            p->width, PC__MODEL_SIDE_MAX);
        frame.height = p->height, frame.width = p->width;
    }
    PC__TRY(pc__cover_check("the preparation", frame.width, frame.height, p->shorter));
    PC__TRY(make_net(c, p));
    pc_preparation made = pc__preparation_of(*p, frame);
    made.source = sized_alone(own, &made) ? own->source : PC_PREPARATION_GIVEN;
    *own = made;
    return PC_OK;
}

static pc_status check_name(const char *const *names, int i)
{
    if (!names[i] || !names[i][0] || strlen(names[i]) >= PC_CLASS_NAME_MAX)
        return pc__fail(PC_ERR_ARGUMENT, "the name of class %d is empty or has more than %d bytes", i,
                        PC_CLASS_NAME_MAX - 1);
    for (int j = 0; j < i; j++)
        if (strcmp(names[i], names[j]) == 0)
            return pc__fail(PC_ERR_ARGUMENT, "classes %d and %d are both called %s", j, i, names[i]);
    return PC_OK;
}

pc_status pc_classifier_set_class_names(pc_classifier *c, const char *const *names, int count)
{
    PC__NEED(c);
    PC__NEED(names);
    if (count != c->model.file.class_count)
        return pc__fail(PC_ERR_ARGUMENT, "%s knows %d classes, and %d %s given", c->path, c->model.file.class_count,
                        count, count == 1 ? "name is" : "names are");
    for (int i = 0; i < count; i++)
        PC__TRY(check_name(names, i));
    for (int i = 0; i < count; i++)
        snprintf(c->model.names[i], sizeof c->model.names[i], "%s", names[i]);
    c->model.named = true;
    return PC_OK;
}

pc_status pc_classifier_note(pc_classifier *c)
{
    PC__NEED(c);
    pc__model_file file = c->model.file;
    const char **names = pc__calloc((size_t)file.class_count, sizeof *names);
    if (!names)
        return PC_ERR_MEMORY;
    for (int i = 0; i < file.class_count; i++)
        names[i] = c->model.names[i];
    file.class_names = names;
    file.class_count = c->model.named ? file.class_count : 0;
    pc_status status = pc__model_note(c->path, &file);
    pc__free(names);
    return status;
}
