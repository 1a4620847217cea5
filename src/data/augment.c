/* augment.c: Keras's transformations by name. How they are drawn and composed is in ops/epoch_draw.h; what runs over
 * pixels is the op augment. */
#include "data/augment.h"

#include <math.h>

enum { VALUE_MAX = 1000000 };

_Static_assert((int)PC__AUGMENT_CHANNELS == PC_AUGMENT_CHANNELS, "the op has as many");
_Static_assert((int)PC__EDGE_NEAREST == PC_FILL_NEAREST && (int)PC__EDGE_CONSTANT == PC_FILL_CONSTANT &&
                   (int)PC__EDGE_REFLECT == PC_FILL_REFLECT && (int)PC__EDGE_WRAP == PC_FILL_WRAP,
               "the op has the numbers of pc_fill_mode");

pc_augment_values pc_augment_neutral(void)
{
    return (pc_augment_values){.zx = 1, .zy = 1, .brightness = -1};
}

static bool is_range(double low, double high)
{
    return (low == 0 && high == 0) || (low > 0 && low <= high && high <= VALUE_MAX);
}

static pc_status check_normal(const pc_augment *plan)
{
    for (int c = 0; c < PC_AUGMENT_CHANNELS; c++)
        if (!isfinite(plan->mean[c]) || !isfinite(plan->std[c]))
            return pc__fail(PC_ERR_ARGUMENT, "augmentation: mean %g and std %g of channel %d must be finite numbers",
                            plan->mean[c], plan->std[c], c);
    return PC_OK;
}

pc_status pc_augment_check(const pc_augment *plan)
{
    PC__NEED(plan);
    const struct {
        const char *name;
        double value;
    } sizes[] = {
        {"rotation", plan->rotation}, {"width shift", plan->width_shift},     {"height shift", plan->height_shift},
        {"shear", plan->shear},       {"channel shift", plan->channel_shift},
    };
    for (int i = 0; i < PC__COUNT(sizes); i++)
        if (!(sizes[i].value >= 0 && sizes[i].value <= VALUE_MAX))
            return pc__fail(PC_ERR_ARGUMENT, "augmentation: a %s of %g: give the largest change, 0 or above",
                            sizes[i].name, sizes[i].value);
    if (!is_range(plan->zoom_low, plan->zoom_high))
        return pc__fail(PC_ERR_ARGUMENT,
                        "augmentation: zoom from %g to %g: both must be above 0 and in order (0.8 to "
                        "1.2, say)",
                        plan->zoom_low, plan->zoom_high);
    if (!(plan->brightness_low >= 0 && plan->brightness_low <= plan->brightness_high &&
          plan->brightness_high <= VALUE_MAX))
        return pc__fail(PC_ERR_ARGUMENT, "augmentation: brightness from %g to %g: both must be 0 or above and in order",
                        plan->brightness_low, plan->brightness_high);
    if ((unsigned)plan->fill > PC_FILL_WRAP)
        return pc__fail(PC_ERR_ARGUMENT,
                        "augmentation: %d is no fill mode: use PC_FILL_NEAREST, _CONSTANT, _REFLECT "
                        "or _WRAP",
                        plan->fill);
    if (!isfinite(plan->cval) || !isfinite(plan->rescale))
        return pc__fail(PC_ERR_ARGUMENT, "augmentation: cval and rescale must be finite numbers");
    return check_normal(plan);
}

pc__augment_plan pc__augment_plan_of(const pc_augment *plan, uint64_t seed, uint64_t epoch, int height, int width)
{
    return (pc__augment_plan){.rotation = plan->rotation,
                              .width_shift = plan->width_shift,
                              .height_shift = plan->height_shift,
                              .shear = plan->shear,
                              .zoom_low = plan->zoom_low,
                              .zoom_high = plan->zoom_high,
                              .channel_shift = plan->channel_shift,
                              .brightness_low = plan->brightness_low,
                              .brightness_high = plan->brightness_high,
                              .flip_horizontal = plan->flip_horizontal,
                              .flip_vertical = plan->flip_vertical,
                              .height = height,
                              .width = width,
                              .seed = seed,
                              .epoch = epoch};
}

pc_augment_values pc_augment_draw(const pc_augment *plan, uint64_t seed, uint64_t epoch, uint64_t sample, int height,
                                  int width)
{
    PC__NEED_OR(pc_augment_neutral(), plan);
    const pc__augment_plan ranges = pc__augment_plan_of(plan, seed, epoch, height, width);
    const pc__augment_drawn v = pc__augment_draw(&ranges, sample);
    return (pc_augment_values){.theta = v.theta,
                               .tx = v.tx,
                               .ty = v.ty,
                               .shear = v.shear,
                               .zx = v.zx,
                               .zy = v.zy,
                               .channel_shift = v.channel_shift,
                               .brightness = v.brightness,
                               .flip_horizontal = v.flip_horizontal != 0,
                               .flip_vertical = v.flip_vertical != 0};
}

static pc__augment_row row_of(const pc_augment_values *v, int height, int width)
{
    const pc__augment_drawn drawn = {
        v->theta,           v->tx,           v->ty, v->shear, v->zx, v->zy, v->channel_shift, v->brightness,
        v->flip_horizontal, v->flip_vertical};
    return pc__augment_compose(&drawn, height, width);
}

pc__augment_attributes pc__augment_attributes_of(const pc_augment *plan)
{
    pc__augment_attributes a = {.edge = (pc__edge)plan->fill,
                                .cval = (float)plan->cval,
                                .scale = plan->rescale != 0 ? (float)plan->rescale : 1};
    for (int c = 0; c < PC__AUGMENT_CHANNELS; c++) {
        a.mean[c] = (float)plan->mean[c];
        a.std[c] = plan->std[c] != 0 ? (float)plan->std[c] : 1;
        a.normalises |= a.mean[c] != 0 || a.std[c] != 1;
    }
    return a;
}

static pc_status check(const pc_augment *plan, const pc_augment_values *v)
{
    const double numbers[] = {v->theta, v->tx, v->ty, v->shear, v->zx, v->zy, v->channel_shift, v->brightness};
    for (int i = 0; i < PC__COUNT(numbers); i++)
        if (!(fabs(numbers[i]) <= VALUE_MAX))
            return pc__fail(PC_ERR_ARGUMENT, "augmentation by %g: values go up to %d", numbers[i], VALUE_MAX);
    if ((unsigned)plan->fill > PC_FILL_WRAP || !isfinite(plan->cval))
        return pc__fail(PC_ERR_ARGUMENT, "augmentation: fill mode %d with cval %g makes no sense", plan->fill,
                        plan->cval);
    return check_normal(plan);
}

pc_status pc_augment_apply(const pc_augment *plan, const pc_augment_values *values, const uint8_t *pixels, int height,
                           int width, int channels, float *out)
{
    PC__NEED(plan);
    PC__NEED(values);
    PC__NEED(pixels);
    PC__NEED(out);
    PC__TRY(pc__augment_check_size(height, width, channels));
    PC__TRY(check(plan, values));
    const pc__augment_row row = row_of(values, height, width);
    const pc__augment_attributes attributes = pc__augment_attributes_of(plan);
    pc__augment_one(&attributes, &row, pixels, height, width, channels, out);
    return PC_OK;
}
