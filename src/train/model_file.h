/* model_file.h: a trained classifier as a file: network, class names, and how its pictures are prepared. Networks of
 * Keras's layers are Keras .h5 files, which have the optimiser too; those for pictures by name (models.h) are safetensors
 * files with torchvision's names, which the text of model_about.h stands in. */
#ifndef PC__MODEL_FILE_H
#define PC__MODEL_FILE_H

#include "io/keras_module.h"
#include "train/preparation.h"

typedef struct pc__model_file {
    pc_module *net;                /* ends in logits */
    const pc_optimizer *optimizer; /* writing: may be NULL */
    double lr; /* writing: the rate, where the optimiser's is that of a schedule's last step; 0: its */
    pc_keras_head head;
    pc_preparation preparation; /* with the size of the pictures that it takes: pc__preparation_frame */
    bool open;                  /* reading: it takes pictures of any size; `preparation` has 0, or what is asked for */
    const char *const *class_names; /* writing: borrowed */
    int class_count;
    const char *arch; /* borrowed; of a network that is a safetensors file: what pc__arch_new makes it of; else NULL */
} pc__model_file;

/* What the file of such a network (pc__arch_new) is called in the folder of a run. */
const char *pc__model_name(const char *arch);

/* Write it whole or not at all. */
pc_status pc__model_save(const char *path, const pc__model_file *model);

/* Write preparation and class names into the file at `path`, and nothing else: whole or not at all. */
pc_status pc__model_note(const char *path, const pc__model_file *model);

/* What was read: `file` as above but with class_names in `names` (from pc__alloc, to be freed with pc__model_close). */
typedef struct pc__opened_model {
    pc__model_file file;
    char (*names)[PC_CLASS_NAME_MAX];
    bool named;         /* the file has them; otherwise they are numbers */
    char optimizer[64]; /* Keras's class name, or "" */
    char *arch;         /* file.arch */
} pc__opened_model;

/* Read any Keras file that is a classifier of grey or colour pictures of a known size. Where it does not say so,
 * classes are called "0", "1", ..., and pictures are prepared as pc__preparation_assumed says. */
pc_status pc__model_open(const char *path, pc__opened_model *model);
PC__SHARED void pc__model_close(pc__opened_model *model);

/* model_weights.c: the same of safetensors files. A file that does not say what network it is of is PC_ERR_UNSUPPORTED. */
pc_status pc__model_save_weights(const char *path, const pc__model_file *model);
pc_status pc__model_open_weights(const char *path, pc__opened_model *model);

#endif
