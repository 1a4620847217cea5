/* augment.c: drawing and composing Keras's transformations. The loops over pixels are in warp.c. */
#include "data/augment.h"

#include <math.h>

/* Keeps these draws apart from others that are keyed by the same seed. */
static const uint64_t purpose = 0x6175676d656e74ull; /* "augment" */

enum { DRAWS = 10, SIDE_MAX = 65535, VALUE_MAX = 1000000 };

pc_augment_values pc_augment_neutral(void)
{
    return (pc_augment_values){.zx = 1, .zy = 1, .brightness = -1};
}

static bool is_range(double low, double high)
{
    return (low == 0 && high == 0) || (low > 0 && low <= high && high <= VALUE_MAX);
}

pc_status pc_augment_check(const pc_augment *plan)
{
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
    return PC_OK;
}

static double between(double low, double high, double uniform)
{
    return low + (high - low) * uniform;
}

static double shift_in_pixels(double range, int size, double uniform)
{
    return between(-range, range, uniform) * (range < 1 ? size : 1);
}

pc_augment_values pc_augment_draw(const pc_augment *plan, uint64_t seed, uint64_t epoch, uint64_t sample, int height,
                                  int width)
{
    double u[DRAWS];
    for (int i = 0; i < DRAWS; i += 2) {
        uint32_t w[4];
        pc_philox(seed ^ purpose, epoch, sample * 8 + (uint64_t)i / 2, w);
        u[i] = pc_uniform_f64(w[0], w[1]);
        u[i + 1] = pc_uniform_f64(w[2], w[3]);
    }
    pc_augment_values values = pc_augment_neutral();
    values.theta = between(-plan->rotation, plan->rotation, u[0]);
    values.tx = shift_in_pixels(plan->height_shift, height, u[1]);
    values.ty = shift_in_pixels(plan->width_shift, width, u[2]);
    values.shear = between(-plan->shear, plan->shear, u[3]);
    if (plan->zoom_high > 0) {
        values.zx = between(plan->zoom_low, plan->zoom_high, u[4]);
        values.zy = between(plan->zoom_low, plan->zoom_high, u[5]);
    }
    values.flip_horizontal = plan->flip_horizontal && u[6] < 0.5;
    values.flip_vertical = plan->flip_vertical && u[7] < 0.5;
    values.channel_shift = between(-plan->channel_shift, plan->channel_shift, u[8]);
    if (plan->brightness_high > 0)
        values.brightness = between(plan->brightness_low, plan->brightness_high, u[9]);
    return values;
}

/* Rotation, shift, shear, zoom, multiplied in this order, about the centre; then both axes exchanged, as Keras does
 * (its first coordinate is x, ours is the row), the centre's with them. */
static void compose(const pc_augment_values *v, pc__warp *warp)
{
    const double radians = 3.14159265358979323846 / 180;
    const double ct = cos(v->theta * radians), st = sin(v->theta * radians);
    const double cs = cos(v->shear * radians), ss = sin(v->shear * radians);
    const double a = ct * v->zx, b = (-ct * ss - st * cs) * v->zy;
    const double c = st * v->zx, d = (-st * ss + ct * cs) * v->zy;
    const double ox = warp->height / 2.0 - 0.5, oy = warp->width / 2.0 - 0.5;
    const double tx = ct * v->tx - st * v->ty + ox - (a * ox + b * oy);
    const double ty = st * v->tx + ct * v->ty + oy - (c * ox + d * oy);
    warp->rows[0] = d, warp->rows[1] = c, warp->rows[2] = ty;
    warp->columns[0] = b, warp->columns[1] = a, warp->columns[2] = tx;
}

/* Read the transformed picture from its other end. */
static void flip(pc__warp *warp, const pc_augment_values *v)
{
    double *lines[2] = {warp->rows, warp->columns};
    for (int i = 0; i < 2; i++) {
        double *line = lines[i];
        if (v->flip_vertical)
            line[2] += line[0] * (warp->height - 1), line[0] = -line[0];
        if (v->flip_horizontal)
            line[2] += line[1] * (warp->width - 1), line[1] = -line[1];
    }
}

typedef struct extent {
    float low, high;
} extent;

static extent extent_of(const float *x, size_t n)
{
    extent e = {x[0], x[0]};
    for (size_t i = 1; i < n; i++) {
        e.low = x[i] < e.low ? x[i] : e.low;
        e.high = x[i] > e.high ? x[i] : e.high;
    }
    return e;
}

static void shift_channels(float *x, size_t n, float shift)
{
    const extent e = extent_of(x, n);
    for (size_t i = 0; i < n; i++) {
        const float moved = x[i] + shift;
        x[i] = moved < e.low ? e.low : moved > e.high ? e.high : moved;
    }
}

/* Keras goes through PIL: bytes in, bytes out, both cut off at the point. Values outside 0..255 (a cval can bring
 * them) are squeezed into it before and stretched back after. */
static void change_brightness(float *x, size_t n, float factor)
{
    const extent e = extent_of(x, n);
    const bool outside = e.low < 0 || e.high > 255;
    const float range = e.high - e.low;
    for (size_t i = 0; i < n; i++) {
        float value = x[i];
        if (outside)
            value = range != 0 ? (value - e.low) / range * 255 : 0;
        const float bright = factor * (float)(int)value;
        value = bright >= 255 ? 255 : (float)(int)bright;
        x[i] = outside ? value / 255 * range + e.low : value;
    }
}

static pc_status check(const pc_augment *plan, const pc_augment_values *v, int height, int width, int channels)
{
    if (height < 1 || width < 1 || height > SIDE_MAX || width > SIDE_MAX || channels < 1 || channels > 4 ||
        (int64_t)height * width * channels > INT32_MAX)
        return pc__fail(PC_ERR_ARGUMENT,
                        "augmentation of a picture of %d x %d pixels and %d channels: sides are 1 to "
                        "%d, channels 1 to 4, 2 GiB in all",
                        width, height, channels, SIDE_MAX);
    const double numbers[] = {v->theta, v->tx, v->ty, v->shear, v->zx, v->zy, v->channel_shift, v->brightness};
    for (int i = 0; i < PC__COUNT(numbers); i++)
        if (!(fabs(numbers[i]) <= VALUE_MAX))
            return pc__fail(PC_ERR_ARGUMENT, "augmentation by %g: values go up to %d", numbers[i], VALUE_MAX);
    if ((unsigned)plan->fill > PC_FILL_WRAP || !isfinite(plan->cval))
        return pc__fail(PC_ERR_ARGUMENT, "augmentation: fill mode %d with cval %g makes no sense", plan->fill,
                        plan->cval);
    return PC_OK;
}

pc_status pc_augment_apply(const pc_augment *plan, const pc_augment_values *values, const uint8_t *pixels, int height,
                           int width, int channels, float *out)
{
    const pc_augment_values v = *values;
    PC__TRY(check(plan, &v, height, width, channels));
    const bool two_steps = v.channel_shift != 0 || v.brightness >= 0;
    const float rescale = plan->rescale != 0 ? (float)plan->rescale : 1;
    pc__warp warp = {.pixels = pixels,
                     .height = height,
                     .width = width,
                     .channels = channels,
                     .fill = plan->fill,
                     .cval = (float)plan->cval,
                     .scale = two_steps ? 1 : rescale};
    if (v.theta == 0 && v.tx == 0 && v.ty == 0 && v.shear == 0 && v.zx == 1 && v.zy == 1) {
        pc__warp_copy(&warp, v.flip_horizontal, v.flip_vertical, out);
    } else {
        compose(&v, &warp);
        flip(&warp, &v);
        pc__warp_run(&warp, out);
    }
    if (!two_steps)
        return PC_OK;
    const size_t n = (size_t)height * (size_t)width * (size_t)channels;
    if (v.channel_shift != 0)
        shift_channels(out, n, (float)v.channel_shift);
    if (v.brightness >= 0)
        change_brightness(out, n, (float)v.brightness);
    for (size_t i = 0; i < n; i++)
        out[i] *= rescale;
    return PC_OK;
}
