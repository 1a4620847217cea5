/* reduce.h: reductions of a contiguous [outer, reduced, inner], cut into parts by its sizes alone. */
#ifndef PC__CPU_REDUCE_H
#define PC__CPU_REDUCE_H

#include "cpu/level/kernels.h"
#include "ops/reduce.h"

enum { PC__COLUMNS = 256 }; /* neighbouring results that are made together */

/* A result on the way: 8 bytes whose type is the kind's own. Beside it may be 8 more, `also`: where it was found, as int64_t, or
 * the mean that it is about, as double; NULL where nobody asks. */
typedef union pc__partial {
    double d;
    float f;
    uint64_t u;
    int64_t i;
} pc__partial;

/* Members of neighbouring partials, so written that the compiler makes vectors of them. */
#define PC__MEMBER(value, j, member) ((&(value)->member)[(j) * (int64_t)(sizeof *(value) / sizeof(value)->member)])

typedef struct pc__reduction {
    /* Of n numbers side by side, which may be none. */
    void (*row)(const void *x, int64_t n, pc__partial *value, void *also);
    /* Of each of n <= PC__COLUMNS columns of `reduced` rows, which are `step` elements apart. */
    void (*columns)(const void *x, int64_t step, int64_t reduced, int64_t n, pc__partial *value, void *also);
    /* n results of `from` rows, with those of the next `rows` rows. */
    void (*join)(pc__partial *value, void *also, const pc__partial *more, const void *more_also, int64_t from,
                 int64_t rows, int64_t n);
    void (*store)(void *to, pc_dtype dtype, const pc__partial *value, int64_t n);
} pc__reduction;

/* Into call->out[0], and what is beside results into `also` unless it is NULL. */
#define pc__reduce PC__K(reduce)
pc_status pc__reduce(const pc_call *call, const pc__reduction *how, void *also);

/* pc__reduction.store of partials that are `d`, or `u` for dtypes that are no floats; of the square or cube roots of `d`; of `f`. */
#define pc__reduce_store PC__K(reduce_store)
#define pc__reduce_store_singles PC__K(reduce_store_singles)
#define pc__reduce_store_roots PC__K(reduce_store_roots)
#define pc__reduce_store_cube_roots PC__K(reduce_store_cube_roots)
void pc__reduce_store(void *to, pc_dtype dtype, const pc__partial *value, int64_t n);
void pc__reduce_store_roots(void *to, pc_dtype dtype, const pc__partial *value, int64_t n);
void pc__reduce_store_cube_roots(void *to, pc_dtype dtype, const pc__partial *value, int64_t n);
void pc__reduce_store_singles(void *to, pc_dtype dtype, const pc__partial *value, int64_t n);

#endif
