/* crop_draw.h: parts of pictures at random, as torchvision draws them: what RandomResizedCrop enlarges and RandomErasing
 * erases. For hosts and kernels, and to the same bits, as epoch_draw.h says. */
#ifndef PC__CROP_DRAW_H
#define PC__CROP_DRAW_H

#include "base/philox.h"

#include <math.h>

/* Rows [top, top + height), columns [left, left + width). No height: there is none. */
typedef struct pc__part {
    int32_t top, left, height, width;
} pc__part;

/* What to draw a part from: its share of the area, and the logarithm of its proportion (width to height of a crop). */
typedef struct pc__part_plan {
    double low, high, ratio_low, ratio_high;
} pc__part_plan;

enum { PC__PART_TRIES = 10, PC__PART_DRAWS = 16 /* of Philox: a try each, and the place */ };

/* Taylor's series for a number within half of log 2 of 0, and whole powers of 2. For |x| up to 30. */
PC__BOTH double pc__exp(double x)
{
    const double log2 = 0.693147180559945309417;
    const int whole = (int)floor(x / log2 + 0.5);
    const double r = x - whole * log2;
    double sum = 1;
    for (int i = 15; i > 0; i--)
        sum = 1 + sum * r / i;
    for (int i = 0; i < whole; i++)
        sum *= 2;
    for (int i = 0; i > whole; i--)
        sum *= 0.5;
    return sum;
}

PC__BOTH double pc__unit_of(const pc__words *words, int second)
{
    return pc__unit_f64(words->w[2 * second], words->w[2 * second + 1]);
}

/* A place for a part of this size; `uniform` is below 1. */
PC__BOTH int32_t pc__place(int length, int part, double uniform)
{
    return (int32_t)floor(uniform * (length - part + 1));
}

/* Sides from ten tries, of which the first that fits counts: to the very edges, or, `within`, short of them. False: none
 * does. */
PC__BOTH int pc__part_sides(const pc__part_plan *plan, uint64_t seed, uint64_t epoch, uint64_t first, int height,
                            int width, int within, pc__part *part)
{
    for (int i = 0; i < PC__PART_TRIES; i++) {
        const pc__words words = pc__philox(seed, epoch, first + (uint64_t)i);
        const double share = plan->low + (plan->high - plan->low) * pc__unit_of(&words, 0);
        const double area = (double)height * width * share;
        const double ratio = pc__exp(plan->ratio_low + (plan->ratio_high - plan->ratio_low) * pc__unit_of(&words, 1));
        const double w = floor(sqrt(area * ratio) + 0.5), h = floor(sqrt(area / ratio) + 0.5);
        if (w > 0 && h > 0 && w <= width - within && h <= height - within) {
            part->height = (int32_t)h, part->width = (int32_t)w;
            return 1;
        }
    }
    return 0;
}

PC__BOTH void pc__part_place(uint64_t seed, uint64_t epoch, uint64_t first, int height, int width, pc__part *part)
{
    const pc__words words = pc__philox(seed, epoch, first + PC__PART_TRIES);
    part->top = pc__place(height, part->height, pc__unit_of(&words, 0));
    part->left = pc__place(width, part->width, pc__unit_of(&words, 1));
}

/* Where no try fits, the middle, of the nearest proportion. */
PC__BOTH pc__part pc__crop_middle(const pc__part_plan *plan, int height, int width)
{
    const double least = pc__exp(plan->ratio_low), most = pc__exp(plan->ratio_high), is = (double)width / height;
    pc__part part;
    part.height = is < least ? (int32_t)floor(width / least + 0.5) : height;
    part.width = is > most ? (int32_t)floor(height * most + 0.5) : width;
    part.height = part.height < 1 ? 1 : part.height > height ? height : part.height;
    part.width = part.width < 1 ? 1 : part.width > width ? width : part.width;
    part.top = (height - part.height) / 2, part.left = (width - part.width) / 2;
    return part;
}

PC__BOTH pc__part pc__crop_draw(const pc__part_plan *plan, uint64_t seed, uint64_t epoch, uint64_t sample, int height,
                                int width)
{
    const uint64_t key = seed ^ 0x63726f70u /* "crop" */, first = sample * PC__PART_DRAWS;
    pc__part part = {0, 0, 0, 0};
    if (!pc__part_sides(plan, key, epoch, first, height, width, 0, &part))
        return pc__crop_middle(plan, height, width);
    pc__part_place(key, epoch, first, height, width, &part);
    return part;
}

/* With this chance, and where a try fits: torchvision's shares of 0.02 to 0.33, and height to width of 0.3 to 3.3. */
PC__BOTH pc__part pc__erase_draw(double chance, uint64_t seed, uint64_t epoch, uint64_t sample, int height, int width)
{
    const pc__part_plan plan = {0.02, 0.33, -1.1939224684724346, 1.2039728043259361} /* logarithms */;
    const uint64_t key = seed ^ 0x6572617365u /* "erase" */, first = sample * PC__PART_DRAWS;
    const pc__words words = pc__philox(key, epoch, first + PC__PART_TRIES + 1);
    pc__part part = {0, 0, 0, 0};
    if (pc__unit_of(&words, 0) < chance && pc__part_sides(&plan, key, epoch, first, height, width, 1, &part))
        pc__part_place(key, epoch, first, height, width, &part);
    return part;
}

#endif
