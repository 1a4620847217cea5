/* augment.c: Keras's and torchvision's transformations by name. How they are drawn and composed is in ops/epoch_draw.h; what runs over
 * pixels is the op augment. */
#include "data/augment.h"

#include "ops/colour.h"
#include "ops/epoch.h"

#include <math.h>

_Static_assert((int)PC__AUGMENT_CHANNELS == PC_AUGMENT_CHANNELS, "the op has as many");
_Static_assert((int)PC__EDGE_NEAREST == PC_FILL_NEAREST && (int)PC__EDGE_CONSTANT == PC_FILL_CONSTANT &&
                   (int)PC__EDGE_REFLECT == PC_FILL_REFLECT && (int)PC__EDGE_WRAP == PC_FILL_WRAP,
               "the op has the numbers of pc_fill_mode");
_Static_assert((int)PC__BRIGHTNESS == PC_JITTER_BRIGHTNESS && (int)PC__CONTRAST == PC_JITTER_CONTRAST &&
                   (int)PC__SATURATION == PC_JITTER_SATURATION && (int)PC__HUE == PC_JITTER_HUE,
               "the op has the numbers of pc_jitter");

pc_augment_values pc_augment_neutral(void)
{
    return (pc_augment_values){.zx = 1, .zy = 1, .brightness = -1};
}

pc__augment_plan pc__augment_plan_of(const pc_augment *plan, uint64_t seed, uint64_t epoch, int height, int width)
{
    return (pc__augment_plan){
        .rotation = plan->rotation,
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
        .crop = {plan->crop_low, plan->crop_high, log(plan->ratio_low > 0 ? plan->ratio_low : 3.0 / 4),
                 log(plan->ratio_high > 0 ? plan->ratio_high : 4.0 / 3)},
        .jitter = {plan->jitter_brightness, plan->jitter_contrast, plan->jitter_saturation, plan->jitter_hue},
        .jitters = pc__augment_jitters(plan),
        .erase = plan->erase,
        .pad = plan->pad,
        .height = height,
        .width = width,
        .seed = seed,
        .epoch = epoch};
}

static pc_part public_part(pc__part p)
{
    return p.height ? (pc_part){p.top, p.left, p.height, p.width} : (pc_part){0};
}

static pc__part part_of(pc_part p)
{
    return p.height ? (pc__part){p.top, p.left, p.height, p.width} : (pc__part){0};
}

pc_augment_values pc_augment_draw(const pc_augment *plan, uint64_t seed, uint64_t epoch, uint64_t sample, int height,
                                  int width)
{
    PC__NEED_OR(pc_augment_neutral(), plan);
    const pc__augment_plan ranges = pc__augment_plan_of(plan, seed, epoch, height, width);
    const pc__augment_drawn v = pc__epoch_draw(&ranges, sample);
    pc_augment_values values = {.theta = v.theta,
                                .tx = v.tx,
                                .ty = v.ty,
                                .shear = v.shear,
                                .zx = v.zx,
                                .zy = v.zy,
                                .channel_shift = v.channel_shift,
                                .brightness = v.brightness,
                                .flip_horizontal = v.flip_horizontal != 0,
                                .flip_vertical = v.flip_vertical != 0,
                                .crop = public_part(v.crop),
                                .erased = public_part(v.erased),
                                .down = v.down,
                                .right = v.right};
    memcpy(values.jitter, v.jitter, sizeof values.jitter);
    for (int k = 0; k < PC__COLOURS; k++)
        values.order[k] = v.order < 0 ? (pc_jitter)k : (pc_jitter)pc__colour_at((int)v.order, k);
    return values;
}

static bool jitters(const pc_augment_values *v)
{
    return v->jitter[0] != 0 || v->jitter[1] != 0 || v->jitter[2] != 0 || v->jitter[3] != 0;
}

static pc__augment_row row_of(const pc_augment_values *v, int height, int width)
{
    int order = 0;
    for (int k = 0; k < PC__COLOURS; k++)
        order |= (int)v->order[k] << 2 * k;
    pc__augment_drawn drawn = {.theta = v->theta,
                               .tx = v->tx,
                               .ty = v->ty,
                               .shear = v->shear,
                               .zx = v->zx,
                               .zy = v->zy,
                               .channel_shift = v->channel_shift,
                               .brightness = v->brightness,
                               .flip_horizontal = v->flip_horizontal,
                               .flip_vertical = v->flip_vertical,
                               .crop = part_of(v->crop),
                               .erased = part_of(v->erased),
                               .down = v->down,
                               .right = v->right,
                               .order = jitters(v) ? order : -1};
    memcpy(drawn.jitter, v->jitter, sizeof drawn.jitter);
    return pc__augment_compose(&drawn, height, width);
}

pc__augment_attributes pc__augment_attributes_of(const pc_augment *plan)
{
    pc__augment_attributes a = {.edge = (pc__edge)plan->fill,
                                .colours = pc__augment_jitters(plan) || plan->erase > 0,
                                .crops = plan->crop_high > 0,
                                .cval = (float)plan->cval,
                                .scale = plan->rescale != 0 ? (float)plan->rescale : 1};
    for (int c = 0; c < PC__AUGMENT_CHANNELS; c++) {
        a.mean[c] = (float)plan->mean[c];
        a.std[c] = plan->std[c] != 0 ? (float)plan->std[c] : 1;
        a.normalises |= a.mean[c] != 0 || a.std[c] != 1;
    }
    return a;
}

pc_status pc_augment_apply(const pc_augment *plan, const pc_augment_values *values, const uint8_t *pixels, int height,
                           int width, int channels, float *out)
{
    PC__NEED(plan);
    PC__NEED(values);
    PC__NEED(pixels);
    PC__NEED(out);
    PC__TRY(pc__augment_check_size(height, width, channels));
    PC__TRY(pc__augment_check_values(plan, values, height, width, channels));
    const pc__augment_row row = row_of(values, height, width);
    pc__augment_attributes attributes = pc__augment_attributes_of(plan);
    attributes.colours = jitters(values) || values->erased.height > 0;
    attributes.crops = values->crop.height > 0;
    pc__augment_one(&attributes, &row, pixels, height, width, channels, out);
    return PC_OK;
}
