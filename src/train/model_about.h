/* model_about.h: what a network is and how its pictures are prepared, as a text that checkpoints and safetensors files
 * have. */
#ifndef PC__MODEL_ABOUT_H
#define PC__MODEL_ABOUT_H

#include "train/model_file.h"

/* From pc__alloc; NULL without memory. */
char *pc__model_about(const char *arch, const pc__model_file *model);

/* The model that the text, which is changed, says, on the CPU: everything but its weights. PC_ERR_FORMAT where class names
 * are cut off; PC_ERR_UNSUPPORTED, with no error on record, where it does not begin as such a text. On failure there may be
 * a part of it. */
pc_status pc__model_of_about(const char *path, char *about, pc__opened_model *model);

#endif
