/* train.h: the main job on folders of pictures: train a classifier. What it made is used by classifier.h.
 *
 *     pc_train_options options = {.data = "pets", .out = "pets-run", .epochs = 20, .flip = true};
 *     pc_train_summary summary;
 *     if (pc_train_folder(options, &summary) != PC_OK)
 *         return pc_report(stderr);
 *     printf("%.3f\n", summary.test_accuracy); // and pets-run/model.h5 is there
 *
 * Threads: pc_train_folder may run in several threads at once, each with a run folder of its own. Callbacks come in the
 * calling thread.
 */
#ifndef PARACORD_TRAIN_H
#define PARACORD_TRAIN_H

#include <paracord/classifier.h>
#include <paracord/group.h>

PC_BEGIN

typedef struct pc_run_report pc_run_report; /* what a run tells who writes its report */

/* Everything but `data` may be left out. Where words are listed, the first is the default. */
typedef struct pc_train_options {
    int reserved_;
    /* A folder with train/ and test/ (or training_set/, training/, test_set/, validation/, valid/, val/; Train/ and TRAIN/, too),
     * or class folders, of which one may be called so that has pictures and no folders */
    const char *data;
    const char *out;       /* run folder, NULL: "run": the model, checkpoint, metrics.jsonl, report.html */
    const char *arch;      /* "article", "two-conv", "mlp", "lenet", a network of models.h: "resnet18"; or
                            * a file that ends in .json and describes one (docs/training.md) */
    const char *optimizer; /* "adam", "sgd", "adamw", "rmsprop", "lion" */
    const char *schedule;  /* of the rate: "constant", "cosine", "linear", "one-cycle" (schedule.h) */
    const char *init;      /* "glorot", "he", "torch"; networks of models.h begin as they do */
    const char *resize;    /* "nearest", "area" */
    const char *device;    /* "auto", "cpu", ... */
    const char *precision; /* "float32", "bf16", "f16": of products while training; the model is float32 (amp.h) */
    /* A safetensors file, or one of torch.save, whose weights the network begins with, by name (weights.h), such as torchvision's; NULL: none. Its
     * last layer begins as without where the file's has another number of outputs. Where all names have one thing more in front,
     * such as the "module." of PyTorch's DataParallel, that is left out. */
    const char *init_from;
    /* "none"; or "backbone", with init_from: all but the last layer stays as it begins, and is in evaluation mode, where
     * norms of batches go by their running statistics and nothing is dropped. */
    const char *freeze;
    /* Whose weights the model has: "best", those of the epoch with the greatest accuracy on the test pictures (with
     * class weights the balanced accuracy), of equals the one with the lowest test loss, of equals the earlier one; or
     * "last", which it is in any case without test pictures. */
    const char *keep;
    /* "none"; or "balanced": a class's pictures count for more the fewer they are, by n / (classes * n of the class),
     * in the loss of training. What is measured is not weighed. */
    const char *class_weights;
    /* "none"; "imagenet", torchvision's numbers for that; or a mean and a std, or three of each by channel, between
     * commas: a pixel in [0, 1] becomes (pixel - mean) / std. The model's file says so to whoever uses it. */
    const char *normalise;
    int epochs, batch, threads; /* 0: 25, 32, all cores */
    int early_stop; /* end after so many epochs that were no better than the best one; 0: never. Needs test pictures */
    int size;       /* pictures become size x size; 0: 64 */
    int height, width;            /* or this, where given: both, or neither */
    int shorter;                  /* the middle height x width of pictures of such a shorter side; 0: all of each */
    int channels;                 /* 1 grey, 3 RGB; 0: 3 */
    double lr;                    /* 0: 0.001 */
    double momentum;              /* of "sgd" and "rmsprop" */
    double weight_decay;          /* 0: none, of "adamw" 0.01; below 0: none */
    double clip;                  /* the greatest norm of all gradients together; 0: they are not clipped */
    double label_smoothing;       /* of the target so much is for all classes alike, in the loss of training (fit.h) */
    double cutmix;                /* alpha: parts of pictures of training are those of others; 0: not (fit.h) */
    double mixup;                 /* alpha: pictures of training are blended in pairs; 0: they are not (fit.h) */
    int warmup;                   /* steps in front in which the rate rises */
    bool nesterov;                /* of "sgd", with a momentum */
    double shear, zoom, rotation; /* augmentation (augment.h); zoom draws factors from 1 - zoom to 1 + zoom */
    double crop; /* augmentation: the least share of a picture that is enlarged to the whole, at random; 0: none */
    double brightness, contrast, saturation, hue; /* augmentation: jitter of colours, as in augment.h */
    double erase;                                 /* augmentation: the chance that a part of a picture is erased */
    int pad;                                      /* augmentation: pictures move by so many pixels at most */
    const char *fill; /* of augmentation, beyond the edge: "nearest", "black", "reflect", "wrap" */
    double val_split; /* share of the pictures to test on where `data` has no test folder; 0: none */
    bool flip;        /* augmentation: left and right */
    bool strict;      /* a picture that cannot be decoded is an error; otherwise it is skipped */
    bool resume;      /* go on from the checkpoint in `out`, where there is one */
    bool no_exif;     /* train on pictures as they are stored, not turned upright (image.h); the model remembers it */
    int64_t cache;    /* bytes of host memory for decoded pictures; 0: half of what is left, -1: none (loader.h) */
    uint64_t seed;
    const struct pc_train_callbacks *callbacks;
    /* Ranks that train together, each with a `device` of its own (fit.h says how); NULL: it is alone. `batch` is that of
     * all together. All call it with the same options. Rank 0 alone writes the run folder, from whose checkpoint all go
     * on, and calls back, but for `stop`. */
    pc_group *group;
    /* Of the ranks of `group`: what is shared out over them (data_parallel.h): 1 the optimiser's state, 2 gradients too, 3 weights
     * too; 0: nothing. One rank alone has nothing to share out, and a warning says so (log.h). Runs go on with another stage.
     * Not with "f16" (PC_ERR_ARGUMENT). */
    int zero;
    /* In which gradients travel between ranks (pc_ddp_options): "bf16", rounded, or "float32"; NULL: "float32" */
    const char *reduce;
    int accumulate; /* a batch is learnt from in so many parts, one after another (fit.h); 0: 1 */
    /* Writes report.html from time to time and at the end: pc_report_page of <paracord-tools/report.h>. NULL: nobody */
    pc_status (*report)(const char *path, const pc_run_report *run);
} pc_train_options;

/* loss and accuracy are of the pictures of the epoch so far; where a device works later, of those whose results are
 * there already, up to 16 batches, or more where these take less than some 30 ms, fewer than `done`, and NaN before the
 * first. At the end of an epoch they are all. */
typedef struct pc_progress {
    int epoch, epochs;
    int64_t done, total;
    double loss, accuracy, images_per_second, seconds_left;
} pc_progress;

#define PC_METRICS_MAX 8

typedef struct pc_epoch_result {
    int epoch, epochs;
    double loss, accuracy, test_loss, test_accuracy, seconds, images_per_second;
    bool has_test;
    double test_balanced_accuracy; /* the mean over the classes of the share of their pictures that was recognised */
    bool uneven;     /* of a folder: the largest class has at least twice as many training pictures as the smallest */
    int never_named; /* classes that have test pictures, and that no test picture was taken for */
    int metrics;     /* of pc_fit_options.metrics, in that order, on what is tested */
    double metric[PC_METRICS_MAX];
} pc_epoch_result;

typedef struct pc_train_callbacks {
    void *context;
    void (*started)(void *context, const char *description); /* lines to show before training: data, network, device */
    void (*progress)(void *context, const pc_progress *progress);      /* after every batch */
    void (*epoch)(void *context, const pc_epoch_result *result);       /* after every epoch */
    void (*skipped)(void *context, const char *path, const char *why); /* a picture that could not be used */
    void (*damaged)(void *context, const char *path, const char *why); /* one that is used though it is damaged */
    bool (*stop)(void *context); /* polled after every batch; true: save a checkpoint and stop */
} pc_train_callbacks;

typedef struct pc_train_summary {
    int epochs_done;
    bool interrupted;
    int64_t train_pictures, test_pictures, skipped, damaged;
    double loss, accuracy, test_loss, test_accuracy, seconds; /* of the last epoch */
    pc_epoch_result kept; /* the epoch whose weights the model has; its epoch is 0 while none is finished */
    const char *
        model; /* its name in the run folder: "model.h5", or of networks of models.h, and described ones, "model.safetensors" */
    bool stopped_early; /* by early_stop */
} pc_train_summary;

/* PC_OK also when stopped: summary->interrupted; the run folder then has a checkpoint to go on from. From the end of
 * the first epoch on, and after a stop even before that, the folder has a whole model: the best of the epochs so far
 * or, within 2% of the time, one before it. */
PC_API PC_MUST_USE pc_status pc_train_folder(pc_train_options options, pc_train_summary *summary);

PC_END
#endif
