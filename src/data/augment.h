/* augment.h: from Keras's words (a plan, drawn values) to the op's (attributes, a row of its table). */
#ifndef PC__DATA_AUGMENT_H
#define PC__DATA_AUGMENT_H

#include "ops/augment.h"

#include <paracord/augment.h>

pc__augment_plan pc__augment_plan_of(const pc_augment *plan, uint64_t seed, uint64_t epoch, int height, int width);

pc__augment_attributes pc__augment_attributes_of(const pc_augment *plan);

/* What of pc_augment_check depends on the pictures, and the check of values (augment_check.c). */
pc_status pc__augment_check_channels(const pc_augment *plan, int64_t channels);
pc_status pc__augment_check_values(const pc_augment *plan, const pc_augment_values *values, int height, int width,
                                   int channels);

/* Colours change. */
bool pc__augment_jitters(const pc_augment *plan);

#endif
