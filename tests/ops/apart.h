/* apart.h: how far two results are from each other. */
#ifndef PC_TEST_APART_H
#define PC_TEST_APART_H

#include <math.h>
#include <paracord/ops.h>

/* Largest difference, as a share of the largest number of `b`. */
static inline double apart(pc_tensor *a, pc_tensor *b)
{
    pc_tensor *difference = pc_sub(a, b);
    return sqrt(pc_item(pc_max(pc_mul(difference, difference))) / pc_item(pc_max(pc_mul(b, b))));
}

/* The same in float32, where a largest number below 1 counts as 1. */
static inline double apart_by_one(pc_tensor *a, pc_tensor *b)
{
    pc_tensor *x = pc_cast(a, PC_F32), *y = pc_cast(b, PC_F32), *difference = pc_sub(x, y);
    return sqrt(pc_item(pc_max(pc_mul(difference, difference))) / fmax(1, pc_item(pc_max(pc_mul(y, y)))));
}

#endif
