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

#endif
