/* keras.h: Keras whole-model .h5 files (Keras 2 and Keras 3) as a plain description, and back. Knows files, not
 * modules.
 *
 *     pc__keras_model model = {0};
 *     PC__TRY(pc__keras_read("model.h5", &model));    // layers in order, weights in Keras's own layout
 *     ...
 *     pc__keras_free(&model);
 *
 * Everything is as Keras means it: channels last (a picture is height, width, channels), a Flatten of a picture runs
 * over (h, w, c) with c fastest, convolution kernels are (kh, kw, in, out), dense kernels (in, out). Padding "same"
 * gives ceil(size / stride) outputs and puts the odd row or column of padding at the END (bottom, right); an average
 * pool does not count padding. All buffers come from pc__alloc and belong to the model.
 *
 * HDF5 keeps global state: one lock is held around each call, so these may be called from several threads, but not
 * while other code of the program is inside HDF5. Without HDF5 or cJSON in the build reading and writing fail with
 * PC_ERR_UNSUPPORTED. Damaged files give errors; HDF5 itself may lose a few blocks over one and say so when the process
 * ends ("infinite loop closing library").
 */
#ifndef PC__KERAS_H
#define PC__KERAS_H

#include "base/base.h"

#define PC__KERAS_NAME_MAX 128 /* bytes of a layer's or model's name, with its end */
#define PC__KERAS_RANK_MAX 4

typedef enum pc__keras_kind {
    PC__KERAS_CONV2D,
    PC__KERAS_DENSE,
    PC__KERAS_MAX_POOL2D,
    PC__KERAS_AVG_POOL2D,
    PC__KERAS_FLATTEN,
    PC__KERAS_DROPOUT,
    PC__KERAS_ACTIVATION, /* also what the layers ReLU and Softmax are read as */
    PC__KERAS_RESCALING,  /* x * scale + offset */
    PC__KERAS_KIND_COUNT
} pc__keras_kind;

/* name in the file */
#define PC__KERAS_ACTIVATIONS(X)                                                                                       \
    X(PC__KERAS_LINEAR, "linear")                                                                                      \
    X(PC__KERAS_RELU, "relu")                                                                                          \
    X(PC__KERAS_SIGMOID, "sigmoid")                                                                                    \
    X(PC__KERAS_TANH, "tanh")                                                                                          \
    X(PC__KERAS_SOFTMAX, "softmax")

typedef enum pc__keras_activation {
#define PC__KERAS_ENUM(code, name) code,
    PC__KERAS_ACTIVATIONS(PC__KERAS_ENUM)
#undef PC__KERAS_ENUM
        PC__KERAS_ACTIVATION_COUNT
} pc__keras_activation;

/* One weight: row-major float32. slot: what the optimizer keeps for it, of the same shape, or NULL: Adam's first and
 * second moment, or SGD's momentum in slot[0]. */
typedef struct pc__keras_weight {
    int rank; /* 0: the layer has no such weight */
    int64_t shape[PC__KERAS_RANK_MAX];
    float *value;
    float *slot[2];
} pc__keras_weight;

/* Fields that a kind does not name are zero. */
typedef struct pc__keras_layer {
    pc__keras_kind kind;
    char name[PC__KERAS_NAME_MAX];
    int units;                       /* conv2d: filters; dense: units */
    int window[2], stride[2];        /* conv2d, pools: height, width */
    bool same;                       /* conv2d, pools: padding "same", else "valid" */
    bool use_bias;                   /* conv2d, dense */
    bool frozen;                     /* trainable: false; such a layer has no slots */
    pc__keras_activation activation; /* conv2d, dense, activation */
    double rate;                     /* dropout */
    double scale, offset;            /* rescaling */
    pc__keras_weight kernel, bias;   /* conv2d, dense */
} pc__keras_layer;

typedef enum pc__keras_optimizer {
    PC__KERAS_NO_OPTIMIZER, /* the model is not compiled */
    PC__KERAS_ADAM,
    PC__KERAS_SGD,
    PC__KERAS_OTHER_OPTIMIZER /* read: optimizer_class names it; its state is not read. Cannot be written. */
} pc__keras_optimizer;

/* What compile() was told. Numbers that the file does not give as numbers (a learning rate schedule) are NaN. */
typedef struct pc__keras_training {
    pc__keras_optimizer optimizer;
    char optimizer_class[64]; /* "Adam", "SGD", "RMSprop"; ignored when writing */
    double learning_rate, weight_decay;
    double beta_1, beta_2, epsilon; /* Adam */
    bool amsgrad;                   /* Adam; its state is not read */
    double momentum;                /* SGD */
    bool nesterov;
    char loss[64]; /* as "binary_crossentropy"; "" when there is none */
    bool from_logits;
    bool has_state; /* iterations and the weights' slots are there */
    int64_t iterations;
} pc__keras_training;

typedef struct pc__keras_model {
    char name[PC__KERAS_NAME_MAX];
    int input_rank;          /* 3: height, width, channels; 2: height, width; 1: features; 0: the file does not say */
    int64_t input_shape[3];  /* -1: open (None) */
    pc__keras_layer *layers; /* without the input layer */
    int layer_count, layer_capacity;
    pc__keras_training training;
    char **class_names; /* Paracord's own; Keras ignores them */
    int class_count;
    char *note; /* Paracord's own: any text (JSON by habit), or NULL */
} pc__keras_model;

/* Read a model. Shapes of all weights fit the layers when this gives PC_OK; sizes that are open (-1) in the input are
 * filled in from the weights where these know them. A Functional model is read when it is a plain chain. Errors name
 * the file: PC_ERR_FILE (cannot be opened or read), PC_ERR_FORMAT (no HDF5, truncated, contradictory),
 * PC_ERR_UNSUPPORTED (layers, activations, options that are not described here). An optimizer state that does not fit
 * the model is left out with a warning in the log, as Keras does. On failure *model is empty. */
pc_status pc__keras_read(const char *path, pc__keras_model *model);

/* Fill the weights of a described model (layers and shapes as pc__keras_read makes them; old values are freed) from a
 * file: a whole model, legacy save_weights('x.h5') or Keras 3's save_weights('x.weights.h5'). Weights are taken in
 * order, as Keras takes them. On failure some weights may be new and others old. */
pc_status pc__keras_read_weights(const char *path, pc__keras_model *model);

/* Write a model that Keras 2 and Keras 3 load, as a whole or not at all. Layers with an empty name get one of Keras's
 * ("conv2d", "conv2d_1"), kept in the model. Needs input_rank, and each weight's value and shape: PC_ERR_SHAPE when
 * they do not fit. The same model gives the same bytes.
 *
 * With has_state the optimizer's state goes along, for whoever reads it back here. Keras 3 (seen with 3.15), given an
 * .h5 with a state, its own too, restores iteration and learning rate, and its fit() then fails with "Unknown variable"
 * until the model is compiled again; without has_state fit() works at once, with fresh moments. */
pc_status pc__keras_write(const char *path, pc__keras_model *model);

/* Append a layer of `kind`, all else zero. NULL when out of memory. Moves the layers before it. */
pc__keras_layer *pc__keras_add(pc__keras_model *model, pc__keras_kind kind);

/* Give `weight` a shape and zeroed values. */
pc_status pc__keras_weight_make(pc__keras_weight *weight, int rank, const int64_t *shape);

/* Elements of a weight. */
int64_t pc__keras_weight_size(const pc__keras_weight *weight);

/* The name in the file: "relu". */
const char *pc__keras_activation_name(pc__keras_activation activation);

/* Free everything in it and empty it. Fine on an empty model. */
void pc__keras_free(pc__keras_model *model);

#endif
