/* mix.h: what regularises the loss of training: label smoothing; mixup, where each picture of a batch is blended with the
 * one before it; and CutMix, where a part of it is that one's. What is measured knows nothing of them. */
#ifndef PC__MIX_H
#define PC__MIX_H

#include "train/judge.h"

/* Mixup and CutMix; both NULL: batches stay as they are. */
enum { PC__MIXUP, PC__CUTMIX, PC__MIXES };

/* All zero: nothing. */
typedef struct pc__mix {
    double smoothing;                /* of the target so much is for all classes alike */
    pc_tensor *quantiles[PC__MIXES]; /* of the lesser share, on the device; NULL: there is none of these */
    pc_tensor *halves;               /* [draws, bits] 1/4, 1/8, ...: what random bits are worth */
} pc__mix;

/* A batch as the network gets it. */
typedef struct pc__blended {
    pc_batch batch;
    pc_tensor *partner; /* the labels of the pictures that were blended in; NULL: none were */
    pc_tensor *share;   /* theirs: float32, a scalar */
} pc__blended;

/* PC_ERR_ARGUMENT for numbers that make no sense, named as options of `who`. */
pc_status pc__mix_check(const char *who, double smoothing, const double alpha[PC__MIXES]);

/* Shares of pairs are l and 1 - l with l from the Beta distribution of (alpha, alpha); alpha 0: there is none of these; of
 * both each has half of the batches. The draws are the thread's generator's, one step of it a batch, in recordings too. */
pc_status pc__mix_open(pc__mix *mix, double smoothing, const double alpha[PC__MIXES], pc_device device);
void pc__mix_close(pc__mix *mix);

/* In the scope that is open. CutMix takes batches of pictures: PC_ERR_SHAPE. */
pc_status pc__mix_batch(const pc__mix *mix, const pc_batch *batch, pc__blended *blended);

/* The mean loss: (1 - share) * that by the batch's own labels + share * that by the partners'. */
pc_tensor *pc__mix_loss(const pc__mix *mix, const pc__judge *judge, pc_tensor *outputs, const pc__blended *blended,
                        pc_tensor *weights);

#endif
