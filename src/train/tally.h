/* tally.h: adds up batches where their results are, on the device, so that the host never stands still for them: a
 * small kernel behind each step, which a recording of the step holds too. The sums come to the host every few batches,
 * behind the work; they have the bits that adding on the host gives. Their way takes the device as long as a small
 * network's step, so the batches between are as many as it does in two to eight milliseconds, within limits. Only when
 * four times as many are under way does the host wait: the program runs no further ahead of the device than that.
 *
 *     pc__tally tally = {.score = &sums};
 *     pc__tally_begin(&tally, device);                              goes on from what *score has
 *     ... pc__tally_add(&tally, logits, y, loss), pc__tally_passed(&tally, n) ...
 *     pc__tally_settle(&tally);                                     now *score is whole
 *     pc__tally_close(&tally);
 *
 * In a group the sums are those of all ranks, added up on the device. All ranks make the same calls; each takes its sums behind
 * the same batches, so what they decide by them, and by the wishes that come along, is the same. Ranks that have parts of one
 * network have the same sums, and add up wishes alone. */
#ifndef PC__TALLY_H
#define PC__TALLY_H

#include "train/score.h"

#include <paracord/group.h>
#include <paracord/stream.h>

enum { PC__MARKS = 3, PC__MARK_FEWEST = 4, PC__MARK_MOST = 64 }; /* at once; batches to a mark */
enum { PC__TALLY_SUMS = 3, PC__TALLY_SHARED = 6 };               /* numbers of a rank's sums, and of `shared` */

/* What a rank may ask of all: it is granted in all of them, behind the same batch. */
typedef enum pc__wish { PC__WISH_STOP, PC__WISH_SAVE, PC__WISHES } pc__wish;

/* The sums as they were behind some batch, on their way to the host. */
typedef struct pc__mark {
    pc_tensor *sums; /* pinned */
    pc_event *arrived;
    int64_t seen;
} pc__mark;

typedef struct pc__tally {
    pc__score *score; /* as of the last batches whose sums have arrived */
    pc_tensor *sums;  /* float64 [3] on the device: losses, right answers, samples that are ignored */
    bool immediate;   /* it works at once */
    int64_t seen;     /* pictures passed */
    int unmarked;     /* batches since the last mark */
    int every;        /* batches to a mark */
    int64_t taken;    /* when the last one was, pc__now(); 0: none of this pass yet */
    pc__mark marks[PC__MARKS];
    int first, count;
    pc_group *group;   /* of ranks with other batches; NULL: it is alone */
    pc_group *network; /* of ranks with other parts of the network; NULL: it is whole */
    pc_tensor *shared; /* of these: the sums of all ranks, their wishes, the batches to a mark */
    int wanted;        /* of the first of all ranks: the batches to a mark from then on */
    bool wishes[PC__WISHES], granted[PC__WISHES];
} pc__tally;

/* It goes on with other ranks. */
static inline bool pc__tally_together(const pc__tally *tally)
{
    return tally->group || tally->network;
}

/* May be called again, for other sums. */
pc_status pc__tally_begin(pc__tally *tally, pc_device device);

/* Queue the adding: floating logits [n, width], y and loss as pc__batch_loss has them. */
pc_status pc__tally_add(pc__tally *tally, pc_tensor *logits, pc_tensor *y, pc_tensor *loss);

/* Whether the wish is granted that this rank has or has not; alone it always is. */
bool pc__tally_grants(pc__tally *tally, pc__wish wish, bool mine);

/* tally_ranks.c: queue the adding up over ranks, into `shared`; and what is in its numbers once they are here. */
pc_status pc__tally_share(pc__tally *tally);
void pc__tally_hear(pc__tally *tally, const double *numbers);

/* The adding of n pictures was queued, in all ranks together. */
pc_status pc__tally_passed(pc__tally *tally, int64_t n);

/* Wait for all that was passed. */
pc_status pc__tally_settle(pc__tally *tally);

/* What is under way is dropped. */
void pc__tally_close(pc__tally *tally);

#endif
