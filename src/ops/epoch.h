/* epoch.h: pictures that stay on the device: the op `epoch` says what an epoch does with each of them, the op
 * `epoch_batch` makes one batch of it. Both write tensors that are there, so that a recording finds them. */
#ifndef PC__OP_EPOCH_H
#define PC__OP_EPOCH_H

#include "ops/augment.h"

typedef struct pc__epoch_attributes {
    pc__augment_plan plan;
    int32_t shuffle, reserved;
} pc__epoch_attributes;

/* In place, n samples:
 *   order  int64 [n]       sample numbers as they come: sorted by pc__shuffle_key, or 0 to n - 1 without shuffle
 *   keys   int64 [n]       scratch memory
 *   table  float64 [n, 17]  the row of the op augment for each, in that order */
pc_status pc__epoch(pc_tensor *order, pc_tensor *keys, pc_tensor *table, const pc__epoch_attributes *attributes);

/* `at`: the batch's first place in the order, and `place` is set behind the batch; negative: what `place` has when the
 * kernel runs, and it is raised: each launch of a recording makes the next batch. Where the rest of the order is no
 * whole batch any more such a launch does nothing. */
typedef struct pc__epoch_batch_attributes {
    pc__augment_attributes augment;
    int64_t at;
} pc__epoch_batch_attributes;

/* What a batch is made from, all on one device and contiguous. */
typedef struct pc__epoch_tensors {
    pc_tensor *pictures; /* uint8 [total, height, width, channels] */
    pc_tensor *labels;   /* [total] or [total, 1], any dtype */
    pc_tensor *order, *table;
    pc_tensor *place; /* int64 [1] */
} pc__epoch_tensors;

/* Pictures, augmented, to x: float32 [n, channels, height, width] in channels-last memory; labels to y: [n] or [n, 1]
 * of the labels' dtype. A batch said by the host that reaches beyond the order, or an order beyond the pictures:
 * PC_ERR_RANGE, from devices that work later at the next wait. */
pc_status pc__epoch_batch(const pc__epoch_tensors *from, pc_tensor *x, pc_tensor *y,
                          const pc__epoch_batch_attributes *attributes);

/* The host's order (epoch_host.c): what the CPU's kernel runs, and whoever wants to know the samples of a batch. */
PC__FOR_LEVELS void pc__epoch_order(uint64_t seed, uint64_t epoch, int64_t n, int64_t *order, uint64_t *keys);
pc__augment_drawn pc__epoch_draw(const pc__augment_plan *plan, uint64_t sample);
PC__FOR_LEVELS void pc__epoch_table(const pc__augment_plan *plan, const int64_t *order, int64_t n,
                                    pc__augment_row *table);

#endif
