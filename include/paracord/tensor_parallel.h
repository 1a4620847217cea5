/* tensor_parallel.h: layers whose weights are cut up among ranks (Shoeybi and others 2019, Megatron-LM).
 *
 *     pc_module *up = pc_column_linear(512, 2048, group, .activation = PC_ACTIVATION_GELU_TANH);
 *     pc_module *down = pc_row_linear(2048, 512, group);
 *     pc_tensor *y = pc_forward(down, pc_forward(up, x));    // one all-reduce on the way there, and one on the way back
 *
 * Every rank of the group has the same batch, and a part of each weight. A cut dimension is shared out equally: part
 * number `rank` is this rank's. Weights are drawn as those of the layer that is not cut, which takes as many draws of the
 * thread's generator: ranks that have the same seed have one network, whatever their number. What is not cut (the bias of
 * a row linear, all other layers) is the same in all ranks, and so are its gradients, to the bit: they are computed of
 * the same numbers in the same order. Ranks draw dropouts of tensors that are not cut alike, where they have the same seed
 * and have made the same draws; those of tensors that are cut would be alike in all parts, too, unless the program gives
 * the thread another seed for them (pc_generator_set), as a GPT does for its heads.
 *
 * The group is not owned: it lives longer than the layers, what was computed through it and was not differentiated yet, and
 * steps that were recorded. Errors that other ranks cause are the group's (group.h). With data parallel training a rank is
 * in two groups (pc_group_split): this one, and one of the ranks that have the same parts, which is pc_ddp's.
 */
#ifndef PARACORD_TENSOR_PARALLEL_H
#define PARACORD_TENSOR_PARALLEL_H

#include <paracord/group.h>
#include <paracord/loss.h>
#include <paracord/nn.h>

PC_BEGIN

/* --- collectives with gradients. What they give is new, x stays. All ranks of the group make the same calls, and go on to
 * the same gradients: what they compute in front of a split and behind a reduction is the same in all of them. x is
 * of one shape and dtype in all ranks. A group of one rank gives x. --- */

/* (d) x itself; its gradient is the sum of all ranks'. In front of what each rank does in another way. */
PC_API PC_MUST_USE pc_tensor *pc_copy_to_group(pc_tensor *x, pc_group *group);

/* (d) The sum of all ranks' x, of any shape; the gradient goes to each of them as it is, for it is the same in all. */
PC_API PC_MUST_USE pc_tensor *pc_reduce_from_group(pc_tensor *x, pc_group *group);

/* (d) All ranks' x one behind the other along dim: [n, m] -> [n, size m] along dimension 1. The gradient is this rank's part
 * of that of the whole, which is the same in all ranks where they go on alike. Where each goes on in its own way,
 * pc_copy_to_group behind it adds theirs up first. */
PC_API PC_MUST_USE pc_tensor *pc_gather_from_group(pc_tensor *x, pc_group *group, int dim);

/* (d) This rank's part along dim: [n, m] -> [n, m / size] along dimension 1; PC_ERR_SHAPE where the ranks cannot share it
 * equally. The gradient is that of all parts. */
PC_API PC_MUST_USE pc_tensor *pc_split_to_group(pc_tensor *x, pc_group *group, int dim);

/* --- layers: modules like others. Sizes that the ranks of the group cannot share equally are PC_ERR_ARGUMENT. --- */

typedef struct pc_column_linear_options {
    int reserved_;
    bool no_bias;
    pc_activation_kind activation;
    pc_init_kind init;
    bool gather_output; /* give all outputs, not this rank's part of them */
    int blocks;         /* outputs are so many layers' one behind the other, each of which is cut up by itself, as
                         * queries, keys and values of attention: 3; 0 means 1 */
} pc_column_linear_options;

/* pc_linear whose outputs are cut up: [..., in], the same in all ranks -> [..., out / size]; parameters weight [out / size,
 * in], bias [out / size]. */
PC_API PC_MUST_USE pc_module *pc_column_linear_new(int64_t in, int64_t out, pc_group *group,
                                                   pc_column_linear_options options);
#define pc_column_linear(in, out, ...) PC_COLUMN_LINEAR_(in, out, __VA_ARGS__, )
#define PC_COLUMN_LINEAR_(in, out, group, ...)                                                                         \
    pc_column_linear_new((in), (out), (group), PC_OPTIONS(pc_column_linear_options, __VA_ARGS__))

typedef struct pc_row_linear_options {
    int reserved_;
    bool no_bias;
    pc_activation_kind activation;
    pc_init_kind init;
    bool whole_input; /* x has all inputs, the same in all ranks, and not this rank's part of them */
} pc_row_linear_options;

/* pc_linear whose inputs are cut up, as pc_column_linear gives them: [..., in / size] -> [..., out], the same in all ranks;
 * parameters weight [out, in / size], and bias [out], which is whole and added once, to the sum of all ranks' products. */
PC_API PC_MUST_USE pc_module *pc_row_linear_new(int64_t in, int64_t out, pc_group *group,
                                                pc_row_linear_options options);
#define pc_row_linear(in, out, ...) PC_ROW_LINEAR_(in, out, __VA_ARGS__, )
#define PC_ROW_LINEAR_(in, out, group, ...)                                                                            \
    pc_row_linear_new((in), (out), (group), PC_OPTIONS(pc_row_linear_options, __VA_ARGS__))

/* pc_embedding whose rows are cut up: int64 or int32 of any shape, the same in all ranks -> [its shape, columns], the same
 * in all ranks; parameter weight [ceil(rows / size), columns]. Where rows are no multiple of size the last ranks have rows
 * of zeros that nothing reads. */
PC_API PC_MUST_USE pc_module *pc_parallel_embedding_new(int64_t rows, int64_t columns, pc_group *group,
                                                        pc_embedding_options options);
#define pc_parallel_embedding(rows, columns, ...) PC_PARALLEL_EMBEDDING_(rows, columns, __VA_ARGS__, )
#define PC_PARALLEL_EMBEDDING_(rows, columns, group, ...)                                                              \
    pc_parallel_embedding_new((rows), (columns), (group), PC_OPTIONS(pc_embedding_options, __VA_ARGS__))

typedef struct pc_parallel_cross_entropy_options {
    int reserved_;
    pc_reduction reduction;
    bool ignore; /* as pc_fn_cross_entropy's: else -100 is the label of rows that do not count */
    int64_t ignore_index;
    int64_t
        classes; /* of all ranks together, where the last ranks' columns go beyond them; 0: all columns are classes */
} pc_parallel_cross_entropy_options;

/* (d) pc_fn_cross_entropy by logits whose classes are cut up, and never gathered: logits [..., classes / size], this rank's,
 * labels int64 [...] of all classes, the same in all ranks -> a number, or [...] without a reduction, the same in all ranks.
 * Of each row its largest logit, the sum of exponentials and the label's logit are reduced: three numbers. 16-bit logits
 * are computed in float32; the loss has their dtype. Rows that do not count have the gradient 0, whatever their logits are;
 * where none counts the mean is NaN. A label that is neither a class nor ignored is PC_ERR_RANGE, in the
 * words of pc_gather. */
PC_API PC_MUST_USE pc_tensor *pc_fn_parallel_cross_entropy(pc_tensor *logits, pc_tensor *labels, pc_group *group,
                                                           pc_parallel_cross_entropy_options options);

/* (d) The same without options: the mean over rows, but for those of -100; logits [..., classes / size], labels int64
 * [...] -> []. */
PC_API PC_MUST_USE pc_tensor *pc_parallel_cross_entropy(pc_tensor *logits, pc_tensor *labels, pc_group *group);

/* --- whole networks. Files have those, whoever writes and reads them: pc_weights_save, which all ranks call, pc_weights_load,
 * checkpoints of pc_fit, pc_gpt_save. pc_module_state_list gives this rank's parts, and pc_module_load takes such: of tensors that
 * are whole it is PC_ERR_SHAPE. pc_keras_save knows no cut layers: join first. --- */

/* Parameters and buffers of `parallel` become this rank's parts of those of `whole`, which is the same network without cut
 * layers, on any device: names are the same. No rank waits for another. PC_ERR_NOT_FOUND and PC_ERR_SHAPE name what does not
 * fit. */
PC_API PC_MUST_USE pc_status pc_tensor_parallel_cut(pc_module *parallel, const pc_module *whole);

/* And back: those of `whole` become what all ranks' parts are together. All ranks call it, at the same time; `whole` is NULL
 * in those that do not want it. What fails in one fails in all. */
PC_API PC_MUST_USE pc_status pc_tensor_parallel_join(pc_module *parallel, pc_module *whole);

/* pc_optimizer_set_clip(optimizer, PC_CLIP_NORM, norm) where the norm is that of the whole network's gradients: what is cut
 * counts in every rank, what is not cut once. `module` is what the optimiser was made for, and lives as long. All ranks
 * call it. With pc_zero pc_optimizer_set_clip is enough: pc_zero_step takes the norm of the whole network; without, a step by the
 * norm of this rank's part is PC_ERR_STATE. Steps of a loss scaler (amp.h) see this rank's gradients alone, and are
 * PC_ERR_UNSUPPORTED: train cut networks in bfloat16, not float16. */
PC_API PC_MUST_USE pc_status pc_tensor_parallel_clip(pc_module *module, pc_optimizer *optimizer, double norm);

PC_END
#endif
