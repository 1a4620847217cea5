/* scale.h: what a loss scaler does on the device. Its numbers are float32 [PC__SCALER_NUMBERS]. */
#ifndef PC__OP_SCALE_H
#define PC__OP_SCALE_H

#include "ops/scale_next.h"
#include "tensor/tensor.h"

/* Divide n gradients by the scale and note what is infinite or NaN. */
pc_status pc__unscale(pc_tensor *numbers, pc_tensor **gradients, int n);

/* The next scale; nothing is found any more. */
pc_status pc__scale_update(pc_tensor *numbers, const pc__scale_attributes *attributes);

#endif
