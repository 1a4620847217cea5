/* keras_file.c: a whole model out of a file: .h5, .keras, or weights alone. */
#include "io/keras.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/file.h"
#include "io/keras_part.h"
#include "io/zip.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* How much of a model is wanted. */
typedef enum part { LAYERS, ALL, WEIGHTS } part;

static pc_status first_refused(const char *path, const pc__keras_model *model)
{
    for (int i = 0; i < model->layer_count; i++) {
        const pc__keras_layer *layer = &model->layers[i];
        if (layer->refused)
            return pc__fail(layer->refused, "%s: layer '%.64s' %s", path, layer->name, layer->problem);
    }
    return PC_OK;
}

/* model_config, or config.json of a .keras file: the same JSON. */
static pc_status take_config(const char *path, const char *text, part want, pc__keras_model *model)
{
    PC__TRY(pc__keras_config_parse(path, text, model));
    if (model->refused)
        return want == LAYERS ? PC_OK : pc__fail(model->refused, "%s", model->problem);
    PC__TRY(pc__keras_shapes(model));
    return want == LAYERS ? PC_OK : first_refused(path, model);
}

static pc_status read_config(const char *path, pc__h5_node file, part want, pc__keras_model *model)
{
    char *text, *version;
    PC__TRY(pc__h5_text(path, file, "keras_version", &version));
    model->version = version ? atoi(version) : 0;
    pc__free(version);
    PC__TRY(pc__h5_text(path, file, "model_config", &text));
    if (!text)
        return pc__fail(PC_ERR_FORMAT,
                        "%s has no model_config: it is no Keras model, or holds weights alone; save the whole "
                        "model: model.save(\"model.h5\")",
                        path);
    pc_status status = take_config(path, text, want, model);
    pc__free(text);
    return status;
}

static pc_status take_training(const char *path, const char *text, const char *inside, pc__keras_model *model)
{
    cJSON *json;
    PC__TRY(pc__keras_json_parse(path, inside ? "config.json" : "training_config", text, &json));
    pc__keras_training_parse(inside ? pc__keras_json_get(json, inside) : json, &model->training);
    cJSON_Delete(json);
    return PC_OK;
}

static pc_status read_training(const char *path, pc__h5_node file, part want, pc__keras_model *model)
{
    char *text;
    PC__TRY(pc__h5_text(path, file, "training_config", &text));
    if (!text)
        return PC_OK;
    pc_status status = take_training(path, text, NULL, model);
    pc__free(text);
    if (status == PC_OK && want == ALL)
        status = pc__keras_state_read(path, file, model);
    return status;
}

static pc_status read_own(const char *path, pc__h5_node file, pc__keras_model *model)
{
    pc__names names = {0};
    PC__TRY(pc__h5_names(path, file, "paracord_class_names", &names, NULL));
    model->class_names = names.items;
    model->class_count = names.count;
    return pc__h5_text(path, file, "paracord", &model->note);
}

static pc_status read_whole(const char *path, pc__h5_node file, part want, pc__keras_model *model)
{
    pc__h5_node weights;
    PC__TRY(read_config(path, file, want, model));
    PC__TRY(pc__h5_group(path, file, "model_weights", &weights));
    pc_status status =
        want == ALL ? pc__keras_weights_read(path, weights, model) : pc__keras_weights_count(path, weights, model);
    pc__h5_close(weights);
    if (status == PC_OK)
        status = read_training(path, file, want, model);
    return status == PC_OK ? read_own(path, file, model) : status;
}

static pc_status read_weights(const char *path, pc__h5_node file, pc__keras_model *model)
{
    if (pc__h5_has(file, "layers"))
        return pc__keras_native_read(path, file, model);
    if (!pc__h5_has(file, "model_weights"))
        return pc__keras_weights_read(path, file, model);
    pc__h5_node weights;
    PC__TRY(pc__h5_group(path, file, "model_weights", &weights));
    pc_status status = pc__keras_weights_read(path, weights, model);
    pc__h5_close(weights);
    return status;
}

/* ---- .keras: config.json, metadata.json and model.weights.h5 in a zip archive */

#define CONFIG "config.json"
#define METADATA "metadata.json"
#define WEIGHTS_FILE "model.weights.h5"

pc_status pc__keras_zip_text(const pc__zip *zip, const char *name, char **text)
{
    const uint8_t *bytes;
    uint8_t *own;
    size_t n;
    *text = NULL;
    pc_status status = pc__zip_take(zip, name, PC__KERAS_TEXT_MAX, &bytes, &n, &own);
    if (status == PC_ERR_NOT_FOUND)
        return pc__fail(PC_ERR_FORMAT, "%s is a zip archive without %s: it is no .keras file", zip->path, name);
    if (status == PC_OK) {
        *text = pc__alloc(n + 1);
        status = *text ? PC_OK : PC_ERR_MEMORY;
    }
    if (*text) {
        memcpy(*text, bytes, n);
        (*text)[n] = 0;
    }
    pc__free(own);
    return status;
}

/* Paracord's own words, which keras_note.c puts there. */
static pc_status zip_own(const cJSON *json, pc__keras_model *model)
{
    const char *note = pc__keras_json_string(json, "paracord");
    const cJSON *list = pc__keras_json_get(json, "paracord_class_names"), *item;
    pc__names names = {0};
    pc_status status = PC_OK;
    cJSON_ArrayForEach(item, list)
    {
        const char *name = cJSON_GetStringValue(item);
        if (status == PC_OK)
            status = pc__names_add(&names, name ? name : "", name ? strlen(name) : 0);
    }
    model->class_names = names.items;
    model->class_count = names.count;
    model->note = note ? pc__strdup(note) : NULL;
    return status == PC_OK && note && !model->note ? PC_ERR_MEMORY : status;
}

static pc_status zip_version(const pc__zip *zip, pc__keras_model *model)
{
    char *text;
    cJSON *json;
    PC__TRY(pc__keras_zip_text(zip, METADATA, &text));
    pc_status status = pc__keras_json_parse(zip->path, METADATA, text, &json);
    pc__free(text);
    PC__TRY(status);
    const char *version = pc__keras_json_string(json, "keras_version");
    model->version = version ? atoi(version) : 0;
    status = zip_own(json, model);
    cJSON_Delete(json);
    return status;
}

static pc_status native_weights(const char *path, pc__h5_node file, part want, pc__keras_model *model)
{
    if (want == LAYERS)
        return pc__keras_native_count(path, file, model);
    PC__TRY(pc__keras_native_read(path, file, model));
    return want == ALL ? pc__keras_native_state_read(path, file, model) : PC_OK;
}

static pc_status zip_weights(const pc__zip *zip, part want, pc__keras_model *model)
{
    const uint8_t *bytes;
    uint8_t *own;
    size_t n;
    pc__h5_node file;
    pc_status status = pc__zip_take(zip, WEIGHTS_FILE, SIZE_MAX, &bytes, &n, &own);
    if (status == PC_ERR_NOT_FOUND)
        return pc__fail(PC_ERR_UNSUPPORTED, "%s has no %s in it; weights in several files are not supported", zip->path,
                        WEIGHTS_FILE);
    if (status == PC_OK)
        status = pc__h5_open_bytes(zip->path, bytes, n, &file);
    if (status == PC_OK) {
        status = native_weights(zip->path, file, want, model);
        pc__h5_close(file);
    }
    pc__free(own);
    return status;
}

static pc_status read_zip(const pc__zip *zip, part want, pc__keras_model *model)
{
    char *text;
    if (want == WEIGHTS)
        return zip_weights(zip, want, model);
    PC__TRY(zip_version(zip, model));
    PC__TRY(pc__keras_zip_text(zip, CONFIG, &text));
    pc_status status = take_config(zip->path, text, want, model);
    if (status == PC_OK)
        status = take_training(zip->path, text, "compile_config", model);
    pc__free(text);
    return status == PC_OK ? zip_weights(zip, want, model) : status;
}

static bool is_zip(const void *head, size_t n)
{
    return n >= 4 && memcmp(head, "PK\3\4", 4) == 0;
}

static pc_status read_h5(const char *path, pc__h5_node file, part want, pc__keras_model *model)
{
    pc_status status = want == WEIGHTS ? read_weights(path, file, model) : read_whole(path, file, want, model);
    pc__h5_close(file);
    return status;
}

/* A file in memory: a zip archive, or what a pipe brought. */
static pc_status read_bytes(const char *path, const uint8_t *bytes, size_t n, part want, pc__keras_model *model)
{
    pc__zip zip;
    pc__h5_node file;
    if (is_zip(bytes, n)) {
        PC__TRY(pc__zip_open(path, bytes, n, &zip));
        return read_zip(&zip, want, model);
    }
    PC__TRY(pc__h5_open_bytes(path, bytes, n, &file));
    return read_h5(path, file, want, model);
}

/* Archives and pipes are read into memory; HDF5 files are read where they are. */
static pc_status read_kind(const char *path, part want, pc__keras_model *model)
{
    int fd;
    int64_t size;
    size_t n;
    uint8_t *bytes, head[4];
    pc__h5_node file;
    PC__TRY(pc__file_open(path, &fd, &size));
    if (size >= 0 && (pread(fd, head, sizeof head, 0) < (ssize_t)sizeof head || !is_zip(head, sizeof head))) {
        close(fd);
        PC__TRY(pc__h5_open(path, &file));
        return read_h5(path, file, want, model);
    }
    PC__TRY(pc__file_take(fd, path, size, &bytes, &n));
    pc_status status = read_bytes(path, bytes, n, want, model);
    pc__free(bytes);
    return status;
}

static pc_status read_file(const char *path, part want, pc__keras_model *model)
{
    pc_status status = read_kind(path, want, model);
    if (status != PC_OK && want != WEIGHTS)
        pc__keras_free(model);
    return status;
}

pc_status pc__keras_read(const char *path, pc__keras_model *model)
{
    *model = (pc__keras_model){0};
    return read_file(path, ALL, model);
}

pc_status pc__keras_read_layers(const char *path, pc__keras_model *model)
{
    *model = (pc__keras_model){0};
    return read_file(path, LAYERS, model);
}

pc_status pc__keras_read_weights(const char *path, pc__keras_model *model)
{
    return read_file(path, WEIGHTS, model);
}

#else

static pc_status missing(const char *path)
{
    return pc__fail(PC_ERR_UNSUPPORTED,
                    "%s: Keras files need HDF5 and cJSON, and this Paracord was built without one of them; "
                    "install libhdf5-dev and libcjson-dev (Debian, Ubuntu) and build again",
                    path);
}

pc_status pc__keras_read(const char *path, pc__keras_model *model)
{
    *model = (pc__keras_model){0};
    return missing(path);
}

pc_status pc__keras_read_layers(const char *path, pc__keras_model *model)
{
    *model = (pc__keras_model){0};
    return missing(path);
}

pc_status pc__keras_read_weights(const char *path, pc__keras_model *model)
{
    (void)model;
    return missing(path);
}

pc_status pc__keras_write(const char *path, pc__keras_model *model)
{
    (void)model;
    return missing(path);
}

pc_status pc__keras_note(const char *path, const pc__keras_model *model)
{
    (void)model;
    return missing(path);
}

#endif
