/* model_weights.c: classifiers to and from safetensors files, whose note "paracord" says what they are. */
#include "io/safetensors.h"
#include "nn/module.h"
#include "train/model_about.h"

#include <paracord/weights.h>

static const char key[] = "paracord";

static pc_status save(const char *path, const pc_module *net, const char *about)
{
    const int count = pc_module_state_list(net, NULL, 0);
    if (count < 0)
        return pc_error_last()->status;
    pc_parameter *list = pc__alloc((size_t)PC__MAX(count, 1) * sizeof *list);
    if (!list)
        return PC_ERR_MEMORY;
    (void)pc_module_state_list(net, list, count);
    const pc_weights_note_pair notes[] = {{"format", "pt"}, {key, about}, {NULL, NULL}};
    const pc_status status = pc_weights_write(path, list, count, notes);
    pc__free(list);
    return status;
}

pc_status pc__model_save_weights(const char *path, const pc__model_file *model)
{
    char *about = pc__model_about(model->arch, model);
    if (!about)
        return PC_ERR_MEMORY;
    const pc_status status = save(path, model->net, about);
    pc__free(about);
    return status;
}

/* A GPT's weights, under the names of paracord gpt train or of Hugging Face, or its checkpoint. */
static bool is_gpt(const pc_weights *file)
{
    return pc_weights_note(file, "paracord gpt") || pc__weights_find(file, "transformer.wte.weight") ||
           pc__weights_find(file, "wte.weight");
}

/* The network that the note says. */
static pc_status make(const pc_weights *file, const char *path, pc__opened_model *model)
{
    const char *note = pc_weights_note(file, key);
    char *about = note ? pc__strdup(note) : NULL;
    if (note && !about)
        return PC_ERR_MEMORY;
    if (!about && is_gpt(file))
        return pc__fail(PC_ERR_UNSUPPORTED,
                        "%s is of a GPT, which sorts no pictures: paracord gpt sample FOLDER lets it write, and "
                        "paracord gpt eval FOLDER TEXT measures it",
                        path);
    pc_status status = about ? pc__model_of_about(path, about, model) : PC_ERR_UNSUPPORTED;
    pc__free(about);
    if (status == PC_ERR_UNSUPPORTED && !pc_failed())
        return pc__fail(PC_ERR_UNSUPPORTED,
                        "%s has weights and does not say of which network, as files of paracord train do; a network "
                        "begins with them by paracord train --arch NAME --init-from %s",
                        path, path);
    return status;
}

static pc_status open_model(const char *path, pc__opened_model *model)
{
    pc_weights *file = pc_weights_open(path);
    if (!file)
        return pc_error_last()->status;
    pc_status status = make(file, path, model);
    pc_weights_free(file);
    PC__TRY(status);
    PC__TRY(pc_weights_load(model->file.net, path, (pc_weights_options){0}));
    pc_module_set_training(model->file.net, false);
    return PC_OK;
}

pc_status pc__model_open_weights(const char *path, pc__opened_model *model)
{
    *model = (pc__opened_model){0};
    const pc_status status = open_model(path, model);
    if (status != PC_OK)
        pc__model_close(model);
    return status;
}
