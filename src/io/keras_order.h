/* keras_order.h: weights between Keras's order and ours. */
#ifndef PC__KERAS_ORDER_H
#define PC__KERAS_ORDER_H

#include "io/keras_module.h"

/* Copy kernel and bias of a layer into the module's weight and bias (`in`), or back. conv: (kh, kw, in, out) and
 * [out, in, kh, kw]; dense: (in, out) and [out, in], where the inputs are a flattened picture of before[] = height,
 * width, channels (height 0: they are not) and run (h, w, c) in Keras and (c, h, w) here. NULL modules fail. */
pc_status pc__order_conv(pc_module *module, const pc__keras_layer *layer, bool in);
pc_status pc__order_dense(pc_module *module, const pc__keras_layer *layer, const int64_t before[3], bool in);

/* The same for one array: `own` is ours, `keras` is theirs. */
void pc__order_conv_array(float *own, float *keras, const int64_t shape[4], bool in);
void pc__order_dense_array(float *own, float *keras, const int64_t shape[2], const int64_t before[3], bool in);

/* That of these which the weight's rank means, where `turn` says that our layer has an order of its own; else a copy.
 */
void pc__order_array(float *own, float *keras, const pc__keras_weight *weight, const int64_t before[3], bool turn,
                     bool in);

/* What SGD keeps of all weights, from Keras's to ours (`in`), or back. Keras adds v = momentum v - rate gradient to a
 * weight; we keep b = momentum b + gradient and add -rate b: v = -rate b. `who` begins the message where no rate above
 * 0 says how the two go together. Others' state stays as it is. */
pc_status pc__order_momentum(pc__keras_model *model, const char *who, bool in);

/* All elements of t, of any dtype, as floats. */
pc_status pc__read_floats(pc_tensor *t, float *values);

#endif
