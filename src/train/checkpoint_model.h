/* checkpoint_model.h: a checkpoint of pc_train_folder as a classifier: the network with the weights that training has
 * come to. */
#ifndef PC__CHECKPOINT_MODEL_H
#define PC__CHECKPOINT_MODEL_H

#include "train/model_file.h"

/* Read the file as a model, on the CPU, without an optimiser. PC_ERR_FORMAT when it is damaged, PC_ERR_UNSUPPORTED when
 * it does not say what the network is: a checkpoint of pc_fit. */
pc_status pc__checkpoint_model(const char *path, pc__opened_model *model);

#endif
