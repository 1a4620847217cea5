/* augment.h: random changes of training pictures, as Keras's ImageDataGenerator and torchvision define them.
 *
 *     pc_augment plan = {.shear = 0.2, .zoom_low = 0.8, .zoom_high = 1.2, .flip_horizontal = true,
 *                        .rescale = 1 / 255.0};
 *
 *     // a batch, on its device
 *     pc_tensor *x = pc_augment_batch(&plan, pictures, NULL, seed, epoch, samples);
 *
 *     // one picture, on the host
 *     pc_augment_values values = pc_augment_draw(&plan, seed, epoch, sample, height, width);
 *     if (pc_augment_apply(&plan, &values, pixels, height, width, 3, out) != PC_OK)
 *         return pc_report(stderr);
 *
 * A draw depends on (seed, epoch, sample) alone: not on threads, order, batch or device. All functions but
 * pc_augment_batch are pure and allocate nothing; all may be called from any thread.
 */
#ifndef PARACORD_AUGMENT_H
#define PARACORD_AUGMENT_H

#include <paracord/tensor.h>

PC_BEGIN

/* What stands beyond the edge of the picture a b c d (scipy.ndimage's modes of these names). */
typedef enum pc_fill_mode {
    PC_FILL_NEAREST,  /* a a a a | a b c d | d d d d */
    PC_FILL_CONSTANT, /* cval; no blending with the edge */
    PC_FILL_REFLECT,  /* d c b a | a b c d | d c b a */
    PC_FILL_WRAP      /* repeats with a period of one pixel less than the picture: a and d coincide, as in scipy */
} pc_fill_mode;

#define PC_AUGMENT_CHANNELS 4 /* at most */

/* What augmentation is: the ranges to draw from. Zero switches each of them off. Not the options of one call but a
 * definition, which one makes once and many calls (and a loader) go by. */
typedef struct pc_augment {
    int reserved_;
    double rotation; /* degrees: the angle is uniform in [-rotation, rotation] */
    /* Below 1 a fraction of the picture's size, from 1 on pixels; uniform in [-shift, shift]. As in Keras 3 (and
     * keras-preprocessing from 0edcff0 of 2020 on) height_shift, a share of the height, moves columns, and width_shift
     * moves rows. */
    double width_shift, height_shift;
    double shear; /* degrees (not radians), uniform in [-shear, shear] */
    /* Rows and columns draw a factor each; below 1 enlarges. Keras's zoom_range z is 1 - z and 1 + z. */
    double zoom_low, zoom_high;
    bool flip_horizontal, flip_vertical; /* each with a chance of one half */
    /* One number in [-channel_shift, channel_shift] is added to all channels, and the sum kept between the picture's
     * smallest and largest value. */
    double channel_shift;
    double brightness_low, brightness_high; /* a factor; rounds to whole numbers as PIL does */
    /* A part of the picture is enlarged to the whole, as torchvision's RandomResizedCrop does (bilinear; beyond the part's
     * edge stands the picture, whose last pixels go on for the half of one that is needed there, whatever `fill` is): of
     * an area from crop_low to crop_high of the picture's, 1 being all of it, and with a width of ratio_low to ratio_high
     * times its height, in pixels as they are here. Ratios of 0 mean 3/4 and 4/3. */
    double crop_low, crop_high, ratio_low, ratio_high;
    /* Rows and columns move by whole pixels, uniform in [-pad, pad] each: torchvision's RandomCrop to the picture's own
     * size, with that padding; PC_FILL_CONSTANT with a cval of 0 is its fill. */
    int pad;
    /* torchvision's ColorJitter, of pictures of 1 or 3 channels: factors of brightness, contrast and saturation from
     * max(0, 1 - x) to 1 + x, hues turned by -x to x of the circle (at most 0.5), one after the other in an order that is
     * drawn. Values end at 0 and 255. */
    double jitter_brightness, jitter_contrast, jitter_saturation, jitter_hue;
    /* torchvision's RandomErasing with this chance: a part of 0.02 to 0.33 of the picture becomes 0, behind mean and std. */
    double erase;
    pc_fill_mode fill;
    double cval;    /* for PC_FILL_CONSTANT */
    double rescale; /* multiplies behind all that; 0 means 1 */
    /* At the very end, by channel: (value - mean) / std, as torchvision's Normalize. A std of 0 means 1. */
    double mean[PC_AUGMENT_CHANNELS], std[PC_AUGMENT_CHANNELS];
} pc_augment;

/* A part of a picture: rows from top on, columns from left on. A height of 0: none. */
typedef struct pc_part {
    int top, left, height, width;
} pc_part;

/* What pc_augment_values.order puts in order. */
typedef enum pc_jitter { PC_JITTER_BRIGHTNESS, PC_JITTER_CONTRAST, PC_JITTER_SATURATION, PC_JITTER_HUE } pc_jitter;

/* One draw: Keras's transform parameters of the same names, and torchvision's. */
typedef struct pc_augment_values {
    double theta;         /* degrees */
    double tx, ty;        /* pixels */
    double shear;         /* degrees */
    double zx, zy;        /* 1: no zoom */
    double channel_shift; /* 0: none */
    double brightness;    /* 1: unchanged; negative: off (1 still rounds to whole numbers) */
    bool flip_horizontal, flip_vertical;
    pc_part crop, erased; /* inside the picture */
    int down, right;      /* moved so by whole pixels */
    double jitter[4];     /* by pc_jitter: factors are 1 + these, from -1 on; of PC_JITTER_HUE turns, -0.5 to 0.5 */
    pc_jitter order[4];   /* of these, each once; read where one is not 0 */
} pc_augment_values;

/* Values that change nothing. */
PC_API pc_augment_values pc_augment_neutral(void);

/* PC_ERR_ARGUMENT when a range makes no sense: not finite, negative, zoom_low above zoom_high or only one of them above
 * zero (crop and ratio alike, and a crop beyond 1), a jitter_hue beyond 0.5, an unknown fill mode. Call it once where
 * the ranges come in. */
PC_API PC_MUST_USE pc_status pc_augment_check(const pc_augment *plan);

/* Draw the values for one picture of height x width pixels. */
PC_API pc_augment_values pc_augment_draw(const pc_augment *plan, uint64_t seed, uint64_t epoch, uint64_t sample,
                                         int height, int width);

/* Transform `pixels` (height x width x channels bytes) into `out` (as many floats), which must not overlap: rotation,
 * shift, shear, zoom about the centre, crop and shift by whole pixels with one bilinear interpolation, channel shift,
 * flips, brightness, jitter, rescale, mean and std, erased part, in this order. The first are within 1e-3 (of 255) of
 * Keras with scipy (brightness: but for values that lie that close to a whole number and round to the other side), jitter
 * of torchvision. channels: 1 to 4; jitter: 1 or 3. Of the plan only fill, cval, rescale, mean and std count here.
 * PC_ERR_ARGUMENT for a size, a channel count or values that make no sense; `out` is then untouched. */
PC_API PC_MUST_USE pc_status pc_augment_apply(const pc_augment *plan, const pc_augment_values *values,
                                              const uint8_t *pixels, int height, int width, int channels, float *out);

/* Draw and transform a batch on the device where its pictures are, as pc_augment_draw and pc_augment_apply would one by
 * one: on the CPU the same bits. The draws are made on the host and go across as 136 bytes a picture; the device
 * gathers, transforms, converts and scales in one piece of work on the current stream. No gradient.
 *   pictures  uint8 [count, height, width, channels], 0 to 255, channels 1 to 4; copied first unless contiguous
 *   index     int64 or int32 [n] on the same device: which pictures to take, in this order; NULL: all of them, n is
 *             count
 *   samples   n numbers on the host, read during the call: what each picture is called in the draws (its place in the
 *             data set, say: the same number in the same epoch gets the same draw)
 * Result: [count, height, width, channels] -> [n, channels, height, width], float32, in channels-last memory, like every
 * new tensor the scope's or the caller's. NULL: PC_ERR_ARGUMENT (plan, sizes, what is NULL, the index's dtype),
 * PC_ERR_SHAPE, PC_ERR_DTYPE, PC_ERR_DEVICE (index elsewhere), PC_ERR_RANGE (an entry of the index beyond count: a device
 * that works later reports it later), PC_ERR_MEMORY. */
PC_API PC_MUST_USE pc_tensor *pc_augment_batch(const pc_augment *plan, pc_tensor *pictures, pc_tensor *index,
                                               uint64_t seed, uint64_t epoch, const int64_t *samples);

PC_END
#endif
