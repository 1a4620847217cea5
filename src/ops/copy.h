/* copy.h: attributes of the copying ops. */
#ifndef PC__OP_COPY_H
#define PC__OP_COPY_H

#include "tensor/tensor.h"

typedef enum pc__order { PC__ORDER_KEEP, PC__ORDER_C, PC__ORDER_CHANNELS_LAST } pc__order;

typedef struct pc__cast_attributes {
    pc_dtype dtype;
    pc__order order; /* of the result's memory */
} pc__cast_attributes;

typedef struct pc__fill_attributes {
    double value; /* fill: every element; saxpy: the factor */
} pc__fill_attributes;

#endif
