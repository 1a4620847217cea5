/* softmax_work.h: softmax and its kin over the middle dimension of [outer, n, inner]: long rows as they lie, columns
 * beside each other, and short rows transposed into columns. 16-bit numbers are float32 in blocks on the way. */
#ifndef PC__SOFTMAX_WORK_H
#define PC__SOFTMAX_WORK_H

#include "cpu/level/kernels.h"

enum { PC__SOFTMAX_COLUMNS = 128 };

/* out = the function of n numbers of x, and of y's where it takes two; out may be x. */
typedef void (*pc__row_fn)(const void *x, const void *y, void *out, int64_t n);

/* The same for each of `columns` <= PC__SOFTMAX_COLUMNS columns, whose rows are `step` elements apart. */
typedef void (*pc__columns_fn)(const void *x, const void *y, void *out, int64_t n, int64_t step, int64_t columns);

typedef struct pc__along {
    pc__row_fn row;
    pc__columns_fn columns;
} pc__along;

/* `cost` of an element, in additions. */
#define pc__softmax_run PC__K(softmax_run)
pc_status pc__softmax_run(const pc_call *call, pc__along f32, pc__along f64, int cost);

#endif
