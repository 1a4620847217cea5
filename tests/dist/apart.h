/* apart.h: how far two tensors of float32 are from each other. */
#ifndef PC_TEST_APART_H
#define PC_TEST_APART_H

#include "threads.h"

#include <math.h>

/* The largest difference, over the largest number; INFINITY for NaN, and where there is nothing to compare. In a rank's thread. */
static inline double apart(pc_tensor *want, pc_tensor *got)
{
    const int64_t n = want && got ? pc_tensor_count(want) : 0;
    float *a = malloc((size_t)n * sizeof *a), *b = malloc((size_t)n * sizeof *b);
    double most = 0, off = 0;
    if (!n || n != pc_tensor_count(got) || !a || !b || pc_read(want, a, (size_t)n * sizeof *a) != PC_OK ||
        pc_read(got, b, (size_t)n * sizeof *b) != PC_OK)
        off = INFINITY;
    for (int64_t i = 0; i < n && off < INFINITY; i++) {
        const double difference = fabs((double)a[i] - (double)b[i]);
        most = fmax(most, fabs((double)a[i]));
        off = isnan(difference) ? INFINITY : fmax(off, difference); /* fmax passes over NaN */
    }
    free(a);
    free(b);
    return off < INFINITY && most > 0 ? off / most : off;
}

#endif
