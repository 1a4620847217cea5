/* curve.h: the training loss by step, in bounded room: means over groups of steps. A long run has wider groups: when
 * there is no more room for groups, two neighbours become one. */
#ifndef PC__CURVE_H
#define PC__CURVE_H

#include "base/base.h"

enum { PC__CURVE_GROUPS = 1000 };

typedef struct pc__curve_group {
    double loss;  /* sum over pictures */
    int64_t seen; /* pictures; 0: the results of these steps came with those of others */
} pc__curve_group;

typedef struct pc__curve {
    int64_t width; /* steps to a group; 0: there are none yet */
    int64_t count; /* groups, the last maybe under way */
    pc__curve_group groups[PC__CURVE_GROUPS];
} pc__curve;

/* The results of `seen` pictures have come, the last of them of step `step` (from 0). */
void pc__curve_add(pc__curve *curve, int64_t step, double loss, int64_t seen);

#endif
