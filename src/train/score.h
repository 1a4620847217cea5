/* score.h: what a batch of logits is worth. */
#ifndef PC__SCORE_H
#define PC__SCORE_H

#include "base/base.h"

#include <paracord/loader.h>
#include <paracord/nn.h>

/* Sums over pictures, so that batches of any size add up. */
typedef struct pc__score {
    double loss; /* sum of the pictures' losses */
    int64_t correct, seen;
    int64_t ignored; /* of those seen: they have the label that counts for nothing (ops/loss.h) */
} pc__score;

/* What binary cross-entropy takes for y [n, 1]: the logits, or of two for each picture by how much the second is
 * greater: a softmax of two gives the second class what a sigmoid of that gives. */
pc_tensor *pc__one_logit(pc_tensor *logits, const pc_tensor *y);

/* The mean loss that fits the labels: y [n, 1] floating: binary cross-entropy of logits [n, 1] or [n, 2]; y [n] int64:
 * cross-entropy over those that are not ignored, 0 where all are. `weights` of the classes, or NULL: then no label is
 * ignored. */
PC__SHARED pc_tensor *pc__batch_loss(pc_tensor *logits, pc_tensor *y, pc_tensor *weights);

/* How many of y's integer labels are not ignored, a float64; in the scope that is open. */
pc_tensor *pc__labels_counted(pc_tensor *y);

/* Add a batch of n pictures: the mean loss of those that count and how many of n rows of `width` logits name the right class (with one
 * column a logit of 0, probability 0.5, names the second). y as above (`binary`: floating), on the host. */
void pc__score_add(pc__score *score, const float *logits, int64_t width, const void *y, bool binary, int64_t n,
                   double loss);

/* Of those seen the ones that count. */
static inline int64_t pc__score_counted(const pc__score *score)
{
    return score->seen - score->ignored;
}

double pc__score_loss(const pc__score *score);     /* mean; NaN for none */
double pc__score_accuracy(const pc__score *score); /* share; NaN for none */

/* The class that row i of n x width logits names; with one column 0 or 1. */
int pc__named_class(const float *row, int64_t width);

/* One pass over a loader in evaluation mode. `each`, when not NULL, sees every batch (its n, first and sample; where
 * work is done later, the batch itself may be gone by then) and may return false to stop: PC_ERR_INTERRUPTED then,
 * without an error recorded. */
typedef bool (*pc__batch_fn)(void *context, const pc_batch *batch, const float *logits, int64_t width);
pc_status pc__score_loader(pc_module *net, pc_loader *loader, pc__batch_fn each, void *context, pc__score *score);

#endif
