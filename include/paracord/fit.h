/* fit.h: the training loop for networks and loaders of your own.
 *
 *     pc_epoch_result last;
 *     if (pc_fit(net, adam, pictures, PC_OPTIONS(pc_fit_options, .epochs = 10, .test = others), &last) != PC_OK)
 *         return pc_report(stderr);
 *     printf("%.3f\n", last.test_accuracy);
 *
 * The network ends in logits. The loss follows from the batches' labels: y [n, 1] floating: binary cross-entropy, a
 * logit of 0 or more names the second class; y [n] int64: cross-entropy. Run in the calling thread. On devices that
 * work later whole batches are one recording each (step.h), where the network can be recorded.
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
    pc_mixed mixed; /* how the forward pass of training is computed; parameters and measurements stay float32 */
} pc_fit_options;

/* Train all parameters that the optimiser was made for. *last (may be NULL) tells of the last finished epoch; its epoch
 * is 0 when there was none. PC_OK too when stopped on request. */
PC_API PC_MUST_USE pc_status pc_fit(pc_module *net, pc_optimizer *optimizer, pc_loader *train, pc_fit_options options,
                                    pc_epoch_result *last);

/* Mean loss and share of right answers over one epoch of a loader, in evaluation mode. NaN for no pictures. */
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
