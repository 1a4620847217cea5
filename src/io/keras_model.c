/* keras_model.c: the description itself, and a whole file into and out of it. */
#include "io/keras.h"

pc__keras_layer *pc__keras_add(pc__keras_model *model, pc__keras_kind kind)
{
    if (pc__grow((void **)&model->layers, &model->layer_capacity, model->layer_count, sizeof *model->layers) != PC_OK)
        return NULL;
    pc__keras_layer *layer = &model->layers[model->layer_count++];
    *layer = (pc__keras_layer){.kind = kind};
    return layer;
}

int64_t pc__keras_weight_size(const pc__keras_weight *weight)
{
    int64_t size = weight->rank > 0;
    for (int i = 0; i < weight->rank; i++)
        size *= weight->shape[i];
    return size;
}

pc_status pc__keras_weight_make(pc__keras_weight *weight, int rank, const int64_t *shape)
{
    *weight = (pc__keras_weight){.rank = rank};
    memcpy(weight->shape, shape, (size_t)rank * sizeof *shape);
    weight->value = pc__calloc((size_t)pc__keras_weight_size(weight), sizeof *weight->value);
    return weight->value ? PC_OK : PC_ERR_MEMORY;
}

const char *pc__keras_activation_name(pc__keras_activation activation)
{
    static const char *const names[] = {
#define NAME(code, name) [code] = name,
        PC__KERAS_ACTIVATIONS(NAME)
#undef NAME
    };
    return (unsigned)activation < PC__KERAS_ACTIVATION_COUNT ? names[activation] : "unknown";
}

static void weight_free(pc__keras_weight *weight)
{
    pc__free(weight->value);
    pc__free(weight->slot[0]);
    pc__free(weight->slot[1]);
}

void pc__keras_free(pc__keras_model *model)
{
    for (int i = 0; i < model->layer_count; i++) {
        weight_free(&model->layers[i].kernel);
        weight_free(&model->layers[i].bias);
    }
    for (int i = 0; i < model->class_count; i++)
        pc__free(model->class_names[i]);
    pc__free(model->class_names);
    pc__free(model->layers);
    pc__free(model->note);
    *model = (pc__keras_model){0};
}

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_part.h"

static pc_status read_config(const char *path, hid_t file, pc__keras_model *model)
{
    char *text;
    PC__TRY(pc__h5_text(path, file, "model_config", &text));
    if (!text)
        return pc__fail(PC_ERR_FORMAT,
                        "%s has no model_config: it is no Keras model, or holds weights alone; save the whole "
                        "model: model.save(\"model.h5\")",
                        path);
    pc_status status = pc__keras_config_parse(path, text, model);
    pc__free(text);
    if (status == PC_OK)
        status = pc__keras_shapes(path, model);
    return status;
}

static pc_status read_training(const char *path, hid_t file, pc__keras_model *model)
{
    char *text;
    PC__TRY(pc__h5_text(path, file, "training_config", &text));
    if (!text)
        return PC_OK;
    pc_status status = pc__keras_training_parse(path, text, &model->training);
    pc__free(text);
    if (status == PC_OK)
        status = pc__keras_state_read(path, file, model);
    return status;
}

static pc_status read_whole(const char *path, hid_t file, pc__keras_model *model)
{
    hid_t weights;
    pc__names names = {0};
    PC__TRY(read_config(path, file, model));
    PC__TRY(pc__h5_group(path, file, "model_weights", &weights));
    pc_status status = pc__keras_weights_read(path, weights, model);
    H5Gclose(weights);
    if (status == PC_OK)
        status = read_training(path, file, model);
    if (status == PC_OK)
        status = pc__h5_names(path, file, "paracord_class_names", &names, NULL);
    if (status != PC_OK)
        return status;
    model->class_names = names.items;
    model->class_count = names.count;
    return pc__h5_text(path, file, "paracord", &model->note);
}

static pc_status read_weights(const char *path, hid_t file, pc__keras_model *model)
{
    if (pc__h5_has_group(file, "layers"))
        return pc__keras_native_weights_read(path, file, model);
    if (!pc__h5_has_group(file, "model_weights"))
        return pc__keras_weights_read(path, file, model);
    hid_t weights;
    PC__TRY(pc__h5_group(path, file, "model_weights", &weights));
    pc_status status = pc__keras_weights_read(path, weights, model);
    H5Gclose(weights);
    return status;
}

static pc_status with_file(const char *path, pc__keras_model *model,
                           pc_status (*use)(const char *path, hid_t file, pc__keras_model *model))
{
    hid_t file;
    pc__h5_quiet quiet = pc__h5_enter();
    pc_status status = pc__h5_open(path, &file);
    if (status == PC_OK) {
        status = use(path, file, model);
        H5Fclose(file);
    }
    pc__h5_leave(quiet);
    return status;
}

pc_status pc__keras_read(const char *path, pc__keras_model *model)
{
    *model = (pc__keras_model){0};
    pc_status status = with_file(path, model, read_whole);
    if (status != PC_OK)
        pc__keras_free(model);
    return status;
}

pc_status pc__keras_read_weights(const char *path, pc__keras_model *model)
{
    return with_file(path, model, read_weights);
}

/* An attribute made of printed pieces. */
static pc_status put_printed(const char *path, hid_t file, const char *name, pc__text *text)
{
    pc_status status = text->failed ? PC_ERR_MEMORY : pc__h5_put_text(path, file, name, text->data);
    pc__text_free(text);
    return status;
}

/* The backend says how kernels lie: Keras 2 turns those of "theano" around. */
static pc_status put_versions(const char *path, hid_t object)
{
    PC__TRY(pc__h5_put_text(path, object, "keras_version", "3.0.0"));
    return pc__h5_put_text(path, object, "backend", "tensorflow");
}

static pc_status write_attributes(const char *path, hid_t file, const pc__keras_model *model)
{
    pc__text config = {0}, training = {0};
    PC__TRY(put_versions(path, file));
    pc__keras_config_print(&config, model);
    PC__TRY(put_printed(path, file, "model_config", &config));
    if (model->training.optimizer != PC__KERAS_NO_OPTIMIZER) {
        pc__keras_training_print(&training, &model->training);
        PC__TRY(put_printed(path, file, "training_config", &training));
    }
    if (model->class_count)
        PC__TRY(pc__h5_put_names(path, file, "paracord_class_names", model->class_names, model->class_count));
    return model->note ? pc__h5_put_text(path, file, "paracord", model->note) : PC_OK;
}

static pc_status write_whole(const char *path, hid_t file, pc__keras_model *model)
{
    hid_t weights;
    PC__TRY(write_attributes(path, file, model));
    PC__TRY(pc__h5_add_group(path, file, "model_weights", &weights));
    pc_status status = put_versions(path, weights);
    if (status == PC_OK)
        status = pc__keras_weights_write(path, weights, model);
    H5Gclose(weights);
    if (status == PC_OK && model->training.optimizer != PC__KERAS_NO_OPTIMIZER && model->training.has_state)
        status = pc__keras_state_write(path, file, model);
    return status == PC_OK ? pc__h5_commit(path, file) : status;
}

pc_status pc__keras_write(const char *path, pc__keras_model *model)
{
    hid_t file;
    pc__h5_quiet quiet = pc__h5_enter();
    pc_status status = pc__keras_check(path, model);
    if (status == PC_OK)
        status = pc__h5_create(path, &file);
    if (status == PC_OK) {
        status = write_whole(path, file, model);
        H5Fclose(file);
    }
    pc__h5_leave(quiet);
    return status;
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

#endif
