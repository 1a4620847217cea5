/* fit.h: the training loop for networks and loaders of your own.
 *
 *     pc_epoch_result last;
 *     if (pc_fit(net, adam, pictures, PC_OPTIONS(pc_fit_options, .epochs = 10, .test = others), &last) != PC_OK)
 *         return pc_report(stderr);
 *     printf("%.3f\n", last.test_accuracy);
 *
 * The network ends in logits. The loss follows from the batches' labels: y [n, 1] floating: binary cross-entropy, a
 * logit of 0 or more names the second class; y [n] int64: cross-entropy. On devices that work later whole batches are
 * one recording each (step.h), where the network can be recorded.
 *
 * Threads: all of it runs in the calling thread, on its current stream. Any number of threads may train at once, each
 * its own network, optimiser and loader, on one device and one stream too, and come to the bits that each comes to
 * alone; but what fails on a stream fails for all who use it (stream.h). One network may be evaluated and asked by
 * several threads, each with a loader of its own, while nobody trains or changes it: neither changes its mode.
 */
#ifndef PARACORD_FIT_H
#define PARACORD_FIT_H

#include <paracord/amp.h>
#include <paracord/loader.h>
#include <paracord/nn.h>
#include <paracord/train.h>

PC_BEGIN

typedef struct pc_fit_options {
    int reserved_;
    int epochs;                          /* 0 means 1 */
    pc_loader *test;                     /* measured after every epoch; NULL: not */
    const pc_train_callbacks *callbacks; /* progress, epoch and stop are used; may be NULL */
    /* A file that is written at the end of every epoch and when the stop callback says so: weights, optimiser state,
     * the thread's generator and the position between two batches. With `resume` training goes on from it when it is
     * there, to the bits of a training that was never stopped. `settings` is text of yours that must be the same then
     * (PC_ERR_STATE otherwise), below 1024 bytes; NULL for none. */
    const char *checkpoint;
    const char *settings;
    bool resume;
    /* With keep_best the network has, at the end, the weights of the epoch with the greatest accuracy on the test
     * pictures (of equals the one with the lowest test loss, of equals the earlier one) instead of the last one's; with
     * early_stop training ends when so many epochs in a row were no better. Both need `test`. A training that is
     * stopped on request keeps the weights that it has come to; the best ones are in the checkpoint. */
    bool keep_best;
    int early_stop; /* 0: never */
    /* One for each class of the loader (pc_cross_entropy_weighted), in the loss of training; NULL: all pictures count
     * alike. */
    const float *class_weights;
    pc_mixed mixed; /* how the forward pass of training is computed; parameters and measurements stay float32 */
} pc_fit_options;

/* Train all parameters that the optimiser was made for. *last (may be NULL) tells of the last finished epoch; its epoch
 * is 0 when there was none. PC_OK too when stopped on request. */
PC_API PC_MUST_USE pc_status pc_fit(pc_module *net, pc_optimizer *optimizer, pc_loader *train, pc_fit_options options,
                                    pc_epoch_result *last);

/* Mean loss and share of right answers over one epoch of a loader, in evaluation mode. Both are NaN for no pictures,
 * and where the network's answers are NaN. */
typedef struct pc_score {
    double loss, accuracy;
    int64_t count, correct;
} pc_score;
PC_API PC_MUST_USE pc_status pc_evaluate(pc_module *net, pc_loader *loader, pc_score *score);

/* Probabilities of a batch x, in evaluation mode and without a record for gradients: sigmoid of [n, 1] logits, else
 * softmax along the last dimension. */
PC_API PC_MUST_USE pc_tensor *pc_predict(pc_module *net, pc_tensor *x);

PC_END
#endif
