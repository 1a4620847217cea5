/* run_settings.c: what a run was asked for, in words. */
#include "train/run_settings.h"

#include <stdarg.h>

static void add(pc__run_settings *to, const char *name, const char *value)
{
    if (to->count < PC__RUN_SETTINGS)
        to->rows[to->count++] = (pc__report_setting){name, value};
}

static void add_as(pc__run_settings *to, const char *name, const char *format, ...) PC_PRINTF(3, 4);

static void add_as(pc__run_settings *to, const char *name, const char *format, ...)
{
    if (to->count == PC__RUN_SETTINGS)
        return;
    va_list list;
    va_start(list, format);
    vsnprintf(to->text[to->count], sizeof to->text[0], format, list);
    va_end(list);
    add(to, name, to->text[to->count]);
}

static void add_number(pc__run_settings *to, const char *name, double value)
{
    add_as(to, name, "%.10g", value);
}

static void add_size(pc__run_settings *to, const pc_train_options *s)
{
    char middle[48] = "";
    if (s->shorter)
        snprintf(middle, sizeof middle, ", the middle of %d", s->shorter);
    add_as(to, "picture size", "%d x %d%s%s", s->height, s->width, s->channels == 1 ? ", grey" : "", middle);
    add(to, "resize", s->resize);
}

static void add_augmentation(pc__run_settings *to, const pc_train_options *s)
{
    add_number(to, "shear (degrees)", s->shear);
    add_number(to, "zoom", s->zoom);
    add_number(to, "rotation (degrees)", s->rotation);
    add(to, "flip", s->flip ? "yes" : "no");
    add_number(to, "crop", s->crop);
    add_number(to, "pad", s->pad);
    add_as(to, "brightness, contrast, saturation, hue", "%.10g, %.10g, %.10g, %.10g", s->brightness, s->contrast,
           s->saturation, s->hue);
    add_number(to, "erase", s->erase);
    add(to, "fill", s->fill);
}

/* How many ranks trained, and what they shared, where that was asked for. */
static void add_shared(pc__run_settings *to, const pc__run *run)
{
    if (run->fit.group)
        add_as(to, "ranks", "%d", pc_group_size(run->fit.group));
    if (run->fit.group && strcmp(run->s.reduce, "float32") != 0)
        add(to, "gradients between ranks", run->s.reduce);
    if (run->zero)
        add_as(to, "ZeRO", "stage %d", run->s.zero);
    if (run->s.accumulate > 1)
        add_as(to, "accumulate", "%d", run->s.accumulate);
}

void pc__run_settings_take(const pc__run *run, pc__run_settings *to)
{
    const pc_train_options *s = &run->s;
    to->count = 0;
    add(to, "network", s->arch);
    add(to, "optimiser", s->optimizer);
    add_number(to, "learning rate", s->lr);
    add(to, "schedule", s->schedule);
    add(to, "initialiser", s->init);
    add(to, "products in", s->precision);
    add_number(to, "epochs", s->epochs);
    add_number(to, "batch", s->batch);
    add_size(to, s);
    add_augmentation(to, s);
    add(to, "normalise", s->normalise);
    add(to, "class weights", s->class_weights);
    add_number(to, "label smoothing", s->label_smoothing);
    add_number(to, "mixup", s->mixup);
    add_number(to, "cutmix", s->cutmix);
    add_as(to, "seed", "%llu", (unsigned long long)s->seed);
    add_shared(to, run);
}
