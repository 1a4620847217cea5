/* augment_check.c: what makes no sense as a range to draw from, or as values to change a picture by. */
#include "data/augment.h"

#include <math.h>

enum { VALUE_MAX = 1000000, RATIO_MAX = 1000, PAD_MAX = 65535 };

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

static pc_status check_parts(const pc_augment *plan)
{
    const double least = plan->ratio_low != 0 ? plan->ratio_low : 3.0 / 4;
    const double most = plan->ratio_high != 0 ? plan->ratio_high : 4.0 / 3;
    if (!is_range(plan->crop_low, plan->crop_high) || plan->crop_high > 1)
        return pc__fail(
            PC_ERR_ARGUMENT,
            "augmentation: a crop from %g to %g of the picture: both must be above 0, at most 1 and in order "
            "(0.08 to 1, say)",
            plan->crop_low, plan->crop_high);
    if (!(least >= 1.0 / RATIO_MAX && least <= most && most <= RATIO_MAX))
        return pc__fail(
            PC_ERR_ARGUMENT,
            "augmentation: a crop's width of %g to %g times its height: both must be 1/%d to %d and in order", least,
            most, RATIO_MAX, RATIO_MAX);
    if (plan->pad < 0 || plan->pad > PAD_MAX)
        return pc__fail(PC_ERR_ARGUMENT, "augmentation: a pad of %d pixels: it must be 0 to %d", plan->pad, PAD_MAX);
    if (!(plan->jitter_hue >= 0 && plan->jitter_hue <= 0.5))
        return pc__fail(PC_ERR_ARGUMENT, "augmentation: hues turned by up to %g: it must be 0 to 0.5 of the circle",
                        plan->jitter_hue);
    if (!(plan->erase >= 0 && plan->erase <= 1))
        return pc__fail(PC_ERR_ARGUMENT, "augmentation: erase is %g: a chance is 0 to 1", plan->erase);
    return PC_OK;
}

bool pc__augment_jitters(const pc_augment *plan)
{
    return plan->jitter_brightness > 0 || plan->jitter_contrast > 0 || plan->jitter_saturation > 0 ||
           plan->jitter_hue > 0;
}

pc_status pc__augment_check_channels(const pc_augment *plan, int64_t channels)
{
    if (!pc__augment_jitters(plan) || channels == 1 || channels == 3)
        return PC_OK;
    return pc__fail(PC_ERR_ARGUMENT, "augmentation: a colour jitter of %lld channels: it takes 1 or 3",
                    (long long)channels);
}

pc_status pc_augment_check(const pc_augment *plan)
{
    PC__NEED(plan);
    const struct {
        const char *name;
        double value;
    } sizes[] = {
        {"rotation", plan->rotation},
        {"width shift", plan->width_shift},
        {"height shift", plan->height_shift},
        {"shear", plan->shear},
        {"channel shift", plan->channel_shift},
        {"jitter of the brightness", plan->jitter_brightness},
        {"jitter of the contrast", plan->jitter_contrast},
        {"jitter of the saturation", plan->jitter_saturation},
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
    PC__TRY(check_parts(plan));
    return check_normal(plan);
}

static bool is_inside(pc_part p, int height, int width)
{
    return p.height == 0 || (p.height > 0 && p.width > 0 && p.top >= 0 && p.left >= 0 && p.height <= height &&
                             p.width <= width && p.top <= height - p.height && p.left <= width - p.width);
}

static bool is_jitter(const pc_augment_values *v, int channels)
{
    unsigned found = 0;
    bool any = false;
    for (int k = 0; k < PC_JITTER_HUE + 1; k++) {
        const bool hue = k == PC_JITTER_HUE;
        found |= (unsigned)v->order[k] <= PC_JITTER_HUE ? 1u << v->order[k] : 0;
        any = any || v->jitter[k] != 0;
        if (!(v->jitter[k] >= (hue ? -0.5 : -1) && v->jitter[k] <= (hue ? 0.5 : VALUE_MAX)))
            return false;
    }
    return !any || (found == 15 && (channels == 1 || channels == 3));
}

pc_status pc__augment_check_values(const pc_augment *plan, const pc_augment_values *v, int height, int width,
                                   int channels)
{
    const double numbers[] = {v->theta, v->tx, v->ty, v->shear, v->zx, v->zy, v->channel_shift, v->brightness};
    for (int i = 0; i < PC__COUNT(numbers); i++)
        if (!(fabs(numbers[i]) <= VALUE_MAX))
            return pc__fail(PC_ERR_ARGUMENT, "augmentation by %g: values go up to %d", numbers[i], VALUE_MAX);
    if (v->down < -VALUE_MAX || v->down > VALUE_MAX || v->right < -VALUE_MAX || v->right > VALUE_MAX)
        return pc__fail(PC_ERR_ARGUMENT, "augmentation: %d pixels down and %d to the right: values go up to %d",
                        v->down, v->right, VALUE_MAX);
    if (!is_inside(v->crop, height, width) || !is_inside(v->erased, height, width))
        return pc__fail(PC_ERR_ARGUMENT, "augmentation: a part that is not inside the picture of %d x %d pixels", width,
                        height);
    if (!is_jitter(v, channels))
        return pc__fail(
            PC_ERR_ARGUMENT,
            "augmentation: a jitter of %d channels by %g, %g, %g and %g: pictures have 1 or 3, factors are 1 + "
            "numbers from -1 on, hues turn by -0.5 to 0.5, and the order has each once",
            channels, v->jitter[0], v->jitter[1], v->jitter[2], v->jitter[3]);
    if ((unsigned)plan->fill > PC_FILL_WRAP || !isfinite(plan->cval))
        return pc__fail(PC_ERR_ARGUMENT, "augmentation: fill mode %d with cval %g makes no sense", plan->fill,
                        plan->cval);
    return check_normal(plan);
}
