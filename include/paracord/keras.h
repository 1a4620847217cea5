/* keras.h: networks in Keras's files: .h5 (Keras 2 and 3) both ways, .keras to read.
 *
 *     pc_keras_options options = {
 *         .height = 64, .width = 64, .channels = 3, .head = PC_KERAS_SIGMOID, .optimizer = adam};
 *     if (pc_keras_save("model.h5", net, options) != PC_OK)
 *         return pc_report(stderr);
 *     pc_module *again = pc_keras_load("model.h5", NULL);
 *
 * Chains and graphs of the usual layers: docs/keras.md lists them. What nn.h has no layer for is put together from ops;
 * such a network runs on every device, has gradients, and is written back as it came. Keras's pictures are height,
 * width, channels and ours channels, height, width: weights are put in the other's order on the way, so that both give
 * the same answers. Keras's final sigmoid or softmax is not part of our module, whose losses take logits; it is the
 * file's `head`. Any thread; files are written whole or not at all.
 *
 * A file is read by a child process without rights, made by fork(), which ends before the call returns: a damaged file
 * can harm nobody (docs/keras.md). It gets none of the program's signal handlers, files or threads; a program's SIGCHLD
 * handler sees it end. A path may be /dev/stdin or /dev/fd/N, a pipe too.
 */
#ifndef PARACORD_KERAS_H
#define PARACORD_KERAS_H

#include <paracord/nn.h>

PC_BEGIN

typedef enum pc_keras_head { PC_KERAS_LOGITS, PC_KERAS_SIGMOID, PC_KERAS_SOFTMAX } pc_keras_head;

typedef struct pc_keras_options {
    int reserved_;
    int height, width, channels;   /* of the pictures that the network takes */
    pc_keras_head head;            /* what Keras is to apply at the end; also decides the loss it is compiled with */
    const pc_optimizer *optimizer; /* its settings go along: Keras opens the model compiled. NULL: not compiled */
    /* The optimiser's state goes along too. Keras 3 (seen with 3.15) restores only the learning rate and the count of
     * steps from any .h5, its own included, and cannot fit() such a model before it is compiled again. SGD's momentum is
     * written as Keras keeps it, times the learning rate: PC_ERR_UNSUPPORTED where that is 0. */
    bool optimizer_state;
    const char *const *class_names; /* Keras ignores them; below PC_CLASS_NAME_MAX (classifier.h) bytes each */
    int class_count;
} pc_keras_options;

/* A .h5 file. The network is a Sequential of nn.h's layers, or one that was loaded. A layer whose parameters are all frozen
 * (pc_module_freeze) is written with trainable=False, and without state. PC_ERR_UNSUPPORTED names what Keras
 * has no layer for, and a path that ends in .keras; PC_ERR_FILE; PC_ERR_UNSUPPORTED too in a build without HDF5. */
PC_API PC_MUST_USE pc_status pc_keras_save(const char *path, const pc_module *net, pc_keras_options options);

/* What else is in a file. Sizes are 0 when the file leaves them open. */
typedef struct pc_keras_info {
    int height, width, channels;
    pc_keras_head head;
    /* Raw pixels are to be multiplied by it: a Rescaling layer in front, which is no part of the module. 1: the
     * module's own first layers (Rescaling, Normalization) prepare them. 0: the file is silent. */
    double rescale;
    char optimizer[64], loss[64]; /* Keras's names, or "" */
    double lr;                    /* NaN when the file has none */
} pc_keras_info;

/* The network of a file, in evaluation mode on the CPU; the caller owns it. Layers of trainable=False are frozen
 * (pc_module_freeze). Training mode is an error of the forward
 * pass where the network has batch normalisation that is not frozen, or noise layers. info may be NULL. PC_ERR_FILE
 * (not to be opened), PC_ERR_FORMAT (no HDF5, truncated, contradictory), PC_ERR_UNSUPPORTED (names the layer or
 * option). */
PC_API PC_MUST_USE pc_module *pc_keras_load(const char *path, pc_keras_info *info);

/* Fill an optimiser over the network of the same file with the state that was saved: moments, steps, learning rate.
 * PC_ERR_NOT_FOUND when the file has none, PC_ERR_STATE when it is another optimiser's or another network's. Momentum of
 * SGD, which Keras keeps times the learning rate, is put in our form, to rounding; PC_ERR_UNSUPPORTED where the file has no
 * rate above 0. */
PC_API PC_MUST_USE pc_status pc_keras_load_optimizer(const char *path, pc_optimizer *optimizer);

PC_END
#endif
