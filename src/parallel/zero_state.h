/* zero_state.h: for checkpoints: the parameters that a pc_zero shares out, and the pieces that this rank has of them. */
#ifndef PC__ZERO_STATE_H
#define PC__ZERO_STATE_H

#include <paracord/data_parallel.h>

/* What a rank has of a parameter: number i of its optimiser's parameters. */
typedef struct pc__piece {
    pc_tensor *weights,
        *gradient; /* views: of where the rank's weights of the bucket lie, of its part of the gradients */
    int bucket, parameter;
    int64_t begin;             /* its first element, in the order of the parameter's memory */
    const struct pc__cut *cut; /* which part of a whole one the parameter is (nn/module.h); NULL: it is whole */
} pc__piece;

int pc__zero_parameters(const pc_zero *zero);
pc_tensor *pc__zero_parameter(const pc_zero *zero, int i, const char **name);
int pc__zero_pieces(const pc_zero *zero, const pc__piece **pieces);

/* The optimiser is made for this rank's part. */
bool pc__zero_has(const pc_zero *zero, const pc_optimizer *optimizer);

int pc__zero_stage(const pc_zero *zero);
const pc_group *pc__zero_group(const pc_zero *zero);
const pc_module *pc__zero_module(const pc_zero *zero);

/* pc_zero_step with a loss scaler's numbers, as pc__optimizer_step has them: the same in all ranks. */
pc_status pc__zero_step(pc_zero *zero, pc_optimizer *optimizer, pc_tensor *numbers);

/* Of parameter number i a tensor on its device, of its shape, while the call lasts: what the ranks have of it, or what is to be
 * filled. */
typedef pc_status (*pc__zero_each)(void *context, int parameter, pc_tensor *whole);

/* What all ranks have, whole in each of them, a bucket at a time: `pieces` are this rank's, a tensor for each of
 * pc__zero_pieces (weights, or what an optimiser keeps for them). All ranks call it, outside of recordings. */
pc_status pc__zero_gather_pieces(const pc_zero *zero, pc_tensor *const *pieces, pc__zero_each each, void *context);

/* The other way, in this rank alone: pieces become what they are of what `each` has filled. Of weights: with what all ranks do
 * alike, all have the same again. */
pc_status pc__zero_cut_pieces(const pc_zero *zero, pc_tensor *const *pieces, pc__zero_each each, void *context);
pc_status pc__zero_set_weights(pc_zero *zero, pc__zero_each each, void *context);

/* Weights of pieces have changed: all ranks get them, at once or, in stage 3, when they need them. All ranks call it. */
pc_status pc__zero_spread(pc_zero *zero);

#endif
