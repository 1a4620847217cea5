/* data_folders.h: where in a folder the pictures for training and for testing are, by the names that people give. */
#ifndef PC__DATA_FOLDERS_H
#define PC__DATA_FOLDERS_H

#include "base/base.h"

PC__SHARED bool pc__is_folder(const char *path);

/* data/train, data/training_set, ... and data/test, data/test_set, data/validation, ...: *path from pc__alloc, NULL
 * when there is none. */
PC__SHARED pc_status pc__find_train_folder(const char *data, char **path);
PC__SHARED pc_status pc__find_test_folder(const char *data, char **path);

#endif
