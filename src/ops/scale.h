/* scale.h: what a loss scaler does on the device. Its numbers are float32 [PC__SCALER_NUMBERS]. */
#ifndef PC__OP_SCALE_H
#define PC__OP_SCALE_H

#include "tensor/tensor.h"

enum { PC__SCALER_SCALE, PC__SCALER_CLEAN, PC__SCALER_FOUND, PC__SCALER_NUMBERS };
/* the scale; steps without an infinite gradient since it last changed; 1 once one was found, until the update */

typedef struct pc__scale_attributes {
    float growth, backoff, interval;
} pc__scale_attributes;

/* Divide n gradients by the scale and note what is infinite or NaN. */
pc_status pc__unscale(pc_tensor *numbers, pc_tensor **gradients, int n);

/* counter, int64 [1], + 1 unless something was found. */
pc_status pc__count_clean(pc_tensor *counter, pc_tensor *numbers);

/* The next scale; nothing is found any more. */
pc_status pc__scale_update(pc_tensor *numbers, const pc__scale_attributes *attributes);

#endif
