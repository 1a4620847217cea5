/* classifier.h: a trained network used on pictures: ask it, measure it, describe it.
 *
 *     pc_classifier *c = pc_classifier_open("run/model.h5", "auto");
 *     pc_prediction p;
 *     if (pc_classifier_predict(c, "photo.jpg", &p) != PC_OK)
 *         return pc_report(stderr);
 *     printf("%s, %.0f %%\n", p.name, 100 * p.probability);
 *     pc_classifier_free(c);
 *
 * A model is right only on pictures that are prepared as those that it was trained on. What Paracord trained says how
 * in its file. A foreign file may say it (a Rescaling layer) or not: pc_preparation tells which, and is set where the
 * file is silent.
 *
 * Threads: any number of threads may ask, measure and describe one classifier at the same time; what changes it (set,
 * free) may not run beside anything else.
 */
#ifndef PARACORD_CLASSIFIER_H
#define PARACORD_CLASSIFIER_H

#include <paracord/image.h>

PC_BEGIN

struct pc_train_callbacks; /* train.h */

#define PC_CLASS_NAME_MAX 256 /* the longest class name, and its end */

typedef struct pc_classifier pc_classifier; /* a loaded model with its class names and preparation */

/* Read a model. `model_path` is one of these:
 * - a Keras file;
 * - a safetensors file of pc_train_folder;
 * - the folder of a run (pc_train_folder): the model in it or, while there is none yet, its checkpoint;
 * - a checkpoint: the weights that training has come to, of the last batch and not of the best epoch.
 * `device`: "cpu", "cuda:0", ...; NULL means "auto". The caller owns the classifier. NULL and the error on failure:
 * PC_ERR_FILE, PC_ERR_NOT_FOUND (a folder without either), PC_ERR_FORMAT, PC_ERR_UNSUPPORTED (names the layer),
 * PC_ERR_DEVICE, PC_ERR_MEMORY. */
PC_API PC_MUST_USE pc_classifier *pc_classifier_open(const char *model_path, const char *device);
PC_API void pc_classifier_free(pc_classifier *c);

PC_API int pc_classifier_class_count(const pc_classifier *c);                   /* 0 for NULL */
PC_API const char *pc_classifier_class_name(const pc_classifier *c, int label); /* borrowed; NULL: no such class */

/* --- how pictures become numbers --- */

typedef enum pc_preparation_source {
    PC_PREPARATION_ASSUMED, /* the file does not say: pixels times 1/255, nearest neighbour */
    PC_PREPARATION_NOTED,   /* Paracord's note in the file */
    PC_PREPARATION_LAYER,   /* a Rescaling or Normalization layer in the file */
    PC_PREPARATION_GIVEN    /* pc_classifier_set_preparation */
} pc_preparation_source;

#define PC_PREPARATION_CHANNELS 3

/* A pixel p (0 to 255) of channel c becomes (p * rescale - mean[c]) / std[c]. */
typedef struct pc_preparation {
    int reserved_;
    double rescale;                       /* 1/255 for numbers in [0, 1]; 1 for raw pixels */
    double mean[PC_PREPARATION_CHANNELS]; /* 0: none */
    double std[PC_PREPARATION_CHANNELS];  /* 1: none */
    pc_resize resize;
    int shorter;  /* pictures get such a shorter side, and the middle is taken (image.h); 0: they are resized whole */
    bool no_exif; /* leave pictures as they are stored, as Keras does, instead of upright */
    /* What the network takes; ignored by pc_classifier_set_preparation. 0: pictures of any size, each as it is; for
     * such a network height and width can be set. */
    int height, width, channels;
    pc_preparation_source source; /* ignored by pc_classifier_set_preparation */
} pc_preparation;

/* What is done to pictures, and whence that is known. */
PC_API pc_preparation pc_classifier_preparation(const pc_classifier *c);

/* Prepare as `p` says from now on. PC_ERR_ARGUMENT for numbers that are not finite, or a rescale or std of 0. */
PC_API PC_MUST_USE pc_status pc_classifier_set_preparation(pc_classifier *c, const pc_preparation *p);

/* Call the classes so, in the order of the network's outputs. PC_ERR_ARGUMENT when `count` is not their number, a name
 * is empty or too long, or two are the same. */
PC_API PC_MUST_USE pc_status pc_classifier_set_class_names(pc_classifier *c, const char *const *names, int count);

/* Write preparation and class names into the .h5 or .safetensors file that was opened: whole or not at all. Keras ignores the notes,
 * and drops them when it saves the file again. PC_ERR_FILE, PC_ERR_MEMORY; PC_ERR_UNSUPPORTED for a file that is no
 * .h5. */
PC_API PC_MUST_USE pc_status pc_classifier_note(pc_classifier *c);

/* In words: "64x64 RGB by nearest neighbour, pixels times 1/255 (noted in the file)". Text for pc_text_free; NULL:
 * PC_ERR_MEMORY. */
PC_API PC_MUST_USE char *pc_preparation_text(const pc_preparation *p);

/* --- asking --- */

typedef struct pc_prediction {
    int label;          /* the most probable class; of two of the same probability the first, at 0.5 the second */
    const char *name;   /* its name: the classifier's */
    double probability; /* of this class, 0 to 1 */
    double sigmoid;     /* a network with one output: its value, the probability of the second class; others: NaN */
    char damage[PC_IMAGE_DAMAGE_MAX]; /* of a file: what the decoder got over (image.h), or "" */
} pc_prediction;

/* Probabilities of all classes for n decoded pictures of any size, in the order given: probabilities[i * classes + k].
 * They are resized, prepared and computed `batch` at a time (0: 32). PC_ERR_ARGUMENT, PC_ERR_MEMORY; PC_ERR_FORMAT when
 * the network's answer is not a number. */
PC_API PC_MUST_USE pc_status pc_classifier_predict_images(pc_classifier *c, const pc_image *images, int64_t n,
                                                          int batch, float *probabilities);

/* One picture file; `probabilities` (of all classes; may be NULL). Errors as pc_image_read, and as above. */
PC_API PC_MUST_USE pc_status pc_classifier_predict(pc_classifier *c, const char *picture, pc_prediction *prediction);
PC_API PC_MUST_USE pc_status pc_classifier_predict_all(pc_classifier *c, const char *picture, pc_prediction *prediction,
                                                       float *probabilities);

/* What a row of probabilities says: no class (label -1, name NULL) where one is not a number. */
PC_API pc_prediction pc_classifier_decide(const pc_classifier *c, const float *probabilities);

/* --- measuring --- */

typedef struct pc_evaluation {
    int64_t pictures, correct;
    int64_t skipped; /* could not be used */
    int64_t damaged; /* of the pictures: used though they are */
    double loss, accuracy;
    int classes;
    char (*class_names)[PC_CLASS_NAME_MAX];
    int64_t *confusion;       /* confusion[true * classes + predicted] */
    double *recall;           /* of each class: of its pictures the share that was recognised; NaN: there are none */
    double *precision;        /* of each class: of the pictures taken for it the share that is of it; NaN: none was */
    double balanced_accuracy; /* the mean recall of the classes that have pictures: large classes count no more */
    int never_named;          /* classes that have pictures, and that no picture was taken for */
} pc_evaluation;

/* Measure it on a folder with one folder of pictures per class, or one with test/ in it. `callbacks` may be NULL. Fill
 * *result, to be released with pc_evaluation_free; on failure it is empty. PC_ERR_INTERRUPTED when a callback stopped
 * it. */
PC_API PC_MUST_USE pc_status pc_classifier_evaluate(pc_classifier *c, const char *folder, int batch,
                                                    const struct pc_train_callbacks *callbacks, pc_evaluation *result);
PC_API void pc_evaluation_free(pc_evaluation *e); /* NULL is fine */

/* --- describing --- */

/* Table of layers, output shapes, parameters, size; both owned by the caller: pc_text_free. */
PC_API PC_MUST_USE pc_status pc_classifier_summary(pc_classifier *c, char **text, char **json);

/* The layers that a Keras file describes, as a table and as JSON (each for pc_text_free), whether this library can run
 * them or not: what each gives, the numbers that the file has for it, and why it is not supported where it is not.
 * PC_ERR_FILE, PC_ERR_FORMAT, PC_ERR_UNSUPPORTED for what cannot be read at all. */
PC_API PC_MUST_USE pc_status pc_model_layers(const char *model_path, char **text, char **json);

PC_END
#endif
