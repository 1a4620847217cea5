/* data_parallel.h: one network on many ranks, each with a part of every batch.
 *
 *     pc_group *world = pc_group_world();
 *     pc_ddp *ddp = pc_ddp(net, world);     // from now on all ranks have rank 0's weights
 *     for (;;) {                            // the usual step: a plain one, or in pc_step_run
 *         pc_tensor *loss = pc_cross_entropy(pc_forward(net, x), labels);
 *         pc_backward(loss);                // gradients are the mean of all ranks' when it is done
 *         pc_optimizer_step(adam);
 *     }
 *     pc_ddp_free(ddp);
 *
 * Gradients lie in buckets of some MB. A backward pass queues the reduction of a bucket on the group's stream as soon as
 * its last gradient is there, so that it goes on while the next ones are computed; pc_grad is a view of the bucket. Where
 * every rank has as many samples and losses are means, the step is that of one device with all the samples, up to
 * rounding.
 *
 * A parameter that a rank's loss does not depend on counts as a gradient of zeros there. Where no rank's does it is in no step,
 * as on one device: neither momentum nor a decay moves it, though pc_grad has zeros. A failed backward pass leaves gradients
 * that are not reduced: pc_zero_grad them, in all ranks.
 */
#ifndef PARACORD_DATA_PARALLEL_H
#define PARACORD_DATA_PARALLEL_H

#include <paracord/group.h>
#include <paracord/nn.h>

PC_BEGIN

typedef struct pc_ddp pc_ddp;

typedef struct pc_ddp_options {
    int reserved_;
    double bucket_mb; /* of a bucket, in 2^20 bytes; 0: 25 */
    /* PC_BF16 or PC_F16: gradients of float32 cross the links in that dtype, half the bytes, and are rounded on the way:
     * each rank's, and their mean. float16 has no room for numbers from 65,520 on. Weights and gradients stay float32.
     * PyTorch's bf16_compress_hook, and FSDP's reduce_dtype. 0, the default, or PC_F32: as they are. The same in all ranks. */
    pc_dtype reduce_dtype;
} pc_ddp_options;

/* Train the module's parameters together with the other ranks of the group, which call this with the same network at the
 * same time: parameters and buffers become those of rank 0; gradients of those that collect them now are reduced from
 * now on, and what they have collected before is dropped (pc_zero_grad). The module is where it is to be trained, and
 * stays there; its tensors, the group and the module live as long, and longer than graphs that were recorded meanwhile.
 * The caller owns it. NULL: PC_ERR_STATE where ranks have other networks (names, shapes, dtypes, frozen parameters) or
 * other options, or a parameter is in another one already; PC_ERR_ARGUMENT; PC_ERR_MEMORY; the group's errors. */
PC_API PC_MUST_USE pc_ddp *pc_ddp_new(pc_module *module, pc_group *group, pc_ddp_options options);
#define pc_ddp(...) PC_DDP_(__VA_ARGS__, )
#define PC_DDP_(module, group, ...) pc_ddp_new((module), (group), PC_OPTIONS(pc_ddp_options, __VA_ARGS__))

/* Gradients are this rank's own again. */
PC_API void pc_ddp_free(pc_ddp *ddp);

/* off: backward passes only add to this rank's gradients, which the next one with `on` (the state at the beginning)
 * reduces together with its own: gradients of several batches, and one exchange. The same in all ranks. */
PC_API void pc_ddp_set_sync(pc_ddp *ddp, bool on);

/* Give all ranks rank 0's buffers (running statistics of batch normalisations, which each rank collects of its own
 * samples). Before evaluating in all ranks, or where a checkpoint is not rank 0's. */
PC_API PC_MUST_USE pc_status pc_ddp_share_buffers(pc_ddp *ddp);

/* --- batch normalisations by the samples of all ranks --- */

/* From now on the batch that the layer (pc_batch_norm1d, pc_batch_norm2d) is trained with is that of all ranks of the group
 * together: PyTorch's SyncBatchNorm. All ranks run it at the same time, with as many samples each as they have, none too
 * (in pc_fit those are none that a rank without a part of a batch gets in its place): what it gives, its running
 * statistics and the gradient of its input are those of one device with all samples; weight and bias have the gradients
 * of this rank's samples, as everywhere under pc_ddp. One exchange of 2 channels + 1 numbers on the way there, one of 2
 * channels on the way back. Evaluation is each rank's own. NULL: the layer is by itself again. The group is not owned:
 * it lives as long as the layer, or NULL takes its place, and longer than steps that were recorded. PC_ERR_ARGUMENT for
 * other modules. */
PC_API PC_MUST_USE pc_status pc_batch_norm_set_group(pc_module *layer, pc_group *group);

/* The same of all batch normalisations of a network; how many there are. */
PC_API int pc_sync_batch_norm(pc_module *network, pc_group *group);

/* --- memory shared out over the ranks: ZeRO --- */

typedef struct pc_zero pc_zero;

typedef struct pc_zero_options {
    int reserved_;
    double bucket_mb; /* as pc_ddp's */
    int stage;        /* 1 to 3; 0: 1 */
    /* Stage 3: so many buckets of weights are gathered ahead of use, beside what is computed. A collective takes
     * multiprocessors from products, which then take another round: over NVLink 0 is fastest (docs/many-devices.md), over
     * slower links, and with .offload out of the host's memory, 1 or 2. */
    int ahead;
    /* What the optimiser keeps, and in stage 3 this rank's part of the weights, lie in pinned host memory. */
    bool offload;
    pc_dtype reduce_dtype; /* as pc_ddp's */
} pc_zero_options;

/* pc_ddp where each rank keeps a part of what training needs (ZeRO, Rajbhandari and others 2020). For a number of float32
 * that Adam trains, in bytes:
 *
 *     | stage | weights   | gradients | optimiser's state |
 *     |-------|-----------|-----------|-------------------|
 *     | pc_ddp| 4         | 4         | 8                 |
 *     | 1     | 4         | 4 + 4 / n | 8 / n             |
 *     | 2     | 4         | 4 / n     | 8 / n             |   and two buckets of gradients
 *     | 3     | 4 / n     | 4 / n     | 8 / n             |   and two buckets of weights, more where they are gathered ahead
 *
 * With .offload what the optimiser keeps, and in stage 3 this rank's part of the weights, take none of the device's memory: they
 * lie in pinned host memory, which the kernels of the step use over the bus as they use the device's own (so, 0 in the last
 * column, and of stage 3 in the first). Below stage 3 that part is a piece of the weights that the device has anyway, and stays.
 * Tensors remain the device's for every call; steps are recorded as ever, the host has no part in them, and what is learnt has
 * the same bits. One rank is enough (pc_group_threads(1, &group)): a network that its device has no room for. What crosses the
 * bus makes steps slower: with Adam, for each number of this rank's part, 8 bytes there and 8 back; in stage 3 12 and 12, and
 * 4 there each time that its bucket is gathered, so 32 in all for a forward and a backward pass. pc_memory_query counts it
 * (pinned). On the CPU it changes nothing. DeepSpeed's ZeRO-Offload has the same in host memory (gradients too, whose part stays
 * on the device here) and lets the host's cores do Adam.
 *
 * Weights lie in buckets too, of which each rank has a part. A backward pass reduces each bucket of gradients to the parts as
 * soon as it is full; several passes in front of a step add up. The step updates this rank's part, and brings all parts to
 * all ranks.
 *
 *     pc_zero *zero = pc_zero(net, world, .stage = 2);
 *     pc_optimizer *adam = pc_adamw(pc_zero_part(zero), .lr = 1e-4);
 *     ...
 *     pc_backward(loss);              // no gradients of net's parameters are left: those of the part are
 *     pc_zero_step(zero, adam);       // in the place of pc_optimizer_step
 *
 * In stage 3 a parameter has its weights only around the calls that use it: a call gathers its bucket, and the two that were
 * used last stay. In an autocast scope they are gathered in 16 bits. All ranks make the same
 * calls in the same order, forward passes of evaluations too. Whoever wants to read or write a parameter itself
 * (checkpoints, another rank's files, an evaluation in one rank) does it between pc_zero_gather and pc_zero_release; else
 * that is PC_ERR_STATE. A view of a parameter, or a pc_detach, that a program keeps has the weights of when it was made.
 *
 * What is learnt is what pc_ddp learns, up to the order of sums in a norm for clipping. Shapes of the part's parameters are
 * [n, 1, ...], of as many dimensions as the parameter that they are a piece of, so that groups by dimensions hold, those
 * that a rank has none of too; names are the parameter's. A loss scaler (amp.h) sees this rank's gradients alone, so it
 * refuses such an optimiser (PC_ERR_UNSUPPORTED): train in bfloat16. The errors are pc_ddp_new's; PC_ERR_ARGUMENT too where the network
 * has too few numbers for so many ranks; PC_ERR_MEMORY where the host has too little memory to pin, of the optimiser's
 * constructor too. Where one rank has an error all have one, and the network has all its weights in all of them: its own, or
 * rank 0's. */
PC_API PC_MUST_USE pc_zero *pc_zero_new(pc_module *module, pc_group *group, pc_zero_options options);
#define pc_zero(...) PC_ZERO_(__VA_ARGS__, )
#define PC_ZERO_(module, group, ...) pc_zero_new((module), (group), PC_OPTIONS(pc_zero_options, __VA_ARGS__))

/* The parameters go on lying where they lie; after stage 3 they have their weights only if those were gathered. The
 * optimiser of the part goes first. */
PC_API void pc_zero_free(pc_zero *zero);

/* What this rank's optimiser is for: a module without a forward pass. The zero's. */
PC_API pc_module *pc_zero_part(pc_zero *zero);

/* pc_optimizer_step of this rank's part, by the norm of all parts where that is clipped, of a network that is cut
 * (tensor_parallel.h) by that of the whole one; then all ranks have all weights, in stage 3 when they need them.
 * PC_ERR_ARGUMENT for an optimiser of another module, such as the network itself; and pc_optimizer_step of the part's is
 * PC_ERR_STATE. */
PC_API PC_MUST_USE pc_status pc_zero_step(pc_zero *zero, pc_optimizer *optimizer);

/* Stage 3: from here to pc_zero_release parameters have all of their weights in this rank. All ranks call both, outside of
 * recordings (PC_ERR_STATE). What a rank then has of the part of the parameters that is its own is what counts: a network
 * that is loaded is loaded in all ranks. In stages 1 and 2, and when it is done already, there is nothing to do. */
PC_API PC_MUST_USE pc_status pc_zero_gather(pc_zero *zero);
PC_API PC_MUST_USE pc_status pc_zero_release(pc_zero *zero);

/* As pc_ddp_share_buffers. */
PC_API PC_MUST_USE pc_status pc_zero_share_buffers(pc_zero *zero);

/* --- several devices of one process --- */

typedef struct pc_data_parallel pc_data_parallel;

/* One network on several devices, PyTorch's DataParallel: replicas[0] is the one that is trained (its optimiser,
 * its files); the others are networks of the same kind, each on a device of its own, which in front of every
 * forward pass get its layers' modes, and its weights and buffers as far as they have changed, and have the parameters
 * frozen that it has. Several forward passes may come in front of a backward pass, as on one device, unless the
 * program has a pointer to a weight (pc_data, pc_device_pointer; pc_map and pc_read leave none): it may write there any
 * time, so that weight is copied each time, and the backward pass of an earlier forward pass that needs it fails. The
 * modules are the caller's and live as long. Where one can choose, a process a device (pc_ddp) is faster: weights do
 * not travel, and steps are recorded. The caller owns it. NULL: PC_ERR_ARGUMENT where replicas are not of one kind
 * (their state dicts' names and shapes), or there are none; PC_ERR_MEMORY. */
PC_API PC_MUST_USE pc_data_parallel *pc_data_parallel_new(pc_module *const *replicas, int count);
PC_API void pc_data_parallel_free(pc_data_parallel *parallel);

/* (d) What replicas[0] would make of x, which is on its device: x is cut along dimension 0 into as many pieces as there are
 * replicas (of equal size, the last one smaller, fewer where x has too few), each runs through one of them, and what comes
 * out is put together on the first device. The devices work at the same time. On the way back gradients are added up in
 * the parameters of replicas[0]. Normalisations of batches see a piece each; running statistics are those of the first. */
PC_API PC_MUST_USE pc_tensor *pc_data_parallel_forward(pc_data_parallel *parallel, pc_tensor *x);

PC_END
#endif
