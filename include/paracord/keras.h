/* keras.h: networks in Keras's .h5 files (Keras 2 and 3), both ways.
 *
 *     pc_keras_options options = {.height = 64, .width = 64, .channels = 3, .head = PC_KERAS_SIGMOID, .optimizer =
 * adam}; if (pc_keras_save("model.h5", net, options) != PC_OK) return pc_report(stderr); pc_module *again =
 * pc_keras_load("model.h5", NULL);
 *
 * Sequential networks of Conv2d, Linear, max- and average-pooling, Flatten, Dropout and activations. Keras's pictures
 * are height, width, channels and ours channels, height, width: weights are put in the other's order on the way, so
 * that both give the same answers. Keras's final sigmoid or softmax is not part of our module, whose losses take
 * logits; it is the file's `head`. Any thread; files are written whole or not at all.
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
     * steps from any .h5, its own included, and cannot fit() such a model before it is compiled again. */
    bool optimizer_state;
    const char *const *class_names; /* Keras ignores them; below PC_CLASS_NAME_MAX (train.h) bytes each */
    int class_count;
} pc_keras_options;

/* PC_ERR_UNSUPPORTED names what Keras has no layer for; PC_ERR_FILE; PC_ERR_UNSUPPORTED too in a build without HDF5. */
PC_API PC_MUST_USE pc_status pc_keras_save(const char *path, const pc_module *net, pc_keras_options options);

/* What else is in a file. Sizes are 0 when the file leaves them open. */
typedef struct pc_keras_info {
    int height, width, channels;
    pc_keras_head head;
    double rescale; /* raw pixels are to be multiplied by it (a Rescaling layer in front); 0: there is none */
    char optimizer[64], loss[64]; /* Keras's names, or "" */
    double lr;                    /* NaN when the file has none */
} pc_keras_info;

/* The network of a file, in evaluation mode on the CPU; the caller owns it. info may be NULL. PC_ERR_FILE (not to be
 * opened), PC_ERR_FORMAT (no HDF5, truncated, contradictory), PC_ERR_UNSUPPORTED (names the layer or option). */
PC_API PC_MUST_USE pc_module *pc_keras_load(const char *path, pc_keras_info *info);

/* Fill an optimiser over the network of the same file with the state that was saved: moments, steps, learning rate.
 * PC_ERR_NOT_FOUND when the file has none, PC_ERR_STATE when it is another optimiser's or another network's. */
PC_API PC_MUST_USE pc_status pc_keras_load_optimizer(const char *path, pc_optimizer *optimizer);

PC_END
#endif
