/* augment.c: drawing and composing Keras's transformations. What runs over pixels is the op augment. */
#include "data/augment.h"

#include <math.h>

/* Keeps these draws apart from others that are keyed by the same seed. */
static const uint64_t purpose = 0x6175676d656e74ull; /* "augment" */

enum { DRAWS = 10, VALUE_MAX = 1000000 };

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
static void compose(const pc_augment_values *v, int height, int width, pc__augment_row *row)
{
    const double radians = 3.14159265358979323846 / 180;
    const double ct = cos(v->theta * radians), st = sin(v->theta * radians);
    const double cs = cos(v->shear * radians), ss = sin(v->shear * radians);
    const double a = ct * v->zx, b = (-ct * ss - st * cs) * v->zy;
    const double c = st * v->zx, d = (-st * ss + ct * cs) * v->zy;
    const double ox = height / 2.0 - 0.5, oy = width / 2.0 - 0.5;
    const double tx = ct * v->tx - st * v->ty + ox - (a * ox + b * oy);
    const double ty = st * v->tx + ct * v->ty + oy - (c * ox + d * oy);
    row->rows[0] = d, row->rows[1] = c, row->rows[2] = ty;
    row->columns[0] = b, row->columns[1] = a, row->columns[2] = tx;
}

/* Read the transformed picture from its other end. */
static void flip(const pc_augment_values *v, int height, int width, pc__augment_row *row)
{
    double *lines[2] = {row->rows, row->columns};
    for (int i = 0; i < 2; i++) {
        double *line = lines[i];
        if (v->flip_vertical)
            line[2] += line[0] * (height - 1), line[0] = -line[0];
        if (v->flip_horizontal)
            line[2] += line[1] * (width - 1), line[1] = -line[1];
    }
}

pc__augment_row pc__augment_row_of(const pc_augment_values *values, int height, int width)
{
    pc__augment_row row = {.channel_shift = values->channel_shift, .brightness = values->brightness};
    compose(values, height, width, &row);
    flip(values, height, width, &row);
    return row;
}

pc__augment_attributes pc__augment_attributes_of(const pc_augment *plan)
{
    return (pc__augment_attributes){.edge = (pc__edge)plan->fill,
                                    .cval = (float)plan->cval,
                                    .scale = plan->rescale != 0 ? (float)plan->rescale : 1};
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
    return PC_OK;
}

pc_status pc_augment_apply(const pc_augment *plan, const pc_augment_values *values, const uint8_t *pixels, int height,
                           int width, int channels, float *out)
{
    PC__TRY(pc__augment_check_size(height, width, channels));
    PC__TRY(check(plan, values));
    const pc__augment_row row = pc__augment_row_of(values, height, width);
    const pc__augment_attributes attributes = pc__augment_attributes_of(plan);
    pc__augment_one(&attributes, &row, pixels, height, width, channels, out);
    return PC_OK;
}
