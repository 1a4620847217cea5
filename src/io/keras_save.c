/* keras_save.c: a whole model into a .h5 file. */
#include "io/keras.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_part.h"

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
    return pc__keras_put_own(path, file, model);
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
    size_t n = strlen(path);
    if (n > 6 && strcmp(path + n - 6, ".keras") == 0)
        return pc__fail(PC_ERR_UNSUPPORTED, "cannot write %s: Keras's .keras files are read, not written; name it .h5",
                        path);
    pc__h5_quiet quiet = pc__h5_enter();
    pc_status status = pc__keras_sort(model);
    if (status == PC_OK)
        status = pc__keras_check(path, model);
    if (status == PC_OK)
        status = pc__h5_create(path, &file);
    if (status == PC_OK) {
        status = write_whole(path, file, model);
        H5Fclose(file);
    }
    pc__h5_leave(quiet);
    return status;
}

#endif
