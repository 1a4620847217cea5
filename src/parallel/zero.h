/* zero.h: the inside of pc_zero. */
#ifndef PC__ZERO_H
#define PC__ZERO_H

#include "parallel/reducer.h"
#include "parallel/zero_state.h"

/* Weights as parameters have them, and in the 16 bits of an autocast scope. */
enum { PC__WHOLE_OWN, PC__WHOLE_HALF, PC__WHOLE_KINDS };

/* The weights of a bucket. */
typedef struct pc__weights {
    pc_tensor *own;                          /* this rank's part; below stage 3 a view of all of them */
    pc_tensor *whole[PC__WHOLE_KINDS];       /* as parameters and twins have them; NULL: they are elsewhere */
    uint64_t recording[PC__WHOLE_KINDS];     /* in which that was gathered; 0: none */
    uint64_t touched[PC__WHOLE_KINDS];       /* when a call used it last */
    bool ahead[PC__WHOLE_KINDS];             /* it was gathered ahead, and no call has used it yet */
    pc__storage *elsewhere[PC__WHOLE_KINDS]; /* what parameters and twins have else; stage 3 */
} pc__weights;

/* A parameter in 16 bits, for the calls of an autocast scope. */
typedef struct pc__twin {
    pc_tensor *tensor;
    int parameter;
} pc__twin;

struct pc_zero {
    pc__reducer reducer; /* first */
    int stage, ahead;    /* of buckets of weights: so many are gathered ahead */
    bool offload;        /* this rank's own lies in pinned host memory, where the device need not have it anyway */
    pc_module *part;
    pc__weights *weights; /* by bucket */
    pc_tensor **own;      /* by bucket: the reduced gradients of this rank's part */
    pc__piece *pieces;
    int piece_count, piece_room;
    pc_tensor **others; /* by piece: lacking.h, for the optimiser */
    pc_group *network;  /* ranks among which the network is cut up (parallel/cut.h); NULL: it is whole */

    /* zero_use.c, zero_whole.c: stage 3 */
    pc__twin *twin;
    int twin_count, twin_room;
    pc_dtype half;       /* of twins */
    uint64_t clock;      /* counts calls */
    unsigned version;    /* of the weights, for the tape's check */
    uint64_t written;    /* how often all that this rank has was, when weights were looked at last */
    bool busy;           /* what is gathered is not looked at */
    bool gathered;       /* parameters have all their weights, until the program says otherwise */
    uint64_t gatherings; /* times that they had */
    pc_event *event;
    pc_stream *bus; /* on which parts come from host memory, where they come ahead; NULL: on the current one */
};

/* zero_part.c: what this rank has of the parameters, as a module of pieces. PC_ERR_ARGUMENT, before anything is moved, where one
 * of the ranks would have nothing. */
pc_status pc__zero_check(const pc_zero *zero);
pc_status pc__zero_cut(pc_zero *zero);

/* zero_weights.c. Parameters lie in memory that the ranks have parts of: below stage 3 all of it is there. In stage 3, where
 * that fails in one rank it fails in all of them, with as many buckets shared out. */
pc_status pc__zero_lay(pc_zero *zero);

/* Parameters of buckets that were shared out have all of their weights again, and keep them. All ranks call it. */
pc_status pc__zero_put_back(pc_zero *zero);
void pc__zero_weights_free(pc_zero *zero);

/* zero_whole.c. Later work of the current stream of bucket b's device comes behind the group's by now, or the group's behind it. */
pc_status pc__zero_meet(pc_zero *zero, int b, bool group_waits);

/* Stage 3: what was gathered of bucket b goes. */
void pc__zero_let_go(pc_zero *zero, int b);

/* Stage 3: parameters have all of their weights; this rank's part of those counts, and the rest goes. */
pc_status pc__zero_gather(pc_zero *zero);
pc_status pc__zero_release(pc_zero *zero);

/* Where parameters have all of their weights, this rank's part is what they are now. */
pc_status pc__zero_take_parts(pc_zero *zero);

#endif
