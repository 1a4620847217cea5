/* keras_part.h: what the rooms of the Keras reader and writer share. Internal to keras_*.c. */
#ifndef PC__KERAS_PART_H
#define PC__KERAS_PART_H

#include "io/keras.h"
#include "io/keras_h5.h"

#include <cjson/cJSON.h>

#define PC__KERAS_LAYERS_MAX 4096
#define PC__KERAS_SIZE_MAX (1 << 24)              /* one dimension, units, a window */
#define PC__KERAS_ELEMENTS_MAX ((int64_t)1 << 32) /* of one weight */
#define PC__KERAS_TEXT_MAX ((size_t)64 << 20)     /* bytes of one attribute */

/* ---- keras_json.c: fields of a JSON object that may be missing, null or of the wrong type. `layer` is for errors. */
typedef struct pc__keras_source {
    const char *path;
    const char *layer;
    const cJSON *config;
} pc__keras_source;

pc_status pc__keras_json_parse(const char *path, const char *what, const char *text, cJSON **json);
const cJSON *pc__keras_json_get(const cJSON *object, const char *key);              /* NULL when missing or null */
const char *pc__keras_json_string(const cJSON *object, const char *key);            /* NULL when missing or no string */
double pc__keras_json_number(const cJSON *object, const char *key, double missing); /* NaN when it is no number */
pc_status pc__keras_json_integer(const pc__keras_source *from, const char *key, int *value); /* 1.. SIZE_MAX */
pc_status pc__keras_json_pair(const pc__keras_source *from, const char *key, int fallback, int pair[2]);
pc_status pc__keras_json_bool(const pc__keras_source *from, const char *key, bool fallback, bool *value);
pc_status pc__keras_json_name(const char *path, const char *what, const char *text, char name[PC__KERAS_NAME_MAX]);

/* ---- keras_layers.c: one layer's class and config <-> pc__keras_layer */
pc_status pc__keras_layer_parse(const pc__keras_source *from, const char *class_name, pc__keras_layer *layer);
void pc__keras_layer_print(pc__text *out, const pc__keras_layer *layer);
const char *pc__keras_class_name(pc__keras_kind kind);

/* ---- keras_config.c: model_config <-> name, input, layers */
pc_status pc__keras_config_parse(const char *path, const char *text, pc__keras_model *model);
void pc__keras_config_print(pc__text *out, const pc__keras_model *model);

/* ---- keras_chain.c: PC_OK when the layers of a Functional model are one chain in order */
pc_status pc__keras_chain_check(const char *path, const cJSON *config, const cJSON *layers);

/* ---- keras_training.c: training_config <-> pc__keras_training */
pc_status pc__keras_training_parse(const char *path, const char *text, pc__keras_training *training);
void pc__keras_training_print(pc__text *out, const pc__keras_training *training);

/* ---- keras_shape.c: shapes through the layers. `rank` 0: not known. */
typedef struct pc__keras_flow {
    int rank;
    int64_t shape[3];
} pc__keras_flow;
/* Take one layer: gives the shapes that its weights must have (rank 0: none), and moves the flow past it. */
pc_status pc__keras_flow_past(const char *path, const pc__keras_layer *layer, pc__keras_flow *flow,
                              pc__keras_weight *kernel, pc__keras_weight *bias);
/* Give every weight of the model the shape that its layer means. */
pc_status pc__keras_shapes(const char *path, pc__keras_model *model);

/* ---- keras_check.c: check what is to be written; fills in empty names. */
pc_status pc__keras_check(const char *path, pc__keras_model *model);

/* ---- keras_weights.c, keras_optimizer.c: the groups. The weights of a layer in order: 0 kernel, 1 bias. */
int pc__keras_weight_count(const pc__keras_layer *layer);
pc__keras_weight *pc__keras_weight_at(pc__keras_layer *layer, int index);
pc_status pc__keras_weights_read(const char *path, hid_t group, pc__keras_model *model);
pc_status pc__keras_native_weights_read(const char *path, hid_t file, pc__keras_model *model);
pc_status pc__keras_weights_write(const char *path, hid_t group, pc__keras_model *model);
pc_status pc__keras_state_read(const char *path, hid_t file, pc__keras_model *model);
pc_status pc__keras_state_write(const char *path, hid_t file, pc__keras_model *model);

#endif
