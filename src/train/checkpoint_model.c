/* checkpoint_model.c: a checkpoint as a classifier, by the text in it (model_about.h). */
#include "train/checkpoint_model.h"

#include "nn/module.h"
#include "train/checkpoint_form.h"
#include "train/model_about.h"

static pc_status unknown(const char *path)
{
    return pc__fail(PC_ERR_UNSUPPORTED,
                    "%s is a checkpoint of a network that Paracord does not know (pc_fit writes such ones); it is for "
                    "going on with the training only",
                    path);
}

/* Behind what the optimiser keeps. */
static pc_status take_buffers(const char *path, const pc__checkpoint_file *file, const pc_module *net, size_t at)
{
    const int count = pc__module_buffer_count(net);
    if (file->header.tensors - file->header.parameters < count)
        return pc__checkpoint_damaged(path, "it lacks running statistics");
    for (int64_t i = file->header.parameters + count; i < file->header.tensors; i++)
        PC__TRY(pc__checkpoint_pass(path, file, &at, PC_F32));
    for (int i = 0; i < count; i++)
        PC__TRY(pc__checkpoint_take(path, file, &at, pc__module_buffer_at(net, i), "a running statistic"));
    return PC_OK;
}

static pc_status take_weights(const char *path, const pc__checkpoint_file *file, const pc_module *net)
{
    const int count = pc_module_parameter_list(net, NULL, 0);
    size_t at = 0;
    if (count < 0)
        return pc_error_last()->status;
    if (count != file->header.parameters)
        return pc__checkpoint_damaged(path, "its network has another number of layers");
    pc_parameter *list = pc__calloc((size_t)count + 1, sizeof *list);
    if (!list)
        return PC_ERR_MEMORY;
    (void)pc_module_parameter_list(net, list, count);
    pc_status status = PC_OK;
    for (int i = 0; i < count && status == PC_OK; i++)
        status = pc__checkpoint_take(path, file, &at, list[i].tensor, list[i].name);
    pc__free(list);
    return status == PC_OK ? take_buffers(path, file, net, at) : status;
}

static pc_status take(const char *path, const pc__checkpoint_file *file, pc__opened_model *model)
{
    if (!file->header.about)
        return unknown(path);
    char *about = pc__alloc((size_t)file->header.about + 1);
    if (!about)
        return PC_ERR_MEMORY;
    memcpy(about, file->about, (size_t)file->header.about);
    about[file->header.about] = 0;
    pc_status status = pc__model_of_about(path, about, model);
    pc__free(about);
    if (status == PC_ERR_UNSUPPORTED && !pc_failed())
        return unknown(path);
    PC__TRY(status);
    model->file.arch = NULL; /* notes are not for checkpoints */
    PC__TRY(take_weights(path, file, model->file.net));
    pc_module_set_training(model->file.net, false);
    return PC_OK;
}

pc_status pc__checkpoint_model(const char *path, pc__opened_model *model)
{
    pc__checkpoint_file file;
    *model = (pc__opened_model){0};
    PC__TRY(pc__checkpoint_open(path, &file));
    pc_status status = take(path, &file, model);
    pc__checkpoint_close(&file);
    if (status != PC_OK)
        pc__model_close(model);
    return status;
}
