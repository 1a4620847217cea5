/* scorer.h: adds up batches whose results somebody looks at, without making the host stand still. On a device that
 * works later, a batch's logits, labels and loss start their way to the host when it is added, and are added up when
 * they are there, in the order of the batches: the sums have the bits that adding at once gives. Only when PC__AHEAD
 * batches are under way does the host wait, for the oldest. On the CPU nothing is ever under way. Where nobody looks at
 * each, tally.h is lighter.
 *
 *     pc__scorer scorer = {.score = &sums};
 *     ... pc__scorer_add(&scorer, &batch, logits, loss) ...
 *     pc__scorer_settle(&scorer);                               now the sums are whole
 *     pc__scorer_close(&scorer);
 */
#ifndef PC__SCORER_H
#define PC__SCORER_H

#include "train/tally.h"

enum { PC__AHEAD = 16 };

/* A batch under way: copies on the host, and the mark behind them. */
typedef struct pc__scored {
    pc_batch seen; /* without x */
    pc_tensor *logits, *loss;
    pc_event *arrived;
} pc__scored;

typedef struct pc__scorer {
    pc__score *score; /* where batches are added to */
    pc__batch_fn each;
    void *context;
    pc__scored ahead[PC__AHEAD];
    int first, count;
} pc__scorer;

/* PC_ERR_INTERRUPTED, without an error recorded, when `each` returned false for this batch or one before it. */
pc_status pc__scorer_add(pc__scorer *scorer, const pc_batch *batch, pc_tensor *logits, pc_tensor *loss);

/* Wait for all that was added. */
pc_status pc__scorer_settle(pc__scorer *scorer);

/* What is under way is dropped. */
void pc__scorer_close(pc__scorer *scorer);

#endif
