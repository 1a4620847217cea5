/* keras_part.h: what the rooms of the Keras reader and writer share. Internal to keras_*.c. */
#ifndef PC__KERAS_PART_H
#define PC__KERAS_PART_H

#include "io/keras_h5.h"
#include "io/keras_shape.h"

#include <cjson/cJSON.h>

#define PC__KERAS_LAYERS_MAX 4096
#define PC__KERAS_SIZE_MAX (1 << 24)              /* one dimension, units, a window */
#define PC__KERAS_ELEMENTS_MAX ((int64_t)1 << 32) /* of one weight */
#define PC__KERAS_TEXT_MAX ((size_t)64 << 20)     /* bytes of one attribute */

/* ---- keras_json.c: fields of a JSON object that may be missing, null or of the wrong type. A layer whose field is
 * wrong is refused. */
typedef struct pc__keras_source {
    pc__keras_layer *layer;
    const cJSON *config;
    int version; /* of Keras */
} pc__keras_source;

pc_status pc__keras_json_parse(const char *path, const char *what, const char *text, cJSON **json);
const cJSON *pc__keras_json_get(const cJSON *object, const char *key);              /* NULL when missing or null */
const char *pc__keras_json_string(const cJSON *object, const char *key);            /* NULL when missing or no string */
double pc__keras_json_number(const cJSON *object, const char *key, double missing); /* NaN when it is no number */
bool pc__keras_json_size(const cJSON *item, int *value);                            /* 1.. SIZE_MAX */
pc_status pc__keras_json_integer(const pc__keras_source *from, const char *key, int *value);
pc_status pc__keras_json_pair(const pc__keras_source *from, const char *key, int fallback, int pair[2]);
pc_status pc__keras_json_bool(const pc__keras_source *from, const char *key, bool fallback, bool *value);
pc_status pc__keras_json_name(const char *path, const char *what, const char *text, char name[PC__KERAS_NAME_MAX]);
/* [None, height, width, channels] without the batch; false when it is no such thing. */
bool pc__keras_json_shape(const cJSON *shape, int *rank, int64_t sizes[3]);

/* ---- keras_activation.c: activations by name or as an object, and the layers that are nothing else */
pc_status pc__keras_activation_field(const pc__keras_source *from);
pc_status pc__keras_activation_layer(const pc__keras_source *from);
pc_status pc__keras_activation_object(const pc__keras_source *from, const char *class_name);
/* The class that has what the layer needs, and its fields after the common ones. */
const char *pc__keras_activation_class(const pc__keras_layer *layer);
void pc__keras_activation_print(pc__text *out, const pc__keras_layer *layer);
/* As the field of another layer: its name, or the layer with its numbers, as Keras writes it. */
void pc__keras_activation_print_field(pc__text *out, const pc__keras_layer *layer);

/* ---- keras_layers.c: one layer's class and config <-> pc__keras_layer. What is wrong with it is in the layer; only
 * PC_ERR_MEMORY is returned. */
typedef pc_status (*pc__keras_parse)(const pc__keras_source *from);
typedef void (*pc__keras_print)(pc__text *out, const pc__keras_layer *layer);
pc_status pc__keras_layer_parse(const pc__keras_source *from, const char *class_name);
void pc__keras_layer_print(pc__text *out, const pc__keras_layer *layer);
/* Does the layer have a form in which it can be written? Refused when it has not. */
pc_status pc__keras_layer_printable(pc__keras_layer *layer);

/* keras_rescaling.c: a list of numbers in a config as a weight; all weights as such lists. */
pc_status pc__keras_numbers(pc__keras_layer *layer, const char *word, const cJSON *list);
void pc__keras_print_numbers(pc__text *out, const pc__keras_layer *layer);

/* keras_windows.c, keras_plain.c, keras_rescaling.c: the rows' functions */
pc_status pc__keras_parse_conv2d(const pc__keras_source *from);
pc_status pc__keras_parse_depthwise(const pc__keras_source *from);
pc_status pc__keras_parse_separable(const pc__keras_source *from);
pc_status pc__keras_parse_pool(const pc__keras_source *from);
pc_status pc__keras_parse_global_pool(const pc__keras_source *from);
pc_status pc__keras_parse_padding(const pc__keras_source *from);
pc_status pc__keras_parse_cropping(const pc__keras_source *from);
pc_status pc__keras_parse_up_sampling(const pc__keras_source *from);
pc_status pc__keras_parse_spatial(const pc__keras_source *from);
pc_status pc__keras_channels_last(const pc__keras_source *from);
void pc__keras_print_conv2d(pc__text *out, const pc__keras_layer *layer);
void pc__keras_print_depthwise(pc__text *out, const pc__keras_layer *layer);
void pc__keras_print_separable(pc__text *out, const pc__keras_layer *layer);
void pc__keras_print_pool(pc__text *out, const pc__keras_layer *layer);
void pc__keras_print_global_pool(pc__text *out, const pc__keras_layer *layer);
void pc__keras_print_padding(pc__text *out, const pc__keras_layer *layer);
void pc__keras_print_cropping(pc__text *out, const pc__keras_layer *layer);
void pc__keras_print_up_sampling(pc__text *out, const pc__keras_layer *layer);
pc_status pc__keras_parse_rescaling(const pc__keras_source *from);
pc_status pc__keras_parse_normalization(const pc__keras_source *from);
pc_status pc__keras_parse_batch_norm(const pc__keras_source *from);
pc_status pc__keras_parse_layer_norm(const pc__keras_source *from);
pc_status pc__keras_parse_prelu(const pc__keras_source *from);
void pc__keras_print_rescaling(pc__text *out, const pc__keras_layer *layer);
void pc__keras_print_normalization(pc__text *out, const pc__keras_layer *layer);
void pc__keras_print_batch_norm(pc__text *out, const pc__keras_layer *layer);
void pc__keras_print_layer_norm(pc__text *out, const pc__keras_layer *layer);
void pc__keras_print_prelu(pc__text *out, const pc__keras_layer *layer);

/* ---- keras_snake.c: a class's name as Keras makes one of its layers: "max_pooling2d" */
void pc__keras_snake(const char *class_name, char out[PC__KERAS_NAME_MAX]);

/* ---- keras_config.c: model_config <-> name, input, layers, nodes */
pc_status pc__keras_config_parse(const char *path, const char *text, pc__keras_model *model);
void pc__keras_config_print(pc__text *out, const pc__keras_model *model);

/* ---- keras_graph.c: the layers of a model, and of the models in it, into layers and nodes. `layers` is the JSON list;
 * config has the ends of a Functional model, NULL for Sequential. */
pc_status pc__keras_graph_parse(const char *path, const cJSON *layers, const cJSON *config, pc__keras_model *model);
/* What is not supported of the model as a whole is the model's `problem`, and no error any more; others stay. */
pc_status pc__keras_set_aside(pc_status status, pc__keras_model *model);
/* The class is a model of its own: 'S'equential, 'F'unctional, or 0. */
char pc__keras_model_class(const char *class_name);

/* ---- keras_nodes.c: what one inbound node takes */
typedef struct pc__keras_inbound {
    int count; /* tensors */
    struct {
        const char *layer; /* of the JSON */
        int node;
        const cJSON *shape; /* that the file states; may be NULL */
    } from[64];
    int constants; /* numbers among the arguments; the first of them, and whether it stands before the tensor */
    double constant;
    const cJSON *list; /* in its place, an array of numbers; NULL */
    bool constant_first;
    bool ellipsis, reversal; /* x[..., 2], x[..., ::-1] */
    bool odd;                /* there is something else, or too much */
} pc__keras_inbound;
void pc__keras_inbound_parse(const cJSON *node, pc__keras_inbound *inbound);
/* Which channels x[...] takes, into the layer; refuses what it cannot. */
pc_status pc__keras_channels(pc__keras_layer *layer, const pc__keras_inbound *inbound);
/* keras_rescaling.c: turn a layer that does arithmetic with one tensor and one number, or one for each channel, into a
 * Rescaling; refuses what it cannot. */
pc_status pc__keras_constant(pc__keras_layer *layer, const pc__keras_inbound *inbound);

/* ---- keras_training.c: training_config <-> pc__keras_training */
void pc__keras_training_parse(const cJSON *json, pc__keras_training *training);
void pc__keras_training_print(pc__text *out, const pc__keras_training *training);

/* ---- keras_check.c: check what is to be written; fills in empty names. */
pc_status pc__keras_check(const char *path, pc__keras_model *model);

/* ---- keras_file.c: a file of a .keras archive as text (from pc__alloc) */
struct pc__zip;
pc_status pc__keras_zip_text(const struct pc__zip *zip, const char *name, char **text);

/* ---- keras_note.c: what is Paracord's own, as attributes */
pc_status pc__keras_put_own(const char *path, hid_t file, const pc__keras_model *model);

/* ---- keras_weights.c, keras_native.c, keras_optimizer.c: the groups */
bool pc__keras_in_config(const pc__keras_layer *layer); /* its weights are not among the file's weights */
int pc__keras_count_slot(const pc__keras_layer *layer); /* 1 where the file has a `count` behind them */
pc_status pc__keras_weights_read(const char *path, pc__h5_node group, pc__keras_model *model);
pc_status pc__keras_weights_count(const char *path, pc__h5_node group, pc__keras_model *model); /* into `stored` */
/* `to` and the elements of a dataset; -1 where one of both is not known, as of one with five dimensions. */
int64_t pc__keras_add_elements(pc__h5_node group, const char *name, int64_t to);
pc_status pc__keras_weights_write(const char *path, hid_t group, pc__keras_model *model);
pc_status pc__keras_weight_read(const char *path, pc__h5_node group, const char *name, pc__keras_layer *layer,
                                int index);
pc_status pc__keras_native_read(const char *path, pc__h5_node file, pc__keras_model *model);
pc_status pc__keras_native_count(const char *path, pc__h5_node file, pc__keras_model *model);
pc_status pc__keras_native_locate(const char *class_name, const char *inside, pc__names *used, char **location);
pc_status pc__keras_state_read(const char *path, pc__h5_node file, pc__keras_model *model);
pc_status pc__keras_native_state_read(const char *path, pc__h5_node file, pc__keras_model *model);
pc_status pc__keras_state_write(const char *path, hid_t file, pc__keras_model *model);

#endif
