/* keras_shape.h: shapes through Keras's layers, and so the shapes of their weights. */
#ifndef PC__KERAS_SHAPE_H
#define PC__KERAS_SHAPE_H

#include "io/keras.h"

/* What flows from layer to layer, without the batch. */
typedef struct pc__keras_flow {
    int rank; /* 0: not known */
    int64_t shape[3];
} pc__keras_flow;

/* The weights that a layer must have; rank and shape, no values. */
typedef struct pc__keras_wants {
    int count;
    pc__keras_weight items[PC__KERAS_WEIGHTS_MAX];
} pc__keras_wants;

/* Take one layer: what it gives, and the weights that it needs for it. Where it cannot be, it is refused with why. */
typedef pc_status (*pc__keras_rule)(pc__keras_layer *layer, const pc__keras_flow *in, int count, pc__keras_flow *out,
                                    pc__keras_wants *wants);

/* What one node gives; the nodes before it know what they give. */
pc_status pc__keras_node_shape(pc__keras_model *model, int node, pc__keras_wants *wants);

/* All nodes, and the weights of all layers. Layers that cannot be are refused; the nodes behind them know nothing of
 * their shapes but what the file states. PC_ERR_MEMORY alone is returned. */
pc_status pc__keras_shapes(pc__keras_model *model);

/* Rows and columns of zeros that "same" puts before and behind a picture's `size`. */
typedef struct pc__same {
    int64_t before, behind;
} pc__same;
pc__same pc__keras_same(int64_t size, int64_t window, int64_t dilation, int64_t stride);

/* Keras's axis counts with the batch: the dimension of the flow, or -1. */
int pc__keras_axis(const pc__keras_layer *layer, int rank);

/* keras_rules.c: each kind's */
extern const pc__keras_rule pc__keras_rules[PC__KERAS_KIND_COUNT];

#endif
