/* mix.h: what regularises the loss of training: label smoothing, and mixup: each picture of a batch is blended with the
 * one before it. What is measured knows nothing of either. */
#ifndef PC__MIX_H
#define PC__MIX_H

#include "train/judge.h"

/* All zero: neither. */
typedef struct pc__mix {
    double smoothing;     /* of the target so much is for all classes alike */
    pc_tensor *quantiles; /* of the partner's share, on the device; NULL: pictures are not blended */
    pc_tensor *halves;    /* 1/4, 1/8, ...: what its random bits are worth */
} pc__mix;

/* A batch as the network gets it. */
typedef struct pc__blended {
    pc_batch batch;
    pc_tensor *partner; /* the labels of the pictures that were blended in; NULL: none were */
    pc_tensor *share;   /* theirs, up to a half: float32, a scalar */
} pc__blended;

/* PC_ERR_ARGUMENT for numbers that make no sense, named as options of `who`. */
pc_status pc__mix_check(const char *who, double smoothing, double mixup);

/* Shares of pairs are l and 1 - l with l from the Beta distribution of (alpha, alpha); alpha 0: no pairs. The draws are
 * the thread's generator's, one a batch, in recordings too. */
pc_status pc__mix_open(pc__mix *mix, double smoothing, double alpha, pc_device device);
void pc__mix_close(pc__mix *mix);

/* In the scope that is open. */
pc_status pc__mix_batch(const pc__mix *mix, const pc_batch *batch, pc__blended *blended);

/* The mean loss: (1 - share) * that by the batch's own labels + share * that by the partners'. */
pc_tensor *pc__mix_loss(const pc__mix *mix, const pc__judge *judge, pc_tensor *outputs, const pc__blended *blended,
                        pc_tensor *weights);

#endif
