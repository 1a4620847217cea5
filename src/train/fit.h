/* fit.h: the training loop, and where it stands. */
#ifndef PC__FIT_H
#define PC__FIT_H

#include "train/answers.h"
#include "train/best.h"
#include "train/curve.h"
#include "train/judge.h"
#include "train/mix.h"
#include "train/tally.h"

#include <paracord/amp.h>
#include <paracord/data_parallel.h>
#include <paracord/schedule.h>
#include <paracord/step.h>
#include <paracord/train.h>

enum { PC__FIT_WORDS = 320 };

/* Where a training stands between two batches: with the weights, the optimiser's state and the thread's generator, all
 * that is needed to go on exactly. */
typedef struct pc__standing {
    int64_t epoch;   /* from 0: the one under way */
    int64_t batch;   /* of that epoch: the next one */
    pc__score score; /* of that epoch so far, but for batches that are under way (pc__fit_settle) */
    double seconds;  /* of that epoch so far */
} pc__standing;

/* The tensors of a batch that a step reads. */
typedef struct pc__pair {
    pc_tensor *tensor[PC_FIELDS_MAX];
    int count;
} pc__pair;

/* What a step reads, and, unless this has none, where it makes the next batch meanwhile (data/gather.h). */
typedef struct pc__learning {
    struct pc__fit *fit;
    pc__pair now, next;
    int64_t whole, part; /* of these batches, as pc_batch has them */
} pc__learning;

typedef struct pc__fit {
    pc_module *net;
    pc_module *trained; /* the part of it that is in training mode, the rest being in evaluation; NULL: all of it */
    pc_optimizer *optimizer;
    pc_mixed mixed;          /* how to run the forward pass */
    pc_scaler *scaler;       /* of PC_MIXED_F16, made by pc__fit_scaler; the owner of `fit` frees it */
    pc_loader *train, *test; /* test may be NULL */
    int epochs;
    pc__judge judge;      /* how outputs become a loss */
    pc__mix mix;          /* what that of training has besides; closed by the owner of `fit` */
    pc_schedule schedule; /* of the rate, where its steps are above 0 */
    int early_stop; /* end after so many epochs that were no better than the best; 0: never; `best` is open then */
    const pc_train_callbacks *callbacks; /* may be NULL */
    pc__standing at;
    pc_epoch_result last;     /* of the last finished epoch */
    pc__answers answers;      /* of the test pictures, to the last epoch's weights; freed by the owner of `fit` */
    pc_tensor *class_weights; /* of the losses, float32 on the device (pc__fit_weigh); NULL: all pictures count alike */
    pc__best best;            /* of all epochs, where it was opened; closed by the owner of `fit` */
    pc__curve curve;          /* the training loss by step */
    bool counts;              /* answers are right or wrong, so far as is known */
    bool uneven;              /* what its owner says of the classes, for results */
    const char *about; /* what the network is, for those who read a checkpoint as a model; NULL: that is not known */
    bool stopped;      /* on request */
    bool finished;     /* its owner has written all that the training is to leave */
    /* Called after every batch and at the end of every epoch (result not NULL), before the callbacks. */
    pc_status (*passed)(void *context, struct pc__fit *fit, const pc_epoch_result *result);
    pc_status (*told)(void *context, struct pc__fit *fit); /* at the end of every epoch, behind its callback */
    void *context;
    pc_group *group;       /* of ranks that train together (fit_ranks.c); NULL: it is alone */
    pc_group *network;     /* of ranks among which parameters are cut up; NULL: they are whole */
    pc_dtype reduce_dtype; /* of gradients between them (pc_ddp_options) */
    bool agreed;           /* the error that it ended with is that of all ranks of the group */
    bool parts_agreed;     /* and of the network */
    int accumulate;        /* a batch is learnt from in so many parts, as far as it has as many samples; 0: 1 */
    pc_zero *
        zero; /* parameters are shared out, and the optimiser is of this rank's part (fit_zero.c); NULL: they are not */
    pc_tensor **parameters; /* of zero: all of its network's, from pc__alloc; freed by the owner of `fit` */
    int parameter_count;

    /* While it runs. On a device that works later the recorded step reads whole batches from `fixed`, its own. Where
     * the pictures are on the device, steps take turns with two pairs: each makes the next one's batch, but for an
     * epoch's first. Otherwise batches are copied to one pair. */
    pc__tally tally;
    pc_ddp *ddp;             /* of a group without zero */
    bool joined;             /* the group's ranks are together */
    int was_rank, was_ranks; /* who shared `train` before */
    pc_tensor *
        guard; /* where losses are seen later (pc__fit_sees): steps are left out from the first loss on that is not finite */
    const int64_t *sample;  /* numbers of the samples of the batch that is under way */
    pc_generator generator; /* before this step, or where they come later before this run of the epoch */
    uint64_t draws;         /* of a step of this run of the epoch: that of a short batch, in fewer parts, has fewer */
    int64_t first_epoch, first_batch; /* where this run of the training began */
    int64_t began, updates; /* the batch that this run of the epoch began with, and the optimiser's updates then */
    pc__score drawn;        /* the results of this epoch that are in the curve */
    pc_step *step;          /* NULL: not yet, or not on this device */
    pc__learning fixed;     /* of the step */
    int turn;               /* of the pair `now` */
    bool ahead;             /* `next` has, or will have, the batch behind the one that was passed last */
} pc__fit;

/* fit_step.c: one step with this batch; and the end of steps. */
pc_status pc__fit_step(pc__fit *fit, const pc_batch *batch);
void pc__fit_end_steps(pc__fit *fit);

/* Outputs and loss of a batch, as steps have them. */
pc_status pc__fit_ask(pc__fit *fit, const pc_batch *batch, pc_tensor **outputs, pc_tensor **loss);

/* fit_learn.c: a step's work with a batch, in the scope that is open. And its parts, which are learnt from one after another:
 * into how many a batch of so many samples of all ranks is cut; part number i of them, in the scope that is open. */
pc_status pc__fit_learn(pc__fit *fit, const pc_batch *batch);
int pc__fit_parts(const pc__fit *fit, int64_t whole);
pc_status pc__fit_part(const pc_batch *batch, int i, int parts, pc_batch *part);

/* fit_zero.c: parameters that are shared out over the ranks. Train by zero, where it is not NULL: with who's errors. What one
 * process's optimiser would be for. They are whole in this rank, or as training has them: all ranks ask for it. */
pc_status pc__fit_share_out(pc__fit *fit, const char *who, pc_zero *zero);
pc__parameters pc__fit_parameters(const pc__fit *fit);
pc_status pc__fit_whole(const pc__fit *fit, bool whole);

/* fit_ranks.c: what ranks have in common, in calls that all of them make; alone they do nothing. `joined`: they are there,
 * with the same data at the same place; network and numbers drawn are rank 0's, batches are shared. */
pc_status pc__fit_ranks_join(pc__fit *fit);
void pc__fit_ranks_leave(pc__fit *fit);

/* Rank 0's bytes, its optimiser's rate, and its statistics of normalisations, in all ranks. What all say that made a loss
 * infinite or NaN: the words of the first that found something, and what it was. */
pc_status pc__fit_ranks_first(const pc__fit *fit, void *bytes, size_t n);
pc_status pc__fit_parts_first(const pc__fit *fit, void *bytes, size_t n); /* and of the first part of a cut network */
pc_status pc__fit_ranks_rate(const pc__fit *fit);
pc_status pc__fit_ranks_buffers(const pc__fit *fit);
typedef enum pc__cause { PC__CAUSE_NONE, PC__CAUSE_BATCH, PC__CAUSE_PARAMETER, PC__CAUSE_OP } pc__cause;
pc_status pc__fit_ranks_words(pc__fit *fit, pc__cause *cause, char what[PC__FIT_WORDS]);

pc_status pc__fit_parts_words(const pc__fit *fit, pc__cause *cause,
                              char what[PC__FIT_WORDS]); /* of the network's parts */

/* All parts of a cut network come here, and where one has failed all do, with nothing that ends them: so far they could go on. */
pc_status pc__fit_parts_agree(pc__fit *fit, pc_status status);

/* How this rank ended, which is its own error, or that of another one; an error ends the others, of the group and the network. */
pc_status pc__fit_ranks_end(pc__fit *fit, pc_status status);

/* It is the one that writes files and calls back. */
static inline bool pc__fit_speaks(const pc__fit *fit)
{
    return !fit->group || pc_group_rank(fit->group) == 0;
}

/* The host sees each loss before anything is changed by it: what works at once, alone. */
static inline bool pc__fit_sees(const pc__fit *fit)
{
    return fit->tally.immediate && !fit->group;
}

/* fit_finite.c: the guard of the steps of an epoch, where it needs one; and PC_ERR_RANGE with what made the sum of losses
 * infinite or NaN, where it is. */
pc_status pc__fit_guard(pc__fit *fit);
pc_status pc__fit_check(pc__fit *fit);

/* The error itself: batch number `step` of the epoch under way, which is `batch`, or a part of it, asked in so many parts. */
pc_status pc__fit_not_finite(pc__fit *fit, int64_t step, const pc_batch *batch, int parts);

/* Let the losses of training count by these weights of the classes; fit->class_weights is to be freed by the owner of
 * `fit`, who made optimizer and train before. What is measured is not weighed. */
pc_status pc__fit_weigh(pc__fit *fit, const float *weights, int classes);

/* Whether there are no epochs left to train: all were, or the last ones were no better than the best. */
bool pc__fit_is_over(const pc__fit *fit);

/* The network's parts are in the modes that they are trained in. */
void pc__fit_set_training(const pc__fit *fit);

/* Train from `at` until it is over, or until the stop callback says so (`stopped`). On a device that works later the
 * host waits before it records the step, at the end of an epoch, at a stop, and where tally.h has it wait. */
pc_status pc__fit_run(pc__fit *fit);

/* Wait for the batches that are under way: fit->at.score then has them all. PC_ERR_RANGE as pc__fit_check. */
pc_status pc__fit_settle(pc__fit *fit);

/* Make the loss scaler where `mixed` needs one; before a checkpoint is loaded, and before it runs. */
pc_status pc__fit_scaler(pc__fit *fit);

/* Seconds of a clock that only goes forward. */
PC__SHARED double pc__seconds_now(void);

#endif
