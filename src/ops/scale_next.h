/* scale_next.h: a loss scaler's numbers after a step. Plain C that .cu files include too. */
#ifndef PC__SCALE_NEXT_H
#define PC__SCALE_NEXT_H

#include "ops/power.h"

enum { PC__SCALER_SCALE, PC__SCALER_CLEAN, PC__SCALER_FOUND, PC__SCALER_NUMBERS };
/* the scale; steps without an infinite gradient since it last changed; 1 once one was found, until the update */

/* No scale is below: the smallest number of float16. What is infinite even so was infinite before it was scaled, and
 * the inverse of a scale that goes on to 0 would be infinite itself. */
#define PC__SCALE_LEAST 0x1p-24f

typedef struct pc__scale_attributes {
    float growth, backoff, interval;
} pc__scale_attributes;

PC__EVERYWHERE static inline void pc__scale_next(float *numbers, pc__scale_attributes a)
{
    const float scale = numbers[PC__SCALER_SCALE], clean = numbers[PC__SCALER_CLEAN] + 1;
    const int found = numbers[PC__SCALER_FOUND] != 0, grows = !found && clean >= a.interval;
    const float next = scale * (found ? a.backoff : grows ? a.growth : 1);
    numbers[PC__SCALER_SCALE] = !(next - next == 0) ? scale : next < PC__SCALE_LEAST ? PC__SCALE_LEAST : next;
    numbers[PC__SCALER_CLEAN] = found || grows ? 0 : clean;
    numbers[PC__SCALER_FOUND] = 0;
}

#endif
