/* train.h: the main job on folders of pictures: train a classifier, measure it, ask it about pictures. */
#ifndef PARACORD_TRAIN_H
#define PARACORD_TRAIN_H

#include <paracord/error.h>

PC_BEGIN

typedef struct pc_train_settings {
    int reserved_;
    const char *data;      /* a folder with train/ and test/ (or training_set/, test_set/), or class folders */
    const char *out;       /* run folder: model.h5, checkpoint, metrics.jsonl, report.html */
    const char *arch;      /* "article", "two-conv", "mlp", "lenet" */
    const char *optimizer; /* "adam", "sgd" */
    const char *init;      /* "glorot", "he", "torch" */
    const char *resize;    /* "nearest", "area" */
    const char *device;    /* "auto", "cpu", ... */
    const char *precision; /* "float32", "bf16", "f16": of products while training; the model is float32 (amp.h) */
    int epochs, batch, size, threads;
    double lr, momentum, shear, zoom, rotation, val_split;
    bool flip, strict, resume;
    uint64_t seed;
    const struct pc_train_callbacks *callbacks;
} pc_train_settings;

/* loss and accuracy are of the pictures of the epoch so far; where a device works later, of those whose results are
 * there already, up to 16 batches, or more where these take less than some 30 ms, fewer than `done`, and NaN before the
 * first. At the end of an epoch they are all. */
typedef struct pc_progress {
    int epoch, epochs;
    int64_t done, total;
    double loss, accuracy, images_per_second, seconds_left;
} pc_progress;

typedef struct pc_epoch_result {
    int epoch, epochs;
    double loss, accuracy, test_loss, test_accuracy, seconds, images_per_second;
    bool has_test;
} pc_epoch_result;

typedef struct pc_train_callbacks {
    void *context;
    void (*started)(void *context, const char *description); /* lines to show before training: data, network, device */
    void (*progress)(void *context, const pc_progress *progress);      /* after every batch */
    void (*epoch)(void *context, const pc_epoch_result *result);       /* after every epoch */
    void (*skipped)(void *context, const char *path, const char *why); /* a picture that could not be used */
    bool (*stop)(void *context); /* polled after every batch; true: save a checkpoint and stop */
} pc_train_callbacks;

typedef struct pc_train_summary {
    int epochs_done;
    bool interrupted;
    int64_t train_pictures, test_pictures, skipped;
    double loss, accuracy, test_loss, test_accuracy, seconds;
} pc_train_summary;

/* PC_OK also when stopped: summary->interrupted, and the run folder then has a checkpoint and no model.h5. */
PC_API PC_MUST_USE pc_status pc_train_folder(const pc_train_settings *settings, pc_train_summary *summary);

#define PC_CLASS_NAME_MAX 256 /* the longest folder name, and its end */

typedef struct pc_evaluation {
    int64_t pictures, correct, skipped;
    double loss, accuracy;
    int classes;
    char (*class_names)[PC_CLASS_NAME_MAX];
    int64_t *confusion; /* confusion[true * classes + predicted] */
} pc_evaluation;

typedef struct pc_classifier pc_classifier; /* a loaded model with its class names and input size */

PC_API PC_MUST_USE pc_classifier *pc_classifier_open(const char *model_path, const char *device);
PC_API void pc_classifier_free(pc_classifier *c);
PC_API PC_MUST_USE pc_status pc_classifier_evaluate(pc_classifier *c, const char *folder, int batch,
                                                    const pc_train_callbacks *callbacks, pc_evaluation *result);
PC_API void pc_evaluation_free(pc_evaluation *e);

typedef struct pc_prediction {
    int label;
    const char *name;
    double probability; /* of the second class for two classes (sigmoid), else of the predicted one */
} pc_prediction;

PC_API PC_MUST_USE pc_status pc_classifier_predict(pc_classifier *c, const char *picture, pc_prediction *prediction);

/* Table of layers, output shapes, parameters, size; both owned by the caller: pc_text_free. */
PC_API PC_MUST_USE pc_status pc_classifier_summary(pc_classifier *c, char **text, char **json);
PC_API void pc_text_free(char *text);

PC_END
#endif
