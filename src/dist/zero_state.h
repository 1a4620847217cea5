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
    const struct pc__cut *cut; /* which part of a whole one the parameter is (dist/parallel.h); NULL: it is whole */
} pc__piece;

int pc__zero_parameters(const pc_zero *zero);
pc_tensor *pc__zero_parameter(const pc_zero *zero, int i, const char **name);
int pc__zero_pieces(const pc_zero *zero, const pc__piece **pieces);

/* Weights of pieces have changed: all ranks get them, at once or, in stage 3, when they need them. All ranks call it. */
pc_status pc__zero_spread(pc_zero *zero);

#endif
