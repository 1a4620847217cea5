/* reduce.h: sums and maxima of a contiguous [outer, reduced, inner], cut into parts by its sizes alone. */
#ifndef PC__CPU_REDUCE_H
#define PC__CPU_REDUCE_H

#include "cpu/level/kernels.h"
#include "ops/reduce.h"

enum { PC__COLUMNS = 256 }; /* neighbouring results that are made together */

/* A result on the way: 8 bytes whose type is the kind's own, and where it was found. */
typedef union pc__partial {
    double d;
    float f;
    uint64_t u;
    int64_t i;
} pc__partial;

/* Members of neighbouring partials, so written that the compiler makes vectors of them. */
#define PC__MEMBER(value, j, member) ((&(value)->member)[(j) * (int64_t)(sizeof *(value) / sizeof(value)->member)])

typedef struct pc__reduction {
    /* Of n numbers side by side; `place` may be NULL here and below. */
    void (*row)(const void *x, int64_t n, pc__partial *value, int64_t *place);
    /* Of each of n <= PC__COLUMNS columns of `reduced` rows, which are `step` elements apart. */
    void (*columns)(const void *x, int64_t step, int64_t reduced, int64_t n, pc__partial *value, int64_t *place);
    /* What a later part of the same numbers gave, whose first is number `from`. */
    void (*join)(pc__partial *value, int64_t *place, const pc__partial *more, const int64_t *where, int64_t from,
                 int64_t n);
    void (*store)(void *to, pc_dtype dtype, const pc__partial *value, int64_t n);
} pc__reduction;

/* Into call->out[0], and places into `index` unless it is NULL. */
#define pc__reduce PC__K(reduce)
pc_status pc__reduce(const pc_call *call, const pc__reduction *how, int64_t *index);

#endif
