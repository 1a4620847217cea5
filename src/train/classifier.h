/* classifier.h: a classifier's inside. */
#ifndef PC__CLASSIFIER_H
#define PC__CLASSIFIER_H

#include "train/model_file.h"

struct pc_classifier {
    pc__opened_model model;
    pc_module *net; /* the model's, behind mean and std where these change something: that module is owned then */
    pc_device device;
    char *path;
    int64_t bytes; /* of the file; 0 for a pipe */
};

/* Whether all answers of the network are numbers; otherwise no class is named: PC_ERR_FORMAT. */
pc_status pc__classifier_check_answers(const pc_classifier *c, const float *answers, int64_t n);

#endif
