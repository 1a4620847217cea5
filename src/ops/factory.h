/* factory.h: filling tensors in place with drawn or counted numbers. */
#ifndef PC__OP_FACTORY_H
#define PC__OP_FACTORY_H

#include "tensor/tensor.h"

typedef struct pc__arange_attributes {
    double start, step;
} pc__arange_attributes;

/* Fill a floating tensor from the thread's generator: uniform in [low, high), or normal. */
pc_status pc__fill_uniform(pc_tensor *t, double low, double high);
pc_status pc__fill_normal(pc_tensor *t, double mean, double deviation);

#endif
