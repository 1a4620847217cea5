/* epoch_draw.h: what an epoch does with each sample: its key in the shuffle, its random values, its row of the op
 * augment's table. Pure functions of (seed, epoch, sample), for hosts and kernels: plain C that .cu files include too.
 * Every operation rounds as IEEE 754 says and none are fused (the build sees to it), so all devices have the same bits;
 * that is why sine and cosine are written out. */
#ifndef PC__EPOCH_DRAW_H
#define PC__EPOCH_DRAW_H

#include "ops/crop_draw.h"

/* Where output pixel (row, column) comes from, flips included:
 *     input row    = rows[0] * row + rows[1] * column + rows[2]
 *     input column = columns[0] * row + columns[1] * column + columns[2]   */
typedef struct pc__augment_row {
    double rows[3], columns[3];
    double channel_shift; /* 0: none */
    double brightness;    /* negative: none */
    /* Read where the op's attributes say that there are colours to change or parts to erase. */
    double jitter[4]; /* of brightness, contrast, saturation factors less 1, of the hue turns; 0: none */
    double order;     /* of these: number k from bit 2 k on; negative: none of them */
    double erased[4]; /* rows [0] to below [1], columns [2] to below [3] */
} pc__augment_row;

/* The ranges of pc_augment, for pictures of height x width pixels, and the keys of the draws. */
typedef struct pc__augment_plan {
    double rotation, width_shift, height_shift, shear, zoom_low, zoom_high, channel_shift;
    double brightness_low, brightness_high;
    int32_t flip_horizontal, flip_vertical, height, width;
    uint64_t seed, epoch;
    pc__part_plan crop;   /* high 0: none */
    double jitter[4];     /* how far each goes */
    double erase;         /* chance */
    int32_t pad, jitters; /* pixels; whether any of jitter is above 0 */
} pc__augment_plan;

/* As pc_augment_values. */
typedef struct pc__augment_drawn {
    double theta, tx, ty, shear, zx, zy, channel_shift, brightness;
    int32_t flip_horizontal, flip_vertical;
    pc__part crop, erased;
    int32_t down, right;
    double jitter[4], order;
} pc__augment_drawn;

/* Samples go through the epoch in the order of their keys, those of equal keys in their own. */
PC__BOTH uint64_t pc__shuffle_key(uint64_t seed, uint64_t epoch, int64_t sample)
{
    const uint64_t purpose = 0x73687566666c65u; /* "shuffle": apart from other draws that are keyed by the same seed */
    const pc__words words = pc__philox(seed ^ purpose, epoch, (uint64_t)sample);
    return (uint64_t)words.w[0] << 32 | words.w[1];
}

PC__BOTH double pc__between(double low, double high, double uniform)
{
    return low + (high - low) * uniform;
}

PC__BOTH double pc__shift_in_pixels(double range, int size, double uniform)
{
    return pc__between(-range, range, uniform) * (range < 1 ? size : 1);
}

/* Number `at` of the 24 orders of four, two bits each. */
PC__BOTH int pc__jitter_order(int at)
{
    int left = 0xe4 /* 3, 2, 1, 0 */, order = 0;
    for (int k = 0; k < 4; k++) {
        const int pick = at % (4 - k) * 2, below = (1 << pick) - 1;
        at /= 4 - k;
        order |= (left >> pick & 3) << 2 * k;
        left = (left & below) | (left >> 2 & ~below);
    }
    return order;
}

/* As torchvision's ColorJitter. */
PC__BOTH void pc__jitter_draw(const pc__augment_plan *plan, uint64_t sample, pc__augment_drawn *v)
{
    const uint64_t key = plan->seed ^ 0x6a6974746572u; /* "jitter" */
    v->order = -1;
    for (int i = 0; i < 4; i++)
        v->jitter[i] = 0;
    if (!plan->jitters)
        return;
    for (int i = 0; i < 4; i++) {
        const pc__words words = pc__philox(key, plan->epoch, sample * 4 + (uint64_t)i / 2);
        const double range = plan->jitter[i], low = i < 3 && range > 1 ? -1 : -range;
        v->jitter[i] = range > 0 ? pc__between(low, range, pc__unit_of(&words, i % 2)) : 0;
    }
    const pc__words words = pc__philox(key, plan->epoch, sample * 4 + 2);
    v->order = pc__jitter_order((int)(24 * pc__unit_of(&words, 0)));
}

PC__BOTH int32_t pc__pad_draw(int pad, uint32_t word)
{
    return (int32_t)((uint64_t)word * (uint64_t)(2 * pad + 1) >> 32) - pad;
}

/* What torchvision's transforms draw, apart from Keras's. */
PC__BOTH void pc__parts_draw(const pc__augment_plan *plan, uint64_t sample, pc__augment_drawn *v)
{
    const pc__part none = {0, 0, 0, 0};
    v->crop = none;
    if (plan->crop.high > 0)
        v->crop = pc__crop_draw(&plan->crop, plan->seed, plan->epoch, sample, plan->height, plan->width);
    v->erased = none;
    if (plan->erase > 0)
        v->erased = pc__erase_draw(plan->erase, plan->seed, plan->epoch, sample, plan->height, plan->width);
    v->down = v->right = 0;
    if (!plan->pad)
        return;
    const pc__words words = pc__philox(plan->seed ^ 0x706164u /* "pad" */, plan->epoch, sample);
    v->down = pc__pad_draw(plan->pad, words.w[0]);
    v->right = pc__pad_draw(plan->pad, words.w[1]);
}

PC__BOTH pc__augment_drawn pc__augment_draw(const pc__augment_plan *plan, uint64_t sample)
{
    const uint64_t purpose = 0x6175676d656e74u; /* "augment" */
    double u[10];
    for (int i = 0; i < 10; i += 2) {
        const pc__words words = pc__philox(plan->seed ^ purpose, plan->epoch, sample * 8 + (uint64_t)i / 2);
        u[i] = pc__unit_f64(words.w[0], words.w[1]);
        u[i + 1] = pc__unit_f64(words.w[2], words.w[3]);
    }
    pc__augment_drawn v;
    v.theta = pc__between(-plan->rotation, plan->rotation, u[0]);
    v.tx = pc__shift_in_pixels(plan->height_shift, plan->height, u[1]);
    v.ty = pc__shift_in_pixels(plan->width_shift, plan->width, u[2]);
    v.shear = pc__between(-plan->shear, plan->shear, u[3]);
    v.zx = plan->zoom_high > 0 ? pc__between(plan->zoom_low, plan->zoom_high, u[4]) : 1;
    v.zy = plan->zoom_high > 0 ? pc__between(plan->zoom_low, plan->zoom_high, u[5]) : 1;
    v.flip_horizontal = plan->flip_horizontal && u[6] < 0.5;
    v.flip_vertical = plan->flip_vertical && u[7] < 0.5;
    v.channel_shift = pc__between(-plan->channel_shift, plan->channel_shift, u[8]);
    v.brightness = plan->brightness_high > 0 ? pc__between(plan->brightness_low, plan->brightness_high, u[9]) : -1;
    pc__parts_draw(plan, sample, &v);
    pc__jitter_draw(plan, sample, &v);
    return v;
}

/* Of an angle in degrees, up to 1e6 of them. Whole quarters of a turn come off exactly; what is left, up to 45 degrees,
 * goes into Taylor's series as far as doubles can tell. */
PC__BOTH void pc__sine_cosine(double degrees, double *sine, double *cosine)
{
    const double quarters = floor(degrees / 90 + 0.5);
    const double x = (degrees - 90 * quarters) * (3.14159265358979323846 / 180), y = x * x;
    double s = 1.0 / 355687428096000, c = 1.0 / 20922789888000;
    s = s * y - 1.0 / 1307674368000, c = c * y - 1.0 / 87178291200;
    s = s * y + 1.0 / 6227020800, c = c * y + 1.0 / 479001600;
    s = s * y - 1.0 / 39916800, c = c * y - 1.0 / 3628800;
    s = s * y + 1.0 / 362880, c = c * y + 1.0 / 40320;
    s = s * y - 1.0 / 5040, c = c * y - 1.0 / 720;
    s = s * y + 1.0 / 120, c = c * y + 1.0 / 24;
    s = s * y - 1.0 / 6, c = c * y - 0.5;
    s = x + x * (s * y), c = 1 + c * y;
    const int turned = (int)((int64_t)quarters & 3);
    *sine = turned == 0 ? s : turned == 1 ? c : turned == 2 ? -s : -c;
    *cosine = turned == 0 ? c : turned == 1 ? -s : turned == 2 ? -c : s;
}

/* Read the picture from its other end along one axis. */
PC__BOTH void pc__augment_flip(pc__augment_row *row, int axis, int length)
{
    row->rows[2] += row->rows[axis] * (length - 1), row->rows[axis] = -row->rows[axis];
    row->columns[2] += row->columns[axis] * (length - 1), row->columns[axis] = -row->columns[axis];
}

/* Take pixel i of an axis from place (i + 1/2) part / length - 1/2 of a part of it, and so many pixels before. */
PC__BOTH void pc__augment_take(pc__augment_row *row, int axis, int length, int first, int part, int before)
{
    const double scale = part ? (double)part / length : 1;
    const double offset = (part ? first + 0.5 * scale - 0.5 : 0) - scale * before;
    row->rows[2] += row->rows[axis] * offset, row->rows[axis] *= scale;
    row->columns[2] += row->columns[axis] * offset, row->columns[axis] *= scale;
}

/* Rotation, shift, shear, zoom, multiplied in this order, about the centre; then both axes exchanged, as Keras does
 * (its first coordinate is x, ours is the row), the centre's with them; then the crop, the shift by whole pixels and the
 * flips. */
PC__BOTH pc__augment_row pc__augment_compose(const pc__augment_drawn *v, int height, int width)
{
    double st, ct, ss, cs;
    pc__sine_cosine(v->theta, &st, &ct);
    pc__sine_cosine(v->shear, &ss, &cs);
    const double a = ct * v->zx, b = (-ct * ss - st * cs) * v->zy;
    const double c = st * v->zx, d = (-st * ss + ct * cs) * v->zy;
    const double ox = height / 2.0 - 0.5, oy = width / 2.0 - 0.5;
    const double tx = ct * v->tx - st * v->ty + ox - (a * ox + b * oy);
    const double ty = st * v->tx + ct * v->ty + oy - (c * ox + d * oy);
    pc__augment_row row;
    row.rows[0] = d, row.rows[1] = c, row.rows[2] = ty;
    row.columns[0] = b, row.columns[1] = a, row.columns[2] = tx;
    row.channel_shift = v->channel_shift, row.brightness = v->brightness;
    for (int k = 0; k < 4; k++)
        row.jitter[k] = v->jitter[k];
    row.order = v->order;
    row.erased[0] = v->erased.top, row.erased[1] = v->erased.top + v->erased.height;
    row.erased[2] = v->erased.left, row.erased[3] = v->erased.left + v->erased.width;
    pc__augment_take(&row, 0, height, v->crop.top, v->crop.height, v->down);
    pc__augment_take(&row, 1, width, v->crop.left, v->crop.width, v->right);
    if (v->flip_vertical)
        pc__augment_flip(&row, 0, height);
    if (v->flip_horizontal)
        pc__augment_flip(&row, 1, width);
    return row;
}

PC__BOTH pc__augment_row pc__augment_row_drawn(const pc__augment_plan *plan, int64_t sample)
{
    const pc__augment_drawn drawn = pc__augment_draw(plan, (uint64_t)sample);
    return pc__augment_compose(&drawn, plan->height, plan->width);
}

#endif
