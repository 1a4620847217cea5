/* resampled.h: pictures of another size, for the ops that are made of it. */
#ifndef PC__OP_RESAMPLED_H
#define PC__OP_RESAMPLED_H

#include "ops/resample.h"
#include "tensor/tensor.h"

/* x [n, c, h, w], floating and with places where there are places of the result, by both axes. */
pc_tensor *pc__resampled(pc_tensor *x, const pc__resample_attributes *attributes);

#endif
