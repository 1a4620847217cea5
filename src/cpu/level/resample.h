/* resample.h: sums of neighbouring places with weights, along rows and columns. */
#ifndef PC__CPU_RESAMPLE_H
#define PC__CPU_RESAMPLE_H

#include "cpu/level/compute.h"

/* Place i of a result is made of places first, first + 1, ... of what it comes from, by weights at[i] to at[i + 1]. */
typedef struct pc__places {
    int64_t n;
    int64_t *first, *at;
    double *weight;
    bool copies; /* each is one place, by 1 */
} pc__places;

/* to[outer][rows->n][columns->n][inner] from from[outer][h][w][inner]. */
typedef struct pc__resampling {
    pc__places rows, columns;
    int64_t outer, h, w, inner;
    const void *from;
    void *to;
} pc__resampling;

#define pc__resample_f32 PC__K(resample_f32)
#define pc__resample_f64 PC__K(resample_f64)
#define pc__resample_copies PC__K(resample_copies)
pc_status pc__resample_f32(const pc__resampling *s);
pc_status pc__resample_f64(const pc__resampling *s);
void pc__resample_copies(const pc__resampling *s, size_t bytes); /* of an element, where rows and columns are copies */

#endif
