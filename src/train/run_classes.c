/* run_classes.c: how many pictures each class has, what that means for training, and classes that nothing is taken
 * for. */
#include "data/gather.h"
#include "train/run.h"
#include "train/summary.h"

#include <math.h>

enum { UNEVEN = 2, NAMED = 8, PATIENCE = 3 };

pc_status pc__run_count_classes(pc__run *run)
{
    int classes = pc_loader_class_count(run->fit.train);
    run->counts = pc__calloc((size_t)classes, sizeof *run->counts);
    if (!run->counts)
        return PC_ERR_MEMORY;
    for (int64_t i = 0; i < pc_loader_count(run->fit.train); i++)
        run->counts[pc__loader_label(run->fit.train, i)]++;
    run->fit.uneven = pc__run_is_uneven(run);
    return PC_OK;
}

/* The classes with the most and the fewest pictures. */
static void extremes(const pc__run *run, int *most, int *fewest)
{
    *most = *fewest = 0;
    for (int k = 1; k < pc_loader_class_count(run->fit.train); k++) {
        *most = run->counts[k] > run->counts[*most] ? k : *most;
        *fewest = run->counts[k] < run->counts[*fewest] ? k : *fewest;
    }
}

bool pc__run_is_uneven(const pc__run *run)
{
    int most, fewest;
    extremes(run, &most, &fewest);
    return run->counts[most] >= UNEVEN * PC__MAX(run->counts[fewest], 1) && most != fewest;
}

void pc__run_describe_classes(pc__text *text, const pc__run *run)
{
    int most, fewest;
    extremes(run, &most, &fewest);
    if (!pc__run_is_uneven(run))
        return;
    double share = (double)run->counts[most] / (double)pc_loader_count(run->fit.train);
    pc__text_add(text, "\nclasses of unequal size, %s (", pc__thousands(run->counts[fewest]).s);
    pc__text_add_name(text, run->class_names[fewest]);
    pc__text_add(text, ") to %s (", pc__thousands(run->counts[most]).s);
    pc__text_add_name(text, run->class_names[most]);
    pc__text_add(text, "): always saying ");
    pc__text_add_name(text, run->class_names[most]);
    pc__text_add(text, " would be right for %.0f%% of these pictures", share * 100);
    pc__text_add(text, run->fit.class_weights ? "; their losses are weighted alike"
                                              : "; --class-weights balanced makes all classes count alike");
}

/* n / (classes * n of the class): a class weighs as much as any other, and pictures 1 on average. */
static bool balance(const pc__run *run, float *weights)
{
    int classes = pc_loader_class_count(run->fit.train), there = 0;
    bool differ = false;
    for (int k = 0; k < classes; k++)
        there += run->counts[k] > 0;
    for (int k = 0; k < classes; k++) {
        double n = (double)run->counts[k];
        weights[k] = n > 0 ? (float)((double)pc_loader_count(run->fit.train) / (there * n)) : 0;
        differ |= n > 0 && weights[k] != 1;
    }
    return differ;
}

pc_status pc__run_weigh_classes(pc__run *run)
{
    if (strcmp(run->s.class_weights, "balanced") != 0)
        return PC_OK;
    int classes = pc_loader_class_count(run->fit.train);
    float *weights = pc__alloc((size_t)classes * sizeof *weights);
    if (!weights)
        return PC_ERR_MEMORY;
    pc_status status = PC_OK;
    if (balance(run, weights)) /* otherwise all weigh 1 */
        status = pc__fit_weigh(&run->fit, weights, classes);
    pc__free(weights);
    return status;
}

/* "the network never says elk, owl or 3 more of 50 classes, although there are test pictures of them" */
static void warn(const pc__run *run, int epoch, const int64_t *confusion, int classes)
{
    int count = pc__never_named(confusion, classes), shown = 0;
    char names[NAMED * PC_CLASS_NAME_MAX + 32];
    size_t used = 0;
    for (int k = 0; k < classes && shown < NAMED; k++)
        if (pc__class_is_never_named(confusion, classes, k))
            used +=
                (size_t)snprintf(names + used, sizeof names - used, "%s%s", shown++ ? ", " : "", run->class_names[k]);
    if (count > shown)
        snprintf(names + used, sizeof names - used, " and %d more", count - shown);
    pc__log(PC_LOG_WARNING, "the network of epoch %d never says %s: no test picture was taken for %s, of %d classes%s",
            epoch, names, count == 1 ? "it" : "them", classes,
            pc__run_is_uneven(run) && !run->fit.class_weights ? "; --class-weights balanced may help" : "");
}

void pc__run_watch_classes(pc__run *run, const pc_epoch_result *result)
{
    run->silent_epochs = result->never_named ? run->silent_epochs + 1 : 0;
    if (run->silent_epochs == PATIENCE && !pc__fit_is_over(&run->fit))
        warn(run, result->epoch, run->fit.answers.confusion, run->fit.answers.classes);
}

void pc__run_warn_of_kept(const pc__run *run)
{
    const pc_epoch_result *kept = pc__run_kept(run);
    if (run->shown_epoch && run->shown_epoch == kept->epoch && kept->never_named)
        warn(run, kept->epoch, run->shown.confusion, run->shown.classes);
}
