/* fit.h: the training loop for networks and loaders of your own.
 *
 *     pc_loader *houses = pc_loader_from_csv("houses.csv", PC_OPTIONS(pc_csv_options, .y = "price"), .shuffle = true);
 *     pc_epoch_result last;
 *     if (pc_fit(net, adam, houses, PC_OPTIONS(pc_fit_options, .epochs = 10, .test = others), &last) != PC_OK)
 *         return pc_report(stderr);
 *     printf("%.3f\n", last.test_loss);
 *
 * The loss follows from the batches' y, unless a function of yours says it:
 *     labels of a folder of two classes, float32 [n, 1]   binary cross-entropy of logits [n, 1]; 0 or more names the
 *                                                         second class; or cross-entropy of logits [n, 2]
 *     integers [n]                                        cross-entropy of logits [n, classes]; samples of -100 count for
 *                                                         nothing, in the loss and in the share
 *     other floating y, a price or twelve of them         the mean squared error; y may lack, or have, a dimension of 1
 * With labels the share of right answers is counted, too; otherwise accuracies are NaN. On devices that work later whole
 * batches are one recording each (step.h), where the network can be recorded.
 *
 * A loss that is infinite or NaN stops training at once, with PC_ERR_RANGE: the error names epoch and step and what made
 * it so, an op with its layer, a parameter or the batch itself. The parameters are those that the step began with, and a
 * checkpoint stays as the last one that was good. (Statistics of batch normalisations have seen the batch.)
 *
 * Threads: all of it runs in the calling thread, on its current stream. Any number of threads may train at once, each
 * its own network, optimiser and loader, on one device and one stream too, and come to the bits that each comes to
 * alone; but what fails on a stream fails for all who use it (stream.h). One network may be evaluated and asked by
 * several threads, each with a loader of its own, while nobody trains or changes it: neither changes its mode.
 */
#ifndef PARACORD_FIT_H
#define PARACORD_FIT_H

#include <paracord/amp.h>
#include <paracord/data_parallel.h>
#include <paracord/group.h>
#include <paracord/loader.h>
#include <paracord/nn.h>
#include <paracord/schedule.h>
#include <paracord/train.h>

PC_BEGIN

/* What is measured beside the loss: a mean over the samples of a batch, as a tensor of one number. Of `batch` tensors, n
 * and epoch are set, x and y too. */
typedef struct pc_metric {
    const char *name;
    pc_tensor *(*of)(void *context, pc_tensor *outputs, const pc_batch *batch);
    bool greater; /* the greater, the better */
} pc_metric;

typedef struct pc_fit_options {
    int reserved_;
    int epochs;                          /* 0 means 1 */
    pc_loader *test;                     /* measured after every epoch; NULL: not. Where both have classes, these are
                                          * train's, as far as there are: PC_ERR_ARGUMENT (a loader's class_names).
                                          * Of the network's outputs there may be more: what it names then is wrong */
    const pc_train_callbacks *callbacks; /* progress, epoch and stop are used; may be NULL */
    /* A file that is written at the end of every epoch, behind the epoch callback, and when the stop callback says so:
     * weights, optimiser state with the rate, the thread's generator and the position between two batches; what the
     * callback changes of these is in it. With `resume` training goes on from it when it is
     * there, to the bits of a training that was never stopped. `settings` is text of yours that must be the same then
     * (PC_ERR_STATE otherwise), below 1024 bytes; NULL for none. Network and optimiser, .mixed where it is PC_MIXED_F16,
     * and inside an epoch the size of batches and the number of samples must be the same, too; keep_best goes on with what
     * was made with it, and left out drops what was kept. Metrics are found again by their names, wherever they are in the
     * list; behind the first epoch with `test` what is watched must be the same (PC_ERR_STATE).
     * Of parameters that are cut up among ranks (tensor_parallel.h), also those of networks that only your forward and loss
     * ask, the file has the whole ones: all of their ranks give the same path, where each sees the file; the one with the first
     * part writes. Others go on from it in another number of parts, or with whole ones. */
    const char *checkpoint;
    const char *settings;
    bool resume;
    /* With keep_best the network has, at the end, the weights of the best epoch on `test` (`watch`; of equal accuracies
     * the one with the lowest test loss, of equals the earlier one) instead of the last one's; with
     * early_stop training ends when so many epochs in a row were no better. Both need `test`. A training that is
     * stopped on request keeps the weights that it has come to; the best ones are in the checkpoint. */
    bool keep_best;
    int early_stop; /* 0: never */
    /* One for each class of the loader, which names them (pc_cross_entropy_weighted), in the loss of training; labels of
     * -100 have none and count for nothing. NULL: all samples count alike. */
    const float *class_weights;
    /* In the loss of training, where answers are right or wrong: of the target so much, 0 to below 1, is for all classes
     * alike (PyTorch's label_smoothing; of two classes told by one logit, half of it). */
    double label_smoothing;
    /* Mixup (Zhang and others, 2018): in training each sample is blended with the one before it in its batch, the first
     * with the last, by shares of which the lesser is drawn once a batch, as the lesser of l and 1 - l with l from
     * Beta(mixup, mixup); the loss is blended alike. What is counted as right is the label of the greater share.
     * 0: none; up to 100. Needs floating x, one y, and no loss or forward of yours. */
    double mixup;
    /* CutMix (Yun and others, 2019), of pictures [n, c, h, w]: a part of each is that of the one before it, of the area
     * 1 - l, as far as it is inside; what is counted is the picture's own label. Beside mixup each has half of the
     * batches. */
    double cutmix;
    pc_mixed mixed; /* how the forward pass of training is computed; parameters and measurements stay float32 */

    /* Functions of yours, with `context`. They make tensors by ops and return one, or NULL and an error; in a recorded
     * step they run once. Of `batch` only x, y, tensor, tensors and n are set. */
    pc_tensor *(*loss)(void *context, pc_tensor *outputs, const pc_batch *batch); /* one number, the samples' mean */
    /* What the network makes of a batch; NULL: pc_forward(net, batch->x). */
    pc_tensor *(*forward)(void *context, pc_module *net, const pc_batch *batch);
    void *context;
    /* Measured on `test` after every epoch, with the loss: at most PC_METRICS_MAX. */
    const pc_metric *metrics;
    int metric_count;
    /* By what keep_best and early_stop know the better epoch: "accuracy", "loss" or the name of a metric, on `test`. NULL:
     * accuracy where answers are right or wrong, else loss. It must be better by more than least_gain. */
    const char *watch;
    double least_gain;
    /* Ranks that train together, each a replica of the network with a loader of the same data, in the same order (group.h); NULL: it is
     * alone. All call it with the same options. They begin with rank 0's weights, and each learns from its part of every
     * batch of `train` (pc_loader_share, while it runs), by the mean of all gradients (data_parallel.h): the step is that
     * of one device with the whole batch, up to rounding, at any number of ranks, but for what goes by a rank's part
     * alone: norms of batches, pairs of mixup and cutmix, dropout's zeros. What is told is of whole batches. `test` is
     * measured in every rank with rank 0's statistics of norms, and rank 0's figures count. Rank 0 alone calls back and
     * writes the checkpoint, which all read; a rate that its epoch callback sets is that of all ranks, which must have the
     * same one at the beginning, too (PC_ERR_STATE); the stop callbacks are asked in every rank, and all stop, some batches
     * later, where one says so. An error in one rank ends all: PC_ERR_STATE says which and of what. */
    pc_group *group;
    pc_dtype reduce_dtype; /* of gradients between them (pc_ddp_options), without zero, which has its own */
    /* The parameters are shared out over the ranks of `group` (data_parallel.h): `zero` is of the network that is trained and
     * of that group, and the optimiser of pc_zero_part(zero). What is learnt is the same, up to rounding. In stage 3
     * parameters are whole at the ends of epochs, when they are kept and written; behind pc_fit they are shared out. The
     * checkpoint is that of any training: others go on from it with another stage, another number of ranks, alone or
     * without this. NULL: each rank has all parameters. PC_ERR_ARGUMENT with PC_MIXED_F16. */
    pc_zero *zero;
    /* Each batch is learnt from in so many parts, one after another, whose gradients add up to one step; 0 means 1. It takes
     * the memory of a part, and what is learnt is the same up to rounding, but for what goes by the samples of a part alone:
     * norms of batches (their statistics too), pairs of mixup and cutmix, dropout's zeros; loss and forward of yours get
     * parts. Parts are as equal as can be, and count by their samples; without a loss of yours, by those whose label is not
     * -100. A batch of fewer samples in some rank than parts has as many parts as that. In a group the gradients are
     * exchanged once a batch, with `zero` once a part. */
    int accumulate;
    /* The learning rate of each step, over all epochs (schedule.h); .steps 0 means all of them, .lr 0 the one that the
     * program gave the optimiser (its constructor, pc_optimizer_set_lr), not where a schedule has left it. Without a kind the
     * optimiser's rate stays. */
    pc_schedule schedule;
} pc_fit_options;

/* Train all parameters that the optimiser was made for; PC_ERR_ARGUMENT where none of them is the network's, without forward and
 * loss of yours. *last (may be NULL) tells of the last finished epoch; its epoch is 0 when there was none. PC_OK too when
 * stopped on request. Where parameters are cut up among ranks (tensor_parallel.h), by one group, all of these call it with the same options;
 * the stop callbacks are asked in every rank, and all stop behind the same batch, some batches later, where one says so.
 * An error in one of them ends all. */
PC_API PC_MUST_USE pc_status pc_fit(pc_module *net, pc_optimizer *optimizer, pc_loader *train, pc_fit_options options,
                                    pc_epoch_result *last);

/* Mean loss and share of right answers over one epoch of a loader, in evaluation mode. Both are NaN for no samples,
 * and where the network's answers are NaN; the share also where answers are not right or wrong. A loss of yours counts as the mean
 * of a batch's samples, of those whose label is not -100 where y is integers [n]. */
typedef struct pc_score {
    double loss, accuracy;
    int64_t count, correct;        /* count: without samples of the label -100 */
    double metric[PC_METRICS_MAX]; /* of the options' metrics; NaN without */
} pc_score;
PC_API PC_MUST_USE pc_status pc_evaluate(pc_module *net, pc_loader *loader, pc_score *score);

/* The same by loss, forward and metrics of the options; the others are not read. */
PC_API PC_MUST_USE pc_status pc_evaluate_by(pc_module *net, pc_loader *loader, pc_fit_options options, pc_score *score);

/* Probabilities of a batch x, in evaluation mode and without a record for gradients: sigmoid of [n, 1] logits, else
 * softmax along the last dimension. */
PC_API PC_MUST_USE pc_tensor *pc_predict(pc_module *net, pc_tensor *x);

PC_END
#endif
