/* model_path.c: which file a model is in. */
#include "train/model_path.h"

#include "train/checkpoint_form.h"
#include "train/checkpoint_model.h"
#include "train/data_folders.h"

#include <unistd.h>

/* The file of that name in the folder; NULL where there is none. */
static pc_status find(const char *folder, const char *name, char **file)
{
    pc__text text = {0};
    pc__text_add(&text, "%s/%s", folder, name);
    *file = text.data;
    if (text.failed)
        return PC_ERR_MEMORY;
    if (access(text.data, F_OK) != 0) {
        pc__text_free(&text);
        *file = NULL;
    }
    return PC_OK;
}

pc_status pc__model_find(const char *path, char **file)
{
    if (!pc__is_folder(path)) {
        *file = pc__strdup(path);
        return *file ? PC_OK : PC_ERR_MEMORY;
    }
    PC__TRY(find(path, "model.h5", file));
    PC__TRY(*file ? PC_OK : find(path, "checkpoint", file));
    return *file ? PC_OK
                 : pc__fail(PC_ERR_NOT_FOUND,
                            "the folder %s holds no run: there is neither model.h5 nor checkpoint in it", path);
}

pc_status pc__model_open_any(const char *file, pc__opened_model *model)
{
    return pc__is_checkpoint(file) ? pc__checkpoint_model(file, model) : pc__model_open(file, model);
}
