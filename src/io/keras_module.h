/* keras_module.h: between Keras's description of a model and our modules.
 *
 * Keras's pictures are height, width, channels; ours are channels, height, width. Kernels are turned, and the rows of a
 * dense layer behind a Flatten are put in the other order. The last sigmoid or softmax stays outside the module, which
 * ends in logits: losses take these. */
#ifndef PC__KERAS_MODULE_H
#define PC__KERAS_MODULE_H

#include "io/keras.h"
#include "io/keras_front.h"
#include "nn/layers.h"
#include "nn/optimizer.h"

#include <paracord/keras.h>

/* Keras's for one of ours. */
static inline pc__keras_activation pc__keras_activation_of(pc_activation_kind kind)
{
    static const pc__keras_activation theirs[] = {
        [PC_ACTIVATION_NONE] = PC__KERAS_LINEAR,     [PC_ACTIVATION_RELU] = PC__KERAS_RELU,
        [PC_ACTIVATION_SIGMOID] = PC__KERAS_SIGMOID, [PC_ACTIVATION_TANH] = PC__KERAS_TANH,
        [PC_ACTIVATION_GELU] = PC__KERAS_GELU,       [PC_ACTIVATION_GELU_TANH] = PC__KERAS_GELU_TANH,
        [PC_ACTIVATION_SILU] = PC__KERAS_SILU};
    return theirs[kind];
}

/* A module that computes what the model does up to its head, and without the layers in front that *front sums up: all
 * that prepare the picture where `whole`, else one that multiplies it. `path` is for messages. PC_ERR_UNSUPPORTED names
 * the layer that has no match. */
pc_module *pc__module_from_keras(const pc__keras_model *model, const char *path, pc_keras_head *head, bool whole,
                                 pc__keras_front *front);

/* Describe a Sequential of our layers that takes pictures of channels x height x width: layers, weights, and the
 * optimiser's settings (may be NULL), with its state when asked for. The caller fills in names. */
pc_status pc__module_to_keras(const pc_module *module, const int64_t input[3], pc_keras_head head,
                              const pc_optimizer *optimizer, bool with_state, pc__keras_model *model);

/* Give the description copies of the class names. */
pc_status pc__keras_name_classes(pc__keras_model *model, const char *const *names, int count);

#endif
