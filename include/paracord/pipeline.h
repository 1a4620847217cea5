/* pipeline.h: one network cut into stages, one on each rank, through which a batch goes in pieces.
 *
 *     int first[PC_PIPELINE_STAGES + 1];
 *     pc_pipeline_balance(net, stages, first);                      // the same in all ranks
 *     pc_pipeline_cut(net, first[rank], first[rank + 1]);           // what is left of net is this rank's stage
 *     pc_module_to(net, device, PC_F32);
 *     pc_pipeline *pipe = pc_pipeline(net, group, loss, NULL, .microbatches = 8);
 *     pc_optimizer *adam = pc_adam(net, .lr = 1e-3);
 *     for (;;)                                                      // x: the first stage's; labels: the last one's
 *         PC_SCOPE {
 *             pc_tensor *mean;
 *             pc_pipeline_step(pipe, x, labels, &mean);             // gradients are those of the whole batch
 *             pc_pipeline_update(pipe, adam);                       // in the place of pc_optimizer_step
 *         }
 *
 * Rank r of the group has stage r. A batch is cut into M microbatches (Huang and others 2019). What a stage makes of
 * one goes to the next stage, its gradient comes back. In the schedule 1F1B (PipeDream-Flush; Narayanan and others
 * 2021) a stage runs stages - rank - 1 forward passes, then a forward and a backward pass in turns, then the
 * backward passes that are left. So it keeps the activations of stages - rank microbatches at most, however many
 * there are. Of the time of a step the share (stages - 1) / (M + stages - 1) is spent waiting, where all stages take
 * the same time.
 *
 * What is learnt is what one device learns from the whole batch, up to rounding, where the loss is a mean over
 * samples: each microbatch counts by its samples. It is not where samples see each other (batch normalisation goes
 * by microbatches), where a mean leaves samples out (ignored labels, weights of classes), and in what dropouts draw: by the
 * thread's generator and the stage, so that stages with one seed have other zeros, and the first one those of a network that
 * is not cut.
 *
 * Order of messages: ranks can wait for each other without an end where one sends an activation forward, the other a
 * gradient back, and neither receives. Here all messages of a step have one order, of which every rank has its part:
 * first the activations of the first forward passes, microbatch by microbatch, from stage to stage; then for each
 * microbatch k, from the last link to the first, the activation that the lower stage makes in front of its backward
 * pass of k, and the gradient of k. A stage so receives its next activation before it sends a gradient back, and
 * loses nothing by it, since the stage below needs that gradient behind this activation. The first message of that
 * order that is not done is the next one in both of its ranks, so some message can always go on, also where sending
 * blocks until the other side receives (threads, MPI) and where all is one queue (a stream of NCCL). Reductions of a
 * pc_ddp stand in it in front of the last gradient that a stage sends.
 *
 * What does not go together with it: a loss scaler, which decides by one stage's gradients (train in bfloat16), and
 * the clipping of pc_zero_step, which knows the norm of one stage.
 *
 * Errors: whatever fails in a rank's call ends the group, and that of a pc_ddp that is given, so that the others are
 * told, by "stage 1, microbatch 3, forward: ...", instead of waiting. What a device finds out behind the call is
 * told at the rank's next call; the others wait for it no longer than the group's time-out.
 *
 * Threads: as of the group. */
#ifndef PARACORD_PIPELINE_H
#define PARACORD_PIPELINE_H

#include <paracord/data_parallel.h>

PC_BEGIN

typedef struct pc_pipeline pc_pipeline;

enum { PC_PIPELINE_STAGES = 64 /* the most */ };

/* The loss of a microbatch: the mean over its samples, one floating number. y is what the last stage makes, target
 * the microbatch's part of the target, NULL where the step has none. NULL with the error set. */
typedef pc_tensor *(*pc_pipeline_loss_fn)(void *context, pc_tensor *y, pc_tensor *target);

typedef enum pc_pipeline_schedule {
    PC_PIPELINE_1F1B,
    PC_PIPELINE_GPIPE, /* all forward passes, then all backward passes: the same time, activations of M microbatches */
    PC_PIPELINE_SCHEDULES
} pc_pipeline_schedule;

typedef struct pc_pipeline_options {
    int reserved_;
    int microbatches; /* M; 0: four for each stage */
    pc_pipeline_schedule schedule;
    bool share_loss; /* all ranks get the loss, not the last one alone */
    /* Of this rank's stage and the ranks that have the same stage of other pipelines (a group of their own,
     * pc_group_split): gradients are reduced in the last microbatch's backward pass, and are the mean of the
     * pipelines', which have batches of one size. It lives as long. */
    pc_ddp *ddp;
} pc_pipeline_options;

/* A pipeline of all ranks of the group, which call this at the same time. stage: this rank's part of the network,
 * where it is to be trained (one without parameters works on the thread's current device): a module of one input,
 * which in every stage but the first is floating. loss: called in the last stage with `context`; others may pass
 * NULL. All ranks give the same options, ddp aside. Module, group and context are the caller's and live as long. The
 * caller owns it. NULL: PC_ERR_ARGUMENT (of the rank that it is about, told in all), PC_ERR_STATE where ranks
 * differ, PC_ERR_MEMORY, the group's errors. */
PC_API PC_MUST_USE pc_pipeline *pc_pipeline_new(pc_module *stage, pc_group *group, pc_pipeline_loss_fn loss,
                                                void *context, pc_pipeline_options options);
#define pc_pipeline(stage, group, loss, ...) PC_PIPELINE_(stage, group, loss, __VA_ARGS__, )
#define PC_PIPELINE_(stage, group, loss, context, ...)                                                                 \
    pc_pipeline_new((stage), (group), (loss), (context), PC_OPTIONS(pc_pipeline_options, __VA_ARGS__))

/* Forward and backward passes of a batch: gradients of the mean loss are added to those of the stage's parameters.
 * x: the batch, cut along dimension 0, of the first stage; target, cut the same way, of the last one; both are on
 * the stage's device. Other stages' are not looked at, and may be NULL. Of n samples the first n mod M microbatches
 * have one more than the others. *mean (mean may be NULL) is the batch's loss, float32 [], as results of ops are;
 * NULL in ranks that have none.
 *
 * The first step tells each stage the shapes and dtypes that it will get, for which the host waits; they stay:
 * another batch size, or a stage that makes another shape of a microbatch, is PC_ERR_SHAPE. PC_ERR_SHAPE too for
 * fewer samples than microbatches; PC_ERR_DTYPE for what is no floating activation; PC_ERR_STATE inside PC_NO_GRAD;
 * the module's, the loss's and the group's errors. Behind an error gradients are in part there, and the group is of
 * no more use.
 *
 * It can be part of a recorded step (step.h), whose first run then is a plain call, in all ranks, and with nothing that
 * no recording can hold. */
PC_API PC_MUST_USE pc_status pc_pipeline_step(pc_pipeline *pipeline, pc_tensor *x, pc_tensor *target, pc_tensor **mean);

/* The next step may have another batch size, and tells all stages the shapes anew. All ranks call it between the
 * same two steps. */
PC_API void pc_pipeline_forget_shapes(pc_pipeline *pipeline);

/* pc_optimizer_step of this rank's stage, by the norm of all stages' gradients where it clips by norm, as all ranks
 * then do. Of a stage that is cut up among ranks this needs pc_tensor_parallel_clip (tensor_parallel.h), and is
 * PC_ERR_STATE without. All ranks call it, those too whose stage is frozen or has no parameters (with an optimiser of
 * none). A stage may have several optimisers, each for some of its parameters and with a call of its own: then all ranks
 * make as many calls, and a norm is that of a call. Errors end the group as those of a step. */
PC_API PC_MUST_USE pc_status pc_pipeline_update(pc_pipeline *pipeline, pc_optimizer *optimizer);

/* A parameter that several stages have a copy of, such as a table of tokens in the first and the last one: all ranks
 * call it, those that have one with their copy, of one shape and dtype, others with NULL. All copies become that of
 * the lowest of these ranks. From now on pc_pipeline_update sums their gradients first, so that copies stay equal
 * where optimisers have the same settings, and a norm counts the sum once; where no stage has a gradient of it, it is in
 * no step. Of a stage's optimisers it is the one that has the parameter whose update does so: the same call in all
 * stages that have a copy. Errors as of pc_pipeline_new; PC_ERR_SHAPE where copies differ. */
PC_API PC_MUST_USE pc_status pc_pipeline_tie(pc_pipeline *pipeline, pc_tensor *parameter);

/* Before the group. */
PC_API void pc_pipeline_free(pc_pipeline *pipeline);

/* --- stages of a Sequential --- */

/* Where to cut a Sequential or ModuleList into so many stages (1 to PC_PIPELINE_STAGES) that the largest has as few
 * numbers in its parameters as can be, and the others are as equal as that allows: stage i is children first[i] to
 * first[i + 1] - 1, at least one; first, of stages + 1, ends with how many children there are. Layers without
 * parameters stay with the one in front of them where that changes nothing. PC_ERR_ARGUMENT for other modules, and
 * for fewer children than stages. */
PC_API PC_MUST_USE pc_status pc_pipeline_balance(const pc_module *net, int stages, int *first);

/* Leave of it children `from` to `to` - 1, and release the others. What is left keeps its names ("3.weight"), so that
 * pc_module_load_matching, and pc_weights_load with .partial, take it out of a state dict of the whole network; and its
 * weights, so that all ranks which make the network by the same seed have parts of one. In front of optimisers and
 * pc_ddp. PC_ERR_ARGUMENT for other modules; PC_ERR_RANGE. */
PC_API PC_MUST_USE pc_status pc_pipeline_cut(pc_module *net, int from, int to);

PC_END
#endif
