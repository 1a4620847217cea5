/* model_path.h: from what a user names to the file of a model: a Keras file, a safetensors file, a
 * checkpoint, or the folder of a run. */
#ifndef PC__MODEL_PATH_H
#define PC__MODEL_PATH_H

#include "train/model_file.h"

/* The file that `path` means, from pc__alloc: of a folder the model.h5 or model.safetensors in it, or, while there is
 * none yet, the checkpoint; anything else is the file itself. PC_ERR_NOT_FOUND for a folder that has none of them. */
pc_status pc__model_find(const char *path, char **file);

/* Read the file, of whichever kind. */
PC__SHARED pc_status pc__model_open_any(const char *file, pc__opened_model *model);

#endif
