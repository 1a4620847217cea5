/* dice.h: a row of random numbers for one picture. Each call takes the next one, so that the order of calls is
 * part of the picture: C leaves the order inside an expression open, so an
 * expression holds one call at most (&& and ?: apart). */
#ifndef PC__DRAW_DICE_H
#define PC__DRAW_DICE_H

#include "base/base.h"

typedef struct pc__dice {
    uint64_t seed, stream, counter;
} pc__dice;

/* Uniform from `low` to `high`. */
static inline float pc__roll(pc__dice *dice, float low, float high)
{
    uint32_t words[4];
    pc_philox(dice->seed, dice->stream, dice->counter++, words);
    return low + (high - low) * pc_uniform_f32(words[0]);
}

static inline bool pc__chance(pc__dice *dice, float probability)
{
    return pc__roll(dice, 0, 1) < probability;
}

/* One of 0..n-1. */
static inline int pc__pick(pc__dice *dice, int n)
{
    return PC__MIN((int)pc__roll(dice, 0, (float)n), n - 1);
}

#endif
