/* classifier.c: using a trained network: measure it, ask it, describe it. */
#include "io/file.h"
#include "train/data_folders.h"
#include "train/model_file.h"
#include "train/score.h"
#include "train/summary.h"

#include <errno.h>
#include <math.h>
#include <paracord/autograd.h>
#include <paracord/train.h>
#include <sys/stat.h>

struct pc_classifier {
    pc__opened_model model;
    pc_device device;
    char *path;
    int64_t bytes; /* of the file */
};

pc_classifier *pc_classifier_open(const char *model_path, const char *device)
{
    if (!model_path)
        return pc__null(PC_ERR_ARGUMENT, "pc_classifier_open: no model is named");
    pc_classifier *c = pc__calloc(1, sizeof *c);
    struct stat info;
    if (!c)
        return NULL;
    c->path = pc__strdup(model_path);
    bool fine = c->path && pc_device_parse(device ? device : "auto", &c->device) == PC_OK &&
                pc__model_open(model_path, &c->model) == PC_OK &&
                pc_module_to(c->model.file.net, c->device, PC_F32) == PC_OK;
    if (!fine) {
        pc_classifier_free(c);
        return NULL;
    }
    c->bytes = stat(model_path, &info) == 0 ? (int64_t)info.st_size : 0;
    return c;
}

void pc_classifier_free(pc_classifier *c)
{
    if (!c)
        return;
    pc__model_close(&c->model);
    pc__free(c->path);
    pc__free(c);
}

typedef struct counting {
    const pc_loader *loader;
    const pc_train_callbacks *callbacks;
    pc_evaluation *result;
} counting;

static bool count(void *context, const pc_batch *batch, const float *logits, int64_t width)
{
    counting *c = context;
    for (int64_t i = 0; i < batch->n; i++) {
        pc_picture picture;
        if (pc_loader_picture(c->loader, batch->sample[i], &picture) != PC_OK)
            return false;
        c->result->confusion[picture.label * c->result->classes + pc__named_class(logits + i * width, width)]++;
    }
    const pc_train_callbacks *tell = c->callbacks;
    if (tell && tell->progress) {
        pc_progress progress = {.done = batch->first + batch->n,
                                .total = pc_loader_count(c->loader),
                                .loss = NAN,
                                .accuracy = NAN,
                                .images_per_second = NAN,
                                .seconds_left = -1};
        tell->progress(tell->context, &progress);
    }
    return !(tell && tell->stop && tell->stop(tell->context));
}

static pc_status make_result(const pc_classifier *c, pc_evaluation *e)
{
    int n = c->model.file.class_count;
    *e = (pc_evaluation){.classes = n};
    e->class_names = pc__calloc((size_t)n, sizeof *e->class_names);
    e->confusion = pc__calloc((size_t)n * (size_t)n, sizeof *e->confusion);
    if (!e->class_names || !e->confusion) {
        pc_evaluation_free(e);
        return PC_ERR_MEMORY;
    }
    memcpy(e->class_names, c->model.names, (size_t)n * sizeof *e->class_names);
    return PC_OK;
}

/* Where the pictures are: in `folder`, or in the test folder in it when it has no folder of the first class itself. */
static pc_status find_pictures(const pc_classifier *c, const char *folder, char **path)
{
    pc__text first = {0};
    pc__text_add(&first, "%s/%s", folder, c->model.names[0]);
    bool missing = !first.failed && !pc__is_folder(first.data);
    pc_status status = first.failed ? PC_ERR_MEMORY : PC_OK;
    pc__text_free(&first);
    *path = NULL;
    if (missing)
        status = pc__find_test_folder(folder, path);
    if (status == PC_OK && !*path)
        *path = pc__strdup(folder);
    return *path ? PC_OK : PC_ERR_MEMORY;
}

/* The classes in the model's order, unless the file names none: then the folder's own. */
static pc_loader *load(const pc_classifier *c, const char *folder, int batch, const pc_train_callbacks *callbacks)
{
    const pc__model_file *file = &c->model.file;
    const char **names = pc__calloc((size_t)file->class_count, sizeof *names);
    if (!names)
        return NULL;
    for (int i = 0; i < file->class_count; i++)
        names[i] = c->model.names[i];
    pc_loader_options options = {.size = file->size,
                                 .batch = batch,
                                 .resize = file->resize,
                                 .augment = {.rescale = file->rescale},
                                 .device = c->device,
                                 .class_names = c->model.named ? (const char *const *)names : NULL,
                                 .class_count = c->model.named ? file->class_count : 0};
    if (callbacks) {
        options.skipped = callbacks->skipped;
        options.context = callbacks->context;
    }
    pc_loader *loader = pc_loader_new(folder, options);
    pc__free(names);
    if (loader && pc_loader_class_count(loader) != file->class_count) {
        (void)pc__fail(PC_ERR_SHAPE, "%s has %d classes and %s knows %d", folder, pc_loader_class_count(loader),
                       c->path, file->class_count);
        pc_loader_free(loader);
        return NULL;
    }
    return loader;
}

pc_status pc_classifier_evaluate(pc_classifier *c, const char *folder, int batch, const pc_train_callbacks *callbacks,
                                 pc_evaluation *result)
{
    *result = (pc_evaluation){0};
    if (!c)
        return pc_failed() ? pc_error_last()->status
                           : pc__fail(PC_ERR_ARGUMENT, "pc_classifier_evaluate: the classifier is NULL");
    PC__TRY(make_result(c, result));
    char *pictures;
    pc_status status = find_pictures(c, folder, &pictures);
    pc_loader *loader = status == PC_OK ? load(c, pictures, batch > 0 ? batch : 32, callbacks) : NULL;
    if (!loader)
        status = pc_error_last()->status;
    pc__free(pictures);
    pc__score score = {0};
    counting counter = {loader, callbacks, result};
    if (status == PC_OK)
        status = pc__score_loader(c->model.file.net, loader, count, &counter, &score);
    if (status == PC_ERR_INTERRUPTED)
        (void)pc__fail(status, "the evaluation was stopped");
    if (status == PC_OK) {
        result->pictures = score.seen;
        result->correct = score.correct;
        result->skipped = pc_loader_skipped(loader);
        result->loss = pc__score_loss(&score);
        result->accuracy = pc__score_accuracy(&score);
        for (int i = 0; i < result->classes; i++)
            snprintf(result->class_names[i], sizeof result->class_names[i], "%s", pc_loader_class_name(loader, i));
    } else {
        pc_evaluation_free(result);
    }
    pc_loader_free(loader);
    return status;
}

void pc_evaluation_free(pc_evaluation *e)
{
    pc__free(e->class_names);
    pc__free(e->confusion);
    *e = (pc_evaluation){0};
}

/* The picture as the network wants it: [1, 3, size, size] in channels-last memory. */
static pc_tensor *prepare(const pc_classifier *c, const pc_image *image)
{
    const pc__model_file *file = &c->model.file;
    size_t n = (size_t)file->size * (size_t)file->size * 3;
    float *pixels = pc__alloc(n * sizeof *pixels);
    if (!pixels)
        return NULL;
    pc_augment plan = {.rescale = file->rescale};
    pc_augment_values neutral = pc_augment_neutral();
    pc_tensor *x = NULL;
    if (pc_augment_apply(&plan, &neutral, image->pixels, file->size, file->size, 3, pixels) == PC_OK) {
        x = pc_from_data(pixels, PC_SHAPE(1, file->size, file->size, 3), PC_F32, c->device);
        x = pc_permute(x, PC_SHAPE(0, 3, 1, 2));
    }
    pc__free(pixels);
    return x;
}

static pc_status name_it(const pc_classifier *c, pc_tensor *logits, pc_prediction *prediction)
{
    int64_t width = pc_tensor_size(logits, 1);
    pc_tensor *p = width == 1 ? pc_sigmoid(logits) : pc_softmax(logits, 1);
    float *row = p ? pc__alloc((size_t)width * sizeof *row) : NULL;
    pc_status status = row ? pc_read(p, row, (size_t)width * sizeof *row) : pc_error_last()->status;
    if (status == PC_OK) {
        /* A sigmoid of 0.5 or more names the second class. */
        prediction->label = width == 1 ? row[0] >= 0.5f : pc__named_class(row, width);
        prediction->probability = (double)(width == 1 ? row[0] : row[width == 2 ? 1 : prediction->label]);
        prediction->name = c->model.names[prediction->label];
    }
    pc__free(row);
    return status;
}

pc_status pc_classifier_predict(pc_classifier *c, const char *picture, pc_prediction *prediction)
{
    *prediction = (pc_prediction){0};
    if (!c || !picture)
        return pc_failed() ? pc_error_last()->status
                           : pc__fail(PC_ERR_ARGUMENT, "pc_classifier_predict: the classifier or the picture is NULL");
    const pc__model_file *file = &c->model.file;
    pc_image image;
    pc_image_options options = {.channels = 3, .width = file->size, .height = file->size, .resize = file->resize};
    PC__TRY(pc_image_read(picture, options, &image));
    pc_status status = PC_OK;
    PC_NO_GRAD {
        PC_SCOPE {
            pc_tensor *logits = pc_forward(file->net, prepare(c, &image));
            status = logits ? name_it(c, logits, prediction) : pc_error_last()->status;
        }
    }
    pc_image_free(&image);
    return status;
}

static void add_json(pc__text *json, const pc_classifier *c, const pc__layer_row *rows, int count, int64_t parameters)
{
    pc__text_add(json, "{\"size\": %d, \"parameters\": %lld, \"bytes\": %lld, \"classes\": [", c->model.file.size,
                 (long long)parameters, (long long)c->bytes);
    for (int i = 0; i < c->model.file.class_count; i++) {
        pc__text_add(json, "%s", i ? ", " : "");
        pc__json_string(json, c->model.names[i]);
    }
    pc__text_add(json, "], \"layers\": [");
    for (int i = 0; i < count; i++) {
        pc__text_add(json, "%s{\"layer\": \"%s\", \"output\": [", i ? ", " : "", rows[i].kind);
        for (int d = 0; d < rows[i].output.ndim; d++)
            pc__text_add(json, "%s%lld", d ? ", " : "", (long long)rows[i].output.dim[d]);
        pc__text_add(json, "], \"parameters\": %lld}", (long long)rows[i].parameters);
    }
    pc__text_add(json, "]}");
}

static void add_text(pc__text *text, const pc_classifier *c, const pc__layer_row *rows, int count, int64_t parameters)
{
    const pc__model_file *file = &c->model.file;
    pc__summary_text(text, rows, count);
    pc__text_add(text, "\n%s parameters, %.1f MB on disk\n", pc__thousands(parameters).s, (double)c->bytes / 1e6);
    pc__text_add(text, "takes pictures of %dx%d, resized by %s, pixels times %.4g; ends in %s\nclasses:", file->size,
                 file->size, file->resize == PC_RESIZE_AREA ? "area" : "nearest neighbour", file->rescale,
                 file->head == PC_KERAS_SIGMOID ? "a sigmoid" : "a softmax");
    for (int i = 0; i < file->class_count; i++) {
        pc__text_add(text, "%s ", i ? "," : "");
        for (const char *name = c->model.names[i]; *name; name++) /* a file may hold anything: escape sequences too */
            pc__text_append(text, (unsigned char)*name < ' ' || *name == 127 ? "?" : name, 1);
    }
}

pc_status pc_classifier_summary(pc_classifier *c, char **text, char **json)
{
    pc__layer_row *rows;
    int count;
    pc__text table = {0}, object = {0};
    *text = *json = NULL;
    if (!c)
        return pc_failed() ? pc_error_last()->status
                           : pc__fail(PC_ERR_ARGUMENT, "pc_classifier_summary: the classifier is NULL");
    PC__TRY(pc__summary_rows(c->model.file.net, c->model.file.size, &rows, &count));
    int64_t parameters = pc_module_parameter_elements(c->model.file.net);
    add_text(&table, c, rows, count, parameters);
    add_json(&object, c, rows, count, parameters);
    pc__free(rows);
    if (table.failed || object.failed) {
        pc__text_free(&table);
        pc__text_free(&object);
        return PC_ERR_MEMORY;
    }
    *text = table.data, *json = object.data;
    return PC_OK;
}
