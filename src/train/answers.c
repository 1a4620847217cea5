/* answers.c: each picture's answer, and figures of classes. */
#include "train/answers.h"

#include "base/base.h"
#include "data/gather.h"

#include <math.h>

typedef struct collecting {
    pc__answers *answers;
    const pc_loader *loader;
} collecting;

double pc__named_probability(const float *row, int64_t width, int named)
{
    if (width == 1)
        return 1 / (1 + exp(named ? -(double)row[0] : (double)row[0]));
    double sum = 0;
    for (int64_t i = 0; i < width; i++)
        sum += exp((double)row[i] - (double)row[named]);
    return 1 / sum;
}

static bool collect(void *context, const pc_batch *batch, const float *logits, int64_t width)
{
    const collecting *c = context;
    pc__answers *a = c->answers;
    for (int64_t i = 0; i < batch->n; i++, logits += width) {
        const int label = pc__loader_label(c->loader, batch->sample[i]), named = pc__named_class(logits, width);
        a->list[batch->sample[i]] = (pc__answer){label, named, (float)pc__named_probability(logits, width, named),
                                                 logits[width == 1 ? 0 : named]};
        a->confusion[(size_t)label * (size_t)a->classes + (size_t)PC__MIN(named, a->classes - 1)]++;
    }
    return true;
}

/* A network may name classes that the loader has not: one more stands for all of those. */
static pc_status make_room(pc__answers *a, const pc_loader *loader)
{
    size_t classes = (size_t)pc_loader_class_count(loader) + 1, count = (size_t)pc_loader_count(loader);
    pc__answers_free(a);
    *a = (pc__answers){.classes = (int)classes,
                       .count = (int64_t)count,
                       .list = pc__calloc(count + 1, sizeof *a->list),
                       .confusion = pc__calloc(classes * classes, sizeof *a->confusion)};
    return a->list && a->confusion ? PC_OK : PC_ERR_MEMORY;
}

/* No picture was taken for one of the others. */
static void drop_others(pc__answers *a)
{
    const int classes = a->classes - 1;
    for (int i = 0; i < classes; i++)
        if (a->confusion[(size_t)i * (size_t)a->classes + (size_t)classes])
            return;
    for (int i = 0; i < classes; i++)
        memmove(a->confusion + (size_t)i * (size_t)classes, a->confusion + (size_t)i * (size_t)a->classes,
                (size_t)classes * sizeof *a->confusion);
    a->classes = classes;
}

pc_status pc__answers_collect(pc__answers *a, pc_module *net, pc_loader *loader, pc__score *score)
{
    PC__TRY(make_room(a, loader));
    collecting c = {a, loader};
    pc_status status = pc__score_loader(net, loader, collect, &c, score);
    if (status == PC_OK)
        drop_others(a);
    else
        pc__answers_free(a);
    return status;
}

void pc__answers_free(pc__answers *a)
{
    pc__free(a->list);
    pc__free(a->confusion);
    *a = (pc__answers){0};
}

int64_t pc__class_pictures(const int64_t *confusion, int classes, int class)
{
    int64_t sum = 0;
    for (int i = 0; i < classes; i++)
        sum += confusion[(size_t) class * (size_t)classes + (size_t)i];
    return sum;
}

double pc__class_recall(const int64_t *confusion, int classes, int class)
{
    int64_t sum = pc__class_pictures(confusion, classes, class);
    return sum ? (double)confusion[(size_t) class * (size_t)classes + (size_t) class] / (double)sum : NAN;
}

double pc__class_precision(const int64_t *confusion, int classes, int class)
{
    int64_t sum = 0;
    for (int i = 0; i < classes; i++)
        sum += confusion[(size_t)i * (size_t)classes + (size_t) class];
    return sum ? (double)confusion[(size_t) class * (size_t)classes + (size_t) class] / (double)sum : NAN;
}

double pc__balanced_accuracy(const int64_t *confusion, int classes)
{
    double sum = 0;
    int known = 0;
    for (int i = 0; i < classes; i++) {
        double recall = pc__class_recall(confusion, classes, i);
        if (!isnan(recall))
            sum += recall, known++;
    }
    return known ? sum / known : NAN;
}

bool pc__class_is_never_named(const int64_t *confusion, int classes, int class)
{
    for (int i = 0; i < classes; i++)
        if (confusion[(size_t)i * (size_t)classes + (size_t) class])
            return false;
    return pc__class_pictures(confusion, classes, class) > 0;
}

int pc__never_named(const int64_t *confusion, int classes)
{
    int count = 0;
    for (int i = 0; i < classes; i++)
        count += pc__class_is_never_named(confusion, classes, i);
    return count;
}
