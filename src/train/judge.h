/* judge.h: what a network says of a batch, and what that is worth: by the loader's labels or by functions of the
 * program's. */
#ifndef PC__JUDGE_H
#define PC__JUDGE_H

#include "train/score.h"

#include <paracord/fit.h>

typedef struct pc__judge {
    pc_tensor *(*loss)(void *context, pc_tensor *outputs, const pc_batch *batch); /* NULL: by the labels */
    pc_tensor *(*forward)(void *context, pc_module *net, const pc_batch *batch);  /* NULL: pc_forward of x */
    void *context;
    const pc_metric *metrics;
    int metric_count;
    bool named; /* labels are a folder's: float32 [n, 1] are two classes */
} pc__judge;

/* As options say, of a loader's batches. */
pc__judge pc__judge_of(const pc_loader *loader, const pc_fit_options *options);

/* PC_ERR_ARGUMENT for metrics that are none. */
pc_status pc__judge_check(const char *who, const pc__judge *judge);

pc_tensor *pc__judge_ask(const pc__judge *judge, pc_module *net, const pc_batch *batch);

/* One number: the mean loss. `weights` of the classes, or NULL. */
pc_tensor *pc__judge_loss(const pc__judge *judge, pc_tensor *outputs, const pc_batch *batch, pc_tensor *weights);

/* Whether these outputs name classes that y says to be right or wrong. */
bool pc__judge_counts(const pc__judge *judge, const pc_tensor *outputs, const pc_tensor *y);

/* The same of a loader, before there are outputs. */
bool pc__judge_may_count(const pc__judge *judge, const pc_loader *loader);

/* Add a batch's loss to the sums, float64 on its device, of a network whose right answers are not counted: times its samples, or those
 * whose label is not -100 where y is integers [n]. Sums: of losses, of right answers, of samples without a label. */
pc_status pc__sum_loss(pc_tensor *sums, pc_tensor *loss, const pc_batch *batch);

/* One pass over a loader in evaluation mode. */
pc_status pc__judge_loader(const pc__judge *judge, pc_module *net, pc_loader *loader, pc_score *score);

#endif
