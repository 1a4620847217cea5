/* keras.h: Keras models (.h5 of Keras 2 and 3, .keras) as a plain description, and back. Knows files, not modules.
 *
 *     pc__keras_model model = {0};
 *     PC__TRY(pc__keras_read("model.h5", &model));    // layers, how they are joined, weights in Keras's own layout
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

#define PC__KERAS_NAME_MAX 1024 /* bytes of a layer's or model's name, with its end */
#define PC__KERAS_RANK_MAX 4
#define PC__KERAS_WEIGHTS_MAX 4 /* of one layer */
#define PC__KERAS_PICTURE -1    /* in place of a node's number: what goes into the model */

/* kind, the class that is written */
#define PC__KERAS_KINDS(X)                                                                                             \
    X(PC__KERAS_CONV2D, "Conv2D")                                                                                      \
    X(PC__KERAS_DEPTHWISE_CONV2D, "DepthwiseConv2D")                                                                   \
    X(PC__KERAS_SEPARABLE_CONV2D, "SeparableConv2D")                                                                   \
    X(PC__KERAS_DENSE, "Dense")                                                                                        \
    X(PC__KERAS_MAX_POOL2D, "MaxPooling2D")                                                                            \
    X(PC__KERAS_AVG_POOL2D, "AveragePooling2D")                                                                        \
    X(PC__KERAS_GLOBAL_MAX_POOL2D, "GlobalMaxPooling2D")                                                               \
    X(PC__KERAS_GLOBAL_AVG_POOL2D, "GlobalAveragePooling2D")                                                           \
    X(PC__KERAS_ZERO_PADDING2D, "ZeroPadding2D")                                                                       \
    X(PC__KERAS_CROPPING2D, "Cropping2D")                                                                              \
    X(PC__KERAS_UP_SAMPLING2D, "UpSampling2D") /* nearest */                                                           \
    X(PC__KERAS_FLATTEN, "Flatten")                                                                                    \
    X(PC__KERAS_RESHAPE, "Reshape")                                                                                    \
    X(PC__KERAS_PERMUTE, "Permute")                                                                                    \
    X(PC__KERAS_DROPOUT, "Dropout")                                                                                    \
    X(PC__KERAS_SPATIAL_DROPOUT2D, "SpatialDropout2D")                                                                 \
    X(PC__KERAS_NOISE, "GaussianNoise") /* this and its like: does nothing except in training */                       \
    X(PC__KERAS_ACTIVATION, "Activation")                                                                              \
    X(PC__KERAS_PRELU, "PReLU")                                                                                        \
    X(PC__KERAS_RESCALING, "Rescaling") /* x * scale + offset */                                                       \
    X(PC__KERAS_NORMALIZATION, "Normalization")                                                                        \
    X(PC__KERAS_BATCH_NORM, "BatchNormalization")                                                                      \
    X(PC__KERAS_LAYER_NORM, "LayerNormalization")                                                                      \
    X(PC__KERAS_ADD, "Add")                                                                                            \
    X(PC__KERAS_SUBTRACT, "Subtract")                                                                                  \
    X(PC__KERAS_MULTIPLY, "Multiply")                                                                                  \
    X(PC__KERAS_AVERAGE, "Average")                                                                                    \
    X(PC__KERAS_MAXIMUM, "Maximum")                                                                                    \
    X(PC__KERAS_MINIMUM, "Minimum")                                                                                    \
    X(PC__KERAS_CONCATENATE, "Concatenate")                                                                            \
    X(PC__KERAS_CHANNELS, "GetItem") /* target[0]: one channel; invert: all, the last one first. Read alone */         \
    X(PC__KERAS_STACK, "Stack")      /* along a new last axis. Read alone */                                           \
    X(PC__KERAS_UNKNOWN, "")         /* what is not supported: class_name says what it is */

typedef enum pc__keras_kind {
#define PC__KERAS_ENUM(code, name) code,
    PC__KERAS_KINDS(PC__KERAS_ENUM) PC__KERAS_KIND_COUNT
} pc__keras_kind;

/* name in the file; NULL: there is none in Keras 3 */
#define PC__KERAS_ACTIVATIONS(X)                                                                                       \
    X(PC__KERAS_LINEAR, "linear")                                                                                      \
    X(PC__KERAS_RELU, "relu") /* with limit, slope and threshold: the layer ReLU */                                    \
    X(PC__KERAS_SIGMOID, "sigmoid")                                                                                    \
    X(PC__KERAS_TANH, "tanh")                                                                                          \
    X(PC__KERAS_SOFTMAX, "softmax")                                                                                    \
    X(PC__KERAS_RELU6, "relu6")                                                                                        \
    X(PC__KERAS_LEAKY_RELU, "leaky_relu") /* slope */                                                                  \
    X(PC__KERAS_ELU, "elu")               /* slope */                                                                  \
    X(PC__KERAS_SELU, "selu")                                                                                          \
    X(PC__KERAS_GELU, "gelu")                                                                                          \
    X(PC__KERAS_GELU_TANH, NULL) /* gelu(approximate=True) */                                                          \
    X(PC__KERAS_SILU, "silu")                                                                                          \
    X(PC__KERAS_SOFTPLUS, "softplus")                                                                                  \
    X(PC__KERAS_SOFTSIGN, "softsign")                                                                                  \
    X(PC__KERAS_HARD_SIGMOID, "hard_sigmoid")                                                                          \
    X(PC__KERAS_HARD_SIGMOID_2, NULL) /* Keras 2's: another slope */                                                   \
    X(PC__KERAS_HARD_SILU, "hard_silu")                                                                                \
    X(PC__KERAS_HARD_TANH, "hard_tanh")                                                                                \
    X(PC__KERAS_MISH, "mish")                                                                                          \
    X(PC__KERAS_EXPONENTIAL, "exponential")                                                                            \
    X(PC__KERAS_LOG_SIGMOID, "log_sigmoid")                                                                            \
    X(PC__KERAS_LOG_SOFTMAX, "log_softmax")

typedef enum pc__keras_activation {
    PC__KERAS_ACTIVATIONS(PC__KERAS_ENUM)
#undef PC__KERAS_ENUM
        PC__KERAS_ACTIVATION_COUNT
} pc__keras_activation;

/* One weight: row-major float32. slot: what the optimizer keeps for it, of the same shape, or NULL: Adam's first and
 * second moment, or SGD's momentum in slot[0]. */
typedef struct pc__keras_weight {
    const char *word; /* "kernel", "gamma"; static storage */
    bool fixed;       /* no optimizer ever changes it: moving means */
    int rank;
    int64_t shape[PC__KERAS_RANK_MAX];
    float *value;
    float *slot[2];
} pc__keras_weight;

/* Fields that a kind does not name are zero. */
typedef struct pc__keras_layer {
    pc__keras_kind kind;
    char name[PC__KERAS_NAME_MAX];
    char class_name[64]; /* reading: as the file has it */
    pc_status refused;   /* PC_OK, or what `problem` is: why the layer cannot be had */
    char problem[200];   /* goes behind "layer 'conv2d' " */

    int units;                       /* convolutions: filters (depthwise: none); dense: units */
    int multiplier;                  /* depthwise and separable convolution: depth_multiplier */
    int window[2], stride[2];        /* convolutions, pools: height, width; up-sampling: window */
    int dilation[2], groups;         /* convolutions; groups: Conv2D; 0 means 1 */
    bool same;                       /* convolutions, pools: padding "same", else "valid" */
    bool use_bias;                   /* convolutions, dense */
    bool keep;                       /* global pools: keepdims */
    bool frozen;                     /* trainable: false; such a layer has no slots */
    int border[4];                   /* padding, cropping: top, bottom, left, right */
    int rank;                        /* reshape, permute, PReLU: how many numbers in `target` */
    int64_t target[3];               /* reshape: shape, -1: worked out; permute: dimensions from 1; PReLU: 1 where
                                      * shared, else 0 */
    int axis;                        /* normalisations, concatenate: as Keras counts, with the batch; 0: the last */
    pc__keras_activation activation; /* convolutions, dense, activation */
    double slope, limit, threshold;  /* activation; limit 0: none */
    double rate;                     /* dropouts */
    double scale, offset;            /* rescaling, without weights of these names, one number for each channel */
    bool arithmetic;                 /* rescaling: x / 127.5 or its like in a Functional model */
    double epsilon;                  /* batch and layer normalisation */
    double momentum;                 /* batch normalisation: of its moving means, in training */
    bool center, gain;               /* batch and layer normalisation: have beta, gamma */
    bool invert;                     /* normalisation, channels */
    bool given;                      /* normalisation, rescaling: weights are in the config, not among the weights */
    char *raw;                       /* noise: its whole config as JSON */

    pc__keras_weight weights[PC__KERAS_WEIGHTS_MAX]; /* in Keras's order: kernel, bias */
    int weight_count;
    int group;      /* reading .h5: number of the outermost layer that it belongs to */
    char *location; /* reading .keras: "layers/sequential/layers/conv2d" */
    int64_t stored; /* described only: numbers that the file has for it; -1: not known */
} pc__keras_layer;

/* One use of a layer. Nodes come behind those that they take from. */
typedef struct pc__keras_node {
    int layer;
    int first, count; /* of model->edges: numbers of the nodes that it takes from */
    int rank;         /* of what it gives, without the batch; 0: not known */
    int64_t shape[3]; /* -1: open */
} pc__keras_node;

typedef enum pc__keras_optimizer {
    PC__KERAS_NO_OPTIMIZER, /* the model is not compiled */
    PC__KERAS_ADAM,
    PC__KERAS_SGD,
    PC__KERAS_ADAMW,
    PC__KERAS_RMSPROP, /* this one and Lion without their state */
    PC__KERAS_LION,
    PC__KERAS_OTHER_OPTIMIZER /* read: optimizer_class names it; its state is not read. Cannot be written. */
} pc__keras_optimizer;

/* What compile() was told. Numbers that the file does not give as numbers (a learning rate schedule) are NaN. */
typedef struct pc__keras_training {
    pc__keras_optimizer optimizer;
    char optimizer_class[64]; /* "Adam", "SGD", "RMSprop"; ignored when writing */
    double learning_rate, weight_decay;
    double beta_1, beta_2, epsilon; /* Adam, AdamW, Lion; RMSprop has rho as beta_2 */
    bool amsgrad;                   /* Adam, AdamW; its state is not read */
    double momentum;                /* SGD, RMSprop */
    bool nesterov;
    double clip_norm, clip_value; /* of gradients; 0: they are not clipped. Written only */
    char loss[64];                /* as "binary_crossentropy"; "" when there is none */
    bool from_logits;
    bool has_state; /* iterations and the weights' slots are there */
    int64_t iterations;
} pc__keras_training;

/* Keras's class and name of an optimizer ("AdamW", "adamw", which is our name too); NULL for none and others. */
const char *pc__keras_optimizer_class(pc__keras_optimizer optimizer);
const char *pc__keras_optimizer_name(pc__keras_optimizer optimizer);

/* The one of our name; PC__KERAS_OTHER_OPTIMIZER where there is none. */
pc__keras_optimizer pc__keras_optimizer_named(const char *name);

typedef struct pc__keras_model {
    char name[PC__KERAS_NAME_MAX];
    pc_status refused; /* PC_OK, or what `problem` is: why the model cannot be had, whatever its layers are. Its nodes
                        * are its layers one after the other then, without edges */
    char *problem;     /* the whole message */
    int version;       /* of the Keras that wrote it, as far as that matters: 2 or 3; 0: not known */
    int input_rank;    /* 3: height, width, channels; 1: features; 0: the file does not say. (height, width) is
                        * read as a picture of one channel */
    int64_t input_shape[3];  /* -1: open (None) */
    pc__keras_layer *layers; /* without input layers; those of models inside too */
    int layer_count, layer_capacity;
    pc__keras_node *nodes;
    int node_count, node_capacity;
    int *edges;
    int edge_count, edge_capacity;
    int output; /* number of the node that is the model's answer */
    pc__keras_training training;
    char **class_names; /* Paracord's own; Keras ignores them */
    int class_count;
    char *note; /* Paracord's own: any text (JSON by habit), or NULL */
} pc__keras_model;

/* Read a model. Shapes of all weights fit the layers when this gives PC_OK; sizes that are open (-1) in the input are
 * filled in from the weights where these know them. Models inside a model are read as their layers. Errors name
 * the file: PC_ERR_FILE (cannot be opened or read), PC_ERR_FORMAT (no Keras file, truncated, contradictory),
 * PC_ERR_UNSUPPORTED (the first layer, activation or option that is not described here), PC_ERR_SHAPE (a picture too
 * small for a window). An optimizer state that does not fit the model is left out with a warning in the log, as Keras
 * does. On failure *model is empty. */
pc_status pc__keras_read(const char *path, pc__keras_model *model);

/* Read what a file says of its layers, without the weights: also where some of them are not supported; `refused` and
 * `problem` tell. Errors are those of files that cannot be read at all. */
pc_status pc__keras_read_layers(const char *path, pc__keras_model *model);

/* Fill the weights of a described model (layers and shapes as pc__keras_read makes them; old values are freed) from a
 * file: a whole model, legacy save_weights('x.h5') or Keras 3's save_weights('x.weights.h5'). Weights are taken in
 * order, as Keras takes them. On failure some weights may be new and others old. */
pc_status pc__keras_read_weights(const char *path, pc__keras_model *model);

/* Write a model that Keras 2 and Keras 3 load, as a whole or not at all: a .h5 file, whatever the name. Layers with an
 * empty name get one of Keras's ("conv2d", "conv2d_1"), kept in the model. Needs input_rank, and each weight's value
 * and shape: PC_ERR_SHAPE when they do not fit. The same model gives the same bytes.
 *
 * With has_state the optimizer's state goes along, for whoever reads it back here. Keras 3 (seen with 3.15), given an
 * .h5 with a state, its own too, restores iteration and learning rate, and its fit() then fails with "Unknown variable"
 * until the model is compiled again; without has_state fit() works at once, with fresh moments. */
pc_status pc__keras_write(const char *path, pc__keras_model *model);

/* Write the model's class names and note into a file that is there, .h5 or .keras, and its name over the one that the
 * model has there, when it is not empty: as a whole or not at all. Names and a note that the file had go. Keras keeps
 * the name alone when it saves the model again. A child in jail changes .h5 files: this file may be made to harm. */
pc_status pc__keras_note(const char *path, const pc__keras_model *model);

/* Append a layer of `kind`, all else zero. NULL when out of memory. Moves the layers before it. */
pc__keras_layer *pc__keras_add_layer(pc__keras_model *model, pc__keras_kind kind);

/* Append a use of layer number `layer` that takes from `count` nodes; it becomes the output. */
pc_status pc__keras_add_node(pc__keras_model *model, int layer, const int *from, int count);

/* Both: a layer behind the output. */
pc__keras_layer *pc__keras_add(pc__keras_model *model, pc__keras_kind kind);

/* Both: a layer in front, which takes the picture from all that took it. */
pc__keras_layer *pc__keras_add_front(pc__keras_model *model, pc__keras_kind kind);

/* The layers are used one after another, each once. */
bool pc__keras_is_chain(const pc__keras_model *model);

/* Put the layers of a graph into the order in which Keras takes their weights, and leave out what the output does not
 * need. pc__keras_write does so. On failure the model can only be freed. */
pc_status pc__keras_sort(pc__keras_model *model);

/* Make weights[weight_count] of a layer, with zeroed values. `word` is static storage. */
pc_status pc__keras_weight_make(pc__keras_layer *layer, const char *word, int rank, const int64_t *shape);

/* The weight of that word, or NULL. */
pc__keras_weight *pc__keras_weight_named(pc__keras_layer *layer, const char *word);

/* Elements of a weight. */
int64_t pc__keras_weight_size(const pc__keras_weight *weight);

/* The name in the file: "relu"; NULL where there is none. */
const char *pc__keras_activation_name(pc__keras_activation activation);

/* The class that is written: "Conv2D". */
const char *pc__keras_class_name(pc__keras_kind kind);

/* Say why a layer cannot be had; what was said first stays. Gives back `status`. */
pc_status pc__keras_refuse(pc__keras_layer *layer, pc_status status, const char *format, ...) PC_PRINTF(3, 4);

/* Free what a layer holds. */
void pc__keras_layer_free(pc__keras_layer *layer);

/* Free everything in it and empty it. Fine on an empty model. */
void pc__keras_free(pc__keras_model *model);

#endif
