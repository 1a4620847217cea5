/* augment.h: from Keras's words (a plan, drawn values) to the op's (attributes, a row of its table). */
#ifndef PC__DATA_AUGMENT_H
#define PC__DATA_AUGMENT_H

#include "ops/augment.h"

#include <paracord/augment.h>

pc__augment_plan pc__augment_plan_of(const pc_augment *plan, uint64_t seed, uint64_t epoch, int height, int width);

pc__augment_attributes pc__augment_attributes_of(const pc_augment *plan);

/* The rows of n pictures, each drawn by its sample's number (augment_batch.c). */
void pc__augment_rows(const pc__augment_plan *plan, const int64_t *samples, int64_t n, pc__augment_row *rows);

#endif
