/* augment.h: from Keras's words (a plan, drawn values) to the op's (attributes, a row of its table). */
#ifndef PC__DATA_AUGMENT_H
#define PC__DATA_AUGMENT_H

#include "ops/augment.h"

#include <paracord/augment.h>

/* The row for a picture of height x width pixels: the transformations multiplied, the flips put in. */
pc__augment_row pc__augment_row_of(const pc_augment_values *values, int height, int width);

pc__augment_attributes pc__augment_attributes_of(const pc_augment *plan);

/* The rows of n pictures, each drawn by its sample's number (augment_batch.c). */
typedef struct pc__augment_keys {
    uint64_t seed, epoch;
} pc__augment_keys;
void pc__augment_rows(const pc_augment *plan, const pc__augment_keys *keys, const int64_t *samples, int64_t n,
                      int height, int width, pc__augment_row *rows);

#endif
