/* keras_function.h: modules for Keras's layers that our own layers (nn.h) have no match for. Each keeps its layer's
 * description, and its weights in Keras's order, by Keras's names; what optimisers leave alone is a buffer. Put
 * together from ops, so they have gradients and run on every device. */
#ifndef PC__KERAS_FUNCTION_H
#define PC__KERAS_FUNCTION_H

#include "io/keras_shape.h"
#include "nn/module.h"

/* A module of the layer's kind with copies of its weights' values. NULL and the error. */
pc_module *pc__keras_function_new(const pc__keras_layer *layer);

/* The description in such a module (weights without values), or NULL for other modules. */
const pc__keras_layer *pc__keras_function_layer(const pc_module *module);

/* For layers that join several inputs; pc__join_fn. */
pc_tensor *pc__keras_function_join(pc_module *module, pc_tensor *const *in, int count);

/* ---- keras_function_*.c: what a kind does, pictures as [n, h, w, c]. Inside a scope. */
typedef pc_tensor *(*pc__keras_apply)(const pc_module *module, const pc__keras_layer *layer, pc_tensor *const *in,
                                      int count);
#define PC__KERAS_APPLY(name)                                                                                          \
    pc_tensor *name(const pc_module *module, const pc__keras_layer *layer, pc_tensor *const *in, int count)
PC__KERAS_APPLY(pc__keras_apply_conv2d);
PC__KERAS_APPLY(pc__keras_apply_depthwise);
PC__KERAS_APPLY(pc__keras_apply_separable);
PC__KERAS_APPLY(pc__keras_apply_dense);
PC__KERAS_APPLY(pc__keras_apply_global_max);
PC__KERAS_APPLY(pc__keras_apply_global_mean);
PC__KERAS_APPLY(pc__keras_apply_padding);
PC__KERAS_APPLY(pc__keras_apply_cropping);
PC__KERAS_APPLY(pc__keras_apply_up_sampling);
PC__KERAS_APPLY(pc__keras_apply_flatten);
PC__KERAS_APPLY(pc__keras_apply_reshape);
PC__KERAS_APPLY(pc__keras_apply_permute);
PC__KERAS_APPLY(pc__keras_apply_spatial_dropout);
PC__KERAS_APPLY(pc__keras_apply_noise);
PC__KERAS_APPLY(pc__keras_apply_activation);
PC__KERAS_APPLY(pc__keras_apply_prelu);
PC__KERAS_APPLY(pc__keras_apply_rescaling);
PC__KERAS_APPLY(pc__keras_apply_normalization);
PC__KERAS_APPLY(pc__keras_apply_batch_norm);
PC__KERAS_APPLY(pc__keras_apply_layer_norm);
PC__KERAS_APPLY(pc__keras_apply_join);
PC__KERAS_APPLY(pc__keras_apply_concatenate);
PC__KERAS_APPLY(pc__keras_apply_channels);
PC__KERAS_APPLY(pc__keras_apply_stack);

/* The activation that is a field of the layer. */
pc_tensor *pc__keras_activate(const pc__keras_layer *layer, pc_tensor *x);

/* x [n, h, w, c] with zeros around: top, bottom, left, right. */
pc_tensor *pc__keras_frame(pc_tensor *x, const int64_t border[4]);

#endif
