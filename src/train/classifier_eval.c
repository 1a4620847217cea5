/* classifier_eval.c: measuring a trained network on a folder of pictures. */
#include "data/gather.h"
#include "train/answers.h"
#include "train/classifier.h"
#include "train/data_folders.h"
#include "train/score.h"

#include <math.h>
#include <paracord/train.h>

typedef struct counting {
    const pc_classifier *classifier;
    const pc_loader *loader;
    const pc_train_callbacks *callbacks;
    pc_evaluation *result;
    pc_status status; /* why it went no further, unless somebody stopped it */
} counting;

static bool count(void *context, const pc_batch *batch, const float *logits, int64_t width)
{
    counting *c = context;
    c->status = pc__classifier_check_answers(c->classifier, logits, batch->n * width);
    if (c->status != PC_OK)
        return false;
    for (int64_t i = 0; i < batch->n; i++) {
        const int label = pc__loader_label(c->loader, batch->sample[i]);
        c->result->confusion[label * c->result->classes + pc__named_class(logits + i * width, width)]++;
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
    e->recall = pc__calloc((size_t)n, sizeof *e->recall);
    e->precision = pc__calloc((size_t)n, sizeof *e->precision);
    if (!e->class_names || !e->confusion || !e->recall || !e->precision) {
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
    if (!file->preparation.height || !file->preparation.width)
        return pc__null(
            PC_ERR_ARGUMENT,
            "%s takes pictures of any size, and those of a folder are brought to one: set the preparation's "
            "height and width (--size)",
            c->path);
    const char **names = pc__calloc((size_t)file->class_count, sizeof *names);
    if (!names)
        return NULL;
    for (int i = 0; i < file->class_count; i++)
        names[i] = c->model.names[i];
    pc_loader_options options = {.height = file->preparation.height,
                                 .width = file->preparation.width,
                                 .channels = file->preparation.channels,
                                 .batch = batch,
                                 .shorter = file->preparation.shorter,
                                 .resize = file->preparation.resize,
                                 .no_exif = file->preparation.no_exif,
                                 .augment = {.rescale = file->preparation.rescale},
                                 .device = c->device,
                                 .class_names = c->model.named ? (const char *const *)names : NULL,
                                 .class_count = c->model.named ? file->class_count : 0};
    if (callbacks) {
        options.skipped = callbacks->skipped;
        options.damaged = callbacks->damaged;
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

static void judge_classes(pc_evaluation *e)
{
    for (int k = 0; k < e->classes; k++) {
        e->recall[k] = pc__class_recall(e->confusion, e->classes, k);
        e->precision[k] = pc__class_precision(e->confusion, e->classes, k);
    }
    e->balanced_accuracy = pc__balanced_accuracy(e->confusion, e->classes);
    e->never_named = pc__never_named(e->confusion, e->classes);
}

pc_status pc_classifier_evaluate(pc_classifier *c, const char *folder, int batch, const pc_train_callbacks *callbacks,
                                 pc_evaluation *result)
{
    PC__NEED(result);
    *result = (pc_evaluation){0};
    PC__NEED(c);
    PC__NEED(folder);
    PC__TRY(make_result(c, result));
    char *pictures;
    pc_status status = find_pictures(c, folder, &pictures);
    pc_loader *loader = status == PC_OK ? load(c, pictures, batch > 0 ? batch : 32, callbacks) : NULL;
    if (!loader)
        status = pc_error_last()->status;
    pc__free(pictures);
    pc__score score = {0};
    counting counter = {.classifier = c, .loader = loader, .callbacks = callbacks, .result = result};
    if (status == PC_OK)
        status = pc__score_loader(c->net, loader, count, &counter, &score);
    if (counter.status != PC_OK)
        status = counter.status;
    if (status == PC_ERR_INTERRUPTED)
        (void)pc__fail(status, "the evaluation was stopped");
    if (status == PC_OK) {
        result->pictures = score.seen;
        result->correct = score.correct;
        result->skipped = pc_loader_skipped(loader);
        result->damaged = pc_loader_damaged(loader);
        result->loss = pc__score_loss(&score);
        result->accuracy = pc__score_accuracy(&score);
        judge_classes(result);
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
    if (!e)
        return;
    pc__free(e->class_names);
    pc__free(e->confusion);
    pc__free(e->recall);
    pc__free(e->precision);
    *e = (pc_evaluation){0};
}
