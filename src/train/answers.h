/* answers.h: what a network said about each picture of a loader, and what that says about each class. */
#ifndef PC__ANSWERS_H
#define PC__ANSWERS_H

#include "base/base.h"
#include "train/score.h"

typedef struct pc__answer {
    int label, named;  /* classes: what it is, what was said */
    float probability; /* of the class that was named */
    float logit;       /* of the second of two classes; of more classes, that of the class that was named */
} pc__answer;

typedef struct pc__answers {
    int classes;        /* the loader's, and where others were named one more behind them, which stands for these */
    int64_t count;      /* pictures of the loader */
    pc__answer *list;   /* of picture i of the loader */
    int64_t *confusion; /* classes x classes: rows truth, columns named */
} pc__answers;

/* One pass over a loader in evaluation mode; *answers, empty or of a pass before, is overwritten. */
pc_status pc__answers_collect(pc__answers *answers, pc_module *net, pc_loader *loader, pc__score *score);
void pc__answers_free(pc__answers *answers);

/* How many pictures there are of a class. `confusion` is classes x classes. */
int64_t pc__class_pictures(const int64_t *confusion, int classes, int class);

/* Of the pictures of a class the share that was recognised; of those taken for it the share that is of it; NaN where
 * there are none. The mean recall over the classes that
 * have pictures: the balanced accuracy. */
double pc__class_recall(const int64_t *confusion, int classes, int class);
double pc__class_precision(const int64_t *confusion, int classes, int class);
double pc__balanced_accuracy(const int64_t *confusion, int classes);

/* There are pictures of the class, and no picture at all was taken for it. How many such classes there are. */
PC__SHARED bool pc__class_is_never_named(const int64_t *confusion, int classes, int class);
PC__SHARED int pc__never_named(const int64_t *confusion, int classes);

/* The probability of the class that a row of logits names. */
double pc__named_probability(const float *row, int64_t width, int named);

#endif
