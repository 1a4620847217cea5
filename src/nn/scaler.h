/* scaler.h: the loss scaler's inside, for the training loop and checkpoints. */
#ifndef PC__SCALER_H
#define PC__SCALER_H

#include "nn/optimizer.h"
#include "ops/scale.h"

#include <paracord/amp.h>

struct pc_scaler {
    pc__scale_attributes rules;
    pc_tensor *numbers;      /* float32 [PC__SCALER_NUMBERS] */
    pc_optimizer **unscaled; /* since the last update */
    int unscaled_count, unscaled_room;
};

#endif
