/* eval_classes.h: how each class fared in an evaluation, as text and as JSON. */
#ifndef CLI_EVAL_CLASSES_H
#define CLI_EVAL_CLASSES_H

#include <paracord/classifier.h>

/* A table of what was taken for what, or, of many classes, those that fared worst; then the classes that no picture was
 * taken for. */
void cli_eval_classes(const pc_evaluation *e);

/* The members "recall", "precision" and "never_predicted", each with a comma in front. */
void cli_eval_classes_json(const pc_evaluation *e);

#endif
